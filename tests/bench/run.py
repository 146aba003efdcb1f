#!/usr/bin/python3
"""Prints one table of speed and size, ours beside real peers measured in the same run.

Timings are ratios of interleaved rounds and still depend on the machine: a missed budget does not
fail the run unless --strict says so."""

import argparse
import sys

import containers
import jetson
import knobs
import lines
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
from table import Table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strict", action="store_true", help="fail when a budget is missed")
    parser.add_argument("--update", action="store_true", help="write instructions.txt anew")
    parser.add_argument("--instructions", action="store_true", help="count instructions only")
    arguments = parser.parse_args()

    programs.build()
    table = Table()
    if not arguments.instructions:
        per_series = scrapes.run(table)
        renderers.run(table)
        node.run(table)
        containers.run(table)
        jetson.run(table)
        models.run(table)
        nvml.run(table)
        places.run(table)
        plugins.run(table)
        pushes.run(table)
        lines.run(table)
        knobs.run(table)
        runs.run(table)
        programs.run_timed(table, per_series)
    programs.run_instructions(table, arguments.update)
    print(f"\n{table.n_missed} budgets missed" if table.n_missed else "\nall budgets kept")
    return 1 if arguments.strict and table.n_missed else 0


if __name__ == "__main__":
    sys.exit(main())
