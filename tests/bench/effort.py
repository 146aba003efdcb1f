"""How much is measured: enough for figures or, with --short, just enough to see that every benchmark works."""

import os
import sys

SHORT = "--short" in sys.argv
if SHORT:
    os.environ["BENCH_SHORT"] = "1"  # for the benchmarks that are programs of their own


def effort(full, short):
    return short if SHORT else full
