"""Eight fake GPUs: what a scrape of them costs."""

import os
import subprocess

from paths import BUILD, HERE
from table import seconds

SCENARIO = HERE.parent / "fixtures/nvml/eight.txt"


def run(table):
    table.heading("eight NVIDIA GPUs (fake library), CPU time", theirs="sample")
    done = subprocess.run(
        [BUILD / "tests/bench/bench_nvml", BUILD / "tests/fakes/libnvidia-ml.so.1"],
        env={**os.environ, "FAKE_NVML": str(SCENARIO)},
        capture_output=True, text=True, check=True)
    scrape, sample = [float(line.split("\t")[1]) for line in done.stdout.splitlines()]
    table.limit("nvml: one scrape", seconds, scrape, sample, most=0.001)
