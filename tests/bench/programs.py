"""The benchmarks that are C programs: CPU time of single steps, and their instruction counts."""

import re
import shutil
import subprocess

from effort import effort
from paths import BUILD, HERE
from table import count, seconds

REFERENCE = HERE / "instructions.txt"
HEAD = "# Optimised build by gcc 12 for x86-64. Written by: run.py --update instructions\n"
TIMED = ("cgroup", "container", "exposition", "host", "jetson", "number", "push")
OTHERS = ("answer", "instructions", "nvml", "plugin")
ARGUMENTS = {"jetson": [str(HERE.parent / "fixtures/jetson/xavier_nx_jp5.tree")]}
MOST_GROWTH = 5  # percent
# How much worse than the bare calls a collection may be, as the ratio that the table shows.
LEAST = {
    "1000 cgroups, one collection": 0.77,
    "1000 containers, one collection": 0.77,
    "20 containers, one collection, files kept open": 1,
}


def program(name):
    return str(BUILD / f"tests/bench/bench_{name}")


def build():
    names = [f"tests/bench/bench_{name}" for name in (*TIMED, *OTHERS)]
    fakes = ("tests/fakes/libnvidia-ml.so.1", "tests/fakes/plant", "tests/fakes/waap-fake")
    command = ["ninja", "-C", BUILD, *names, *fakes, "tests/bench/libloop_watch.so", "exporter/waap"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stdout)


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True)


def printed(*command):
    """The fields of every line that a benchmark prints, of which there is one at least."""
    lines = output(*command).stdout.splitlines()
    if not lines:
        raise RuntimeError(f"{command[0]}: printed nothing")
    return [line.split("\t") for line in lines]


def run_timed(table):
    table.heading("single steps, CPU time")
    for name in TIMED:
        for what, ours, *peer in printed(program(name), *ARGUMENTS.get(name, [])):
            if peer:
                table.versus(f"{what} ({peer[1]})", seconds, [float(ours)], [float(peer[0])],
                             least=LEAST.get(what))
            elif table.peer_per_series is not None:
                table.versus(f"{what} (pushgateway)", seconds, [float(ours)], [table.peer_per_series])
            else:
                table.line(what, seconds(float(ours)))


def count_instructions(task):
    text = output(
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--toggle-collect=measured",
        program("instructions"),
        task,
    ).stderr
    return int(re.search(r"Collected : (\d+)", text)[1])


def read_reference():
    """{task: instructions} of the file; a line is a count and a task."""
    if not REFERENCE.exists():
        return {}
    lines = [line for line in REFERENCE.read_text().splitlines() if not line.startswith("#")]
    return {task: int(n) for n, task in (line.split(maxsplit=1) for line in lines)}


def write_reference(counts):
    REFERENCE.write_text(HEAD + "".join(f"{n:>10} {task}\n" for task, n in counts.items()))


def run_instructions(table, update=False):
    table.heading("instructions by callgrind", theirs="reference", ratio="change")
    if shutil.which("valgrind") is None:
        table.skip("instruction counts", "no valgrind")
        return
    reference = read_reference()
    tasks = effort([task for task, in printed(program("instructions"))], ["negotiate 3 headers"])
    counts = {task: count_instructions(task) for task in tasks}
    for task, n in counts.items():
        before = reference.get(task)
        if before is None:
            table.line(task, count(n), "none")
            continue
        growth = 100 * (n / before - 1)
        change, budget = f"{growth:+.1f} %", f"<= +{MOST_GROWTH} %"
        table.line(task, count(n), count(before), change, budget, growth <= MOST_GROWTH)
    if update:
        write_reference(counts)
