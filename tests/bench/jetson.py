"""The daemon that samples the files of a Xavier NX ten times a second."""

import subprocess
import tempfile
import time

from effort import effort
from measure import cpu_seconds, running
from paths import BUILD, HERE
from running import Waap
from table import percent

SECONDS = effort(10, 0.2)
MANIFEST = HERE.parent / "fixtures/jetson/xavier_nx_jp5.tree"


def share(directory, hz):
    """Share of a core that the daemon takes, without scrapes."""
    flags = [
        f"--path.procfs={directory}/proc",
        f"--path.sysfs={directory}/sys",
        f"--path.rootfs={directory}",
        "--collector.disable-defaults",
        "--collector.jetson",
        "--collector.jetson.tegrastats=off",
        f"--sample.hz={hz}",
    ]
    with running(Waap(BUILD / "exporter/waap", *flags)) as waap:
        time.sleep(effort(1, 0))
        before = cpu_seconds(waap)
        time.sleep(SECONDS)
        return (cpu_seconds(waap) - before) / SECONDS


def run(table):
    table.heading("a Xavier NX, sampled", theirs="at 1 Hz")
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([BUILD / "tests/fakes/plant", MANIFEST, directory], check=True)
        shares = [share(directory, hz) for hz in (10, 1)]
    table.limit("jetson at 10 Hz: CPU", percent, *shares, most=0.005)
