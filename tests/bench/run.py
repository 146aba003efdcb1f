#!/usr/bin/python3
"""Prints one table of speed and size, ours beside real peers measured in the same run.

Timings are ratios of interleaved rounds and still depend on the machine: a missed budget does not
fail the run unless --strict says so. A benchmark that breaks does, after all others have run.
--short measures next to nothing and judges no figure: it shows that every benchmark works."""

import argparse
import json
import sys
import traceback

import pytest

import attacks
import containers
import fleet_sizing
import jetson
import knobs
import lines
import loop_turns
import models
import node
import nvml
import places
import plugins
import programs
import pushes
import renderers
import runs
import scrapes
from effort import SHORT
from paths import BUILD
from table import Table

BENCHMARKS = {
    "scrapes": scrapes.run,
    "renderers": renderers.run,
    "node": node.run,
    "containers": containers.run,
    "jetson": jetson.run,
    "models": models.run,
    "nvml": nvml.run,
    "places": places.run,
    "plugins": plugins.run,
    "pushes": pushes.run,
    "lines": lines.run,
    "knobs": knobs.run,
    "loop_turns": loop_turns.run,
    "attacks": attacks.run,
    "runs": runs.run,
    "programs": programs.run_timed,
    "instructions": programs.run_instructions,
}
# In full it takes twelve minutes, and its table is that of deploy/README.md.
BY_HAND = {"fleet_sizing": fleet_sizing.run}


def attempt(table, name, run):
    """Returns the result of a benchmark in meson's words."""
    n_rows = table.n_rows
    try:
        run(table)
        if table.n_rows == n_rows:
            raise RuntimeError(f"{name}: no row")
    except pytest.skip.Exception as skipped:
        table.skip(name, str(skipped))
    except Exception:
        traceback.print_exc(file=sys.stdout)
        return "FAIL"
    return "OK"


def write_results(results, skipped):
    """As .ci/count reads them."""
    cases = [{"name": f"bench {name}", "result": result} for name, result in results.items()]
    cases += [{"name": f"bench: {what}", "result": "SKIP", "stdout": why} for what, why in skipped.items()]
    (BUILD / "bench.json").write_text("".join(json.dumps(case) + "\n" for case in cases))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a benchmark; without one, all of them")
    parser.add_argument("--strict", action="store_true", help="fail when a budget is missed")
    parser.add_argument("--update", action="store_true", help="rewrite instructions.txt")
    parser.add_argument("--short", action="store_true", help="show that every benchmark works")
    arguments = parser.parse_args()

    known = {**BENCHMARKS, **BY_HAND}
    known["instructions"] = lambda table: programs.run_instructions(table, arguments.update)
    unknown = set(arguments.names) - set(known)
    if unknown:
        parser.error(f"{', '.join(unknown)}: not one of {', '.join(known)}")
    names = arguments.names or (known if SHORT else BENCHMARKS)

    programs.build()
    table = Table(judged=not SHORT)
    results = {name: attempt(table, name, known[name]) for name in names}
    write_results(results, table.skipped)
    broken = [name for name, result in results.items() if result != "OK"]
    print(f"\n{len(results)} benchmarks, broken: {', '.join(broken) or 'none'}")
    print(f"{table.n_missed} budgets missed" if table.n_missed else "no budget missed")
    return 1 if broken or arguments.strict and table.n_missed else 0


if __name__ == "__main__":
    sys.exit(main())
