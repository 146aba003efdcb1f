"""How large a central store has to be: measures demo nodes, Debian's agent and Debian's victoria-metrics, and prints
the table of deploy/README.md. fleet_sizing.py [SECONDS]: the longer, the more samples share a block on disk, as they do after days."""

import contextlib
import pathlib
import sys
import tempfile
import time

import paths
from effort import effort
from fleet import Agent, Central
from measure import cpu_seconds, running
from running import Waap, wait_until

BINARY = paths.BUILD / "exporter/waap"
KINDS = ("jetson", "dgpu")
BYTES_SECONDS = effort(600, 2)
CROWD = effort(200, 4)
CROWD_SECONDS = effort(90, 3)
CROWD_INTERVAL = effort("10s", "1s")
STEADY = effort(10, 2)  # looks at the store's size that must agree
# What is wanted of them, and of how large a machine.
INTERVAL = 15
CORES, MEMORY, DISK, DAYS = 4, 8e9, 500e9, 365
# Queries, merging and page cache want the rest.
SHARE = 0.5
DAY = 86400


def total(program, name, **labels):
    """The sum over the series of a metric that have these labels."""
    wanted = [f'{label}="{value}' for label, value in labels.items()]
    return sum(float(value) for series, value in program.samples().items()
               if series.split("{")[0] == name and all(text in series for text in wanted))


def size_of(directory):
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


@contextlib.contextmanager
def fleet(nodes, interval):
    """Demo nodes, each scraped under as many names as it takes to have so many, with agent and store."""
    with contextlib.ExitStack() as stack:
        place = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="waap-sizing-")))
        demos = [stack.enter_context(running(Waap(BINARY, f"--demo={kind}", env={"XDG_RUNTIME_DIR": str(place)})))
                 for kind in KINDS]
        central = stack.enter_context(running(Central(place)))
        idle = central.rss_kib() * 1024
        targets = [(f"127.0.0.1:{demos[i % len(demos)].port}", {"node": f"node-{i}"}) for i in range(nodes)]
        agent = stack.enter_context(running(Agent(place, central, central.port, targets, interval)))
        yield place, demos, agent, central, idle


def wait_sent(agent):
    """Scraping ends, and everything is in the store."""
    agent.stop_scraping()
    while agent.number("prometheus_remote_storage_samples_pending") > 0:
        time.sleep(0.5)


def merge(central):
    """Has the store put its parts together, as it does by itself in time; it begins and ends when it likes."""
    central.api("/internal/force_flush")
    central.api("/internal/force_merge")
    sizes = []
    while sizes[-STEADY:] != [total(central, "vm_data_size_bytes", type="storage")] * STEADY:
        sizes.append(total(central, "vm_data_size_bytes", type="storage"))
        time.sleep(0.5)


def measure_bytes(seconds):
    """Series of each kind of node; bytes a sample takes in the agent's log, on the wire and in the store."""
    with fleet(2 * len(KINDS), "1s") as (place, demos, agent, central, _):
        time.sleep(seconds)
        wait_until(lambda: total(central, "vm_rows_inserted_total") > 0, 120, "the first samples")
        series = [len(demo.samples()) for demo in demos]
        wait_sent(agent)
        sent = agent.number("prometheus_remote_storage_samples_total")
        logged = size_of(place / "agent") / agent.number("prometheus_agent_samples_appended_total")
        wire = agent.number("prometheus_remote_storage_bytes_total") / sent
        merge(central)
        return {"series": series, "logged": logged, "wire": wire,
                "stored": total(central, "vm_data_size_bytes", type="storage") / total(central, "vm_rows", type="storage"),
                "agent_memory": agent.rss_kib() * 1024}


def measure_crowd():
    """Memory of the store per series, and its CPU time per sample."""
    with fleet(CROWD, CROWD_INTERVAL) as (_, _, _, central, idle):
        time.sleep(CROWD_SECONDS / 3)
        rows, cpu = total(central, "vm_rows_inserted_total"), cpu_seconds(central)
        time.sleep(CROWD_SECONDS * 2 / 3)
        samples = wait_until(lambda: total(central, "vm_rows_inserted_total") - rows, 120, "samples")
        cpu = (cpu_seconds(central) - cpu) / samples
        series = wait_until(lambda: total(central, "vm_cache_entries", type="storage/hour_metric_ids"), 120, "series")
        return {"memory": (central.rss_kib() * 1024 - idle) / series, "cpu": cpu, "idle": idle}


def limits(series, found):
    """Nodes that each part of the central machine can take."""
    rate = series / INTERVAL
    return {
        "CPU": CORES * SHARE / (rate * found["cpu"]),
        "memory": (MEMORY * SHARE - found["idle"]) / (series * found["memory"]),
        "disk": DISK / (rate * found["stored"] * DAY * DAYS),
    }


def rows(found):
    """The table, a row each."""
    yield f"one sample every {INTERVAL} s", "Jetson", "two graphics cards"
    yield ("---",) * 3
    series = found["series"]
    per_day = [count / INTERVAL * DAY for count in series]
    yield "series of a node", *(f"{count}" for count in series)
    yield f"sent, {found['wire']:.1f} bytes a sample", *(f"{day * found['wire'] / 1e6:.0f} MB a day" for day in per_day)
    yield (f"waiting on the node's disk, {found['logged']:.1f} bytes a sample",
           *(f"{day * found['logged'] / 1e6:.0f} MB a day" for day in per_day))
    yield (f"in the central store, {found['stored']:.1f} bytes a sample",
           *(f"{day * found['stored'] * DAYS / 1e9:.2f} GB a year" for day in per_day))
    for what, unit in (("CPU", f"{found['cpu'] * 1e6:.1f} µs a sample, half of {CORES} cores"),
                       ("memory", f"{found['memory'] / 1e3:.1f} kB a series, half of {MEMORY / 1e9:.0f} GB"),
                       ("disk", f"{DISK / 1e9:.0f} GB for a year")):
        yield f"nodes by {what}: {unit}", *(f"{limits(count, found)[what]:.0f}" for count in series)
    fewest = [min(limits(count, found).values()) for count in series]
    yield "**nodes for such a central machine**", *(f"**{count:.0f}**" for count in fewest)


def run(table):
    table.heading("fleet sizing", "Jetson", "server", "")
    for row in rows({**measure_bytes(BYTES_SECONDS), **measure_crowd()}):
        table.line(*row)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else BYTES_SECONDS
    found = {**measure_bytes(seconds), **measure_crowd()}
    for row in rows(found):
        print("| " + " | ".join(row) + " |")
    print(f"\nThe agent took {found['agent_memory'] / 1e6:.0f} MB of memory.")


if __name__ == "__main__":
    main()
