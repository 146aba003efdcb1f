"""What `waap run` takes of a core while it watches an application that does nothing."""

import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from effort import effort
from paths import BUILD, HERE
from table import percent

ROUNDS = effort(3, 1)
SHORT_SECONDS, LONG_SECONDS = effort((1, 6), (0.1, 0.4))  # what starting costs is in both
BOARD = HERE.parent / "fixtures/jetson/xavier_nx_jp5.tree"


def cost(place, seconds, variables):
    """CPU and wall-clock seconds of one run."""
    with tempfile.TemporaryDirectory(dir=place) as out:
        subprocess.run([BUILD / "exporter/waap", "run", place / "sage.yaml", "--out", f"{out}/record", "--", "sleep",
                        str(seconds)], check=True, stdout=subprocess.DEVNULL, env={**os.environ, **variables})
        lines = map(json.loads, pathlib.Path(out, "record/samples.jsonl").read_text().splitlines())
    end = next(line for line in lines if line["kind"] == "end")
    return end["overhead_seconds"], end["wall_seconds"]


def share(place, interval, variables):
    """Of one core, while the application runs."""
    (place / "sage.yaml").write_text(
        f"profiling: {{sampling: {{interval: {interval}, baseline: 0, cooldown: 0}}}}\n")
    short, long = (cost(place, seconds, variables) for seconds in (SHORT_SECONDS, LONG_SECONDS))
    return (long[0] - short[0]) / (long[1] - short[1])


def run(table):
    table.heading("waap run, CPU of the sampler", theirs="")
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        subprocess.run([BUILD / "tests/fakes/plant", BOARD, place / "board"], check=True)
        board = {"WAAP_PATH_SYSFS": f"{place}/board/sys", "WAAP_PATH_ROOTFS": f"{place}/board",
                 "WAAP_COLLECTOR_JETSON_TEGRASTATS": "off"}
        rows = (("10 Hz", "100ms", {}, 0.005), ("10 Hz, on a Jetson", "100ms", board, 0.005),
                ("100 Hz", "10ms", {}, 0.05))
        for what, interval, variables, most in rows:
            taken = statistics.median(share(place, interval, variables) for _ in range(ROUNDS))
            table.line(what, percent(taken), budget=f"<= {percent(most)}", good=taken <= most)
