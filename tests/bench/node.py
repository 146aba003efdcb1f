"""The daemon as it runs on a node, beside Debian's node_exporter with the same collectors."""

import shutil
import tempfile
import time

from effort import effort
from measure import Load, cpu_seconds, running, wrk
from paths import BUILD
from peers import NodeExporter, find_program
from running import Waap
from table import mebibytes, percent, rate, seconds

ROUNDS = effort(3, 1)
ROUND_SECONDS = 1
IDLE_SECONDS = effort(10, 0.2)
COLLECTORS = (
    "cpu diskstats filesystem loadavg meminfo netdev pressure stat textfile thermal_zone uname"
).split()


def write_textfile(directory):
    with open(f"{directory}/jobs.prom", "w") as file:
        for i in range(20):
            file.write(f'backup_age_seconds{{job="{i}"}} {i * 1000.5}\n')


def idle(table, ours, theirs):
    """What both use between scrapes, and a daemon of ours with a collector that samples."""
    flags = ("--collector.disable-defaults", "--collector.sampled")
    with running(Waap(BUILD / "tests/fakes/waap-fake", *flags)) as sampling:
        programs = (ours, theirs, sampling)
        for program in programs:
            program.get("/metrics")
        time.sleep(effort(1, 0))
        before = [cpu_seconds(program) for program in programs]
        time.sleep(IDLE_SECONDS)
        used = [cpu_seconds(program) - cpu for program, cpu in zip(programs, before)]
    rss = [program.rss_kib() * 1024 for program in (ours, theirs)]
    our_share, their_share, sampling_share = (cpu / IDLE_SECONDS for cpu in used)
    table.limit("idle, after a scrape: RSS", mebibytes, *rss, most=6 * 2**20)
    table.limit("idle: CPU", percent, our_share, their_share, most=0.01)
    table.limit("idle, one sampler at 10 Hz: CPU", percent, sampling_share, their_share, most=0.01)


def load(table, ours, theirs, connections):
    rounds = [
        (
            Load(ours, lambda: wrk(ours, connections, ROUND_SECONDS)),
            Load(theirs, lambda: wrk(theirs, connections, ROUND_SECONDS)),
        )
        for _ in range(ROUNDS)
    ]
    clients = "1 client" if connections == 1 else f"{connections} clients"
    table.versus(
        f"{clients}: requests/s",
        rate,
        [1 / our.seconds for our, _ in rounds],
        [1 / their.seconds for _, their in rounds],
        more_is_better=True,
    )
    table.versus(
        f"{clients}: CPU per scrape",
        seconds,
        [our.cpu for our, _ in rounds],
        [their.cpu for _, their in rounds],
    )


def compare(table, ours, theirs):
    idle(table, ours, theirs)
    if shutil.which("wrk") is None:
        table.skip("requests/s", "no wrk")
        return
    for connections in (1, 16):
        load(table, ours, theirs, connections)
    rss = [program.rss_kib() * 1024 for program in (ours, theirs)]
    table.versus("after that: RSS", mebibytes, rss[:1], rss[1:])


def run(table):
    table.heading("a node: host and textfile", theirs="node_exp.")
    if find_program("prometheus-node-exporter") is None:
        table.skip("beside node_exporter", "not there")
        return
    with tempfile.TemporaryDirectory() as directory:
        write_textfile(directory)
        files = f"--collector.textfile.directory={directory}"
        same = ["--collector.disable-defaults", *(f"--collector.{name}" for name in COLLECTORS)]
        with running(Waap(BUILD / "exporter/waap", files)) as ours:
            with running(NodeExporter(files, *same)) as theirs:
                compare(table, ours, theirs)
