#!/usr/bin/python3
"""Builds and runs the benchmarks of this folder, one after another: run.py [NAME...]"""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"


def main(names):
    names = names or sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.c"))
    targets = [f"tests/bench/bench_{name}" for name in names]
    subprocess.run(["ninja", "-C", BUILD, "--quiet", *targets], check=True)
    for name, target in zip(names, targets):
        print(f"== {name}", flush=True)
        subprocess.run([BUILD / target], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
