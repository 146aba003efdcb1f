"""Metric lines over the plugin channel, from one plugin that never rests."""

import pathlib
import statistics
import tempfile

from effort import effort
from measure import Load, running
from paths import BUILD
from plugin import Plugin
from running import Waap
from table import rate

N_LINES = effort(500_000, 4000)
BLOCK = 2000
N_SERIES = 100
ROUNDS = effort(5, 1)
BUDGET = 500e3  # DESIGN: lines per second of one core

# What every line looks like at first, and from then on.
FORMS = {
    "increments": (
        '{{"metric":"frames_total","type":"counter","inc":1,"labels":{{"cam":"{}"}}}}',
        '{{"metric":"frames_total","inc":1,"labels":{{"cam":"{}"}}}}',
    ),
    "totals": (
        '{{"metric":"seen_total","type":"counter","total":0,"labels":{{"cam":"{}"}}}}',
        '{{"metric":"seen_total","total":123456,"labels":{{"cam":"{}"}}}}',
    ),
    "gauges with two labels": (
        '{{"metric":"load","type":"gauge","set":0,"labels":{{"cam":"{}","stage":"detect"}}}}',
        '{{"metric":"load","set":0.7312,"labels":{{"cam":"{}","stage":"detect"}}}}',
    ),
    "observations": (
        '{{"metric":"t_seconds","type":"histogram","buckets":[0.01,0.03,0.1,0.3,1],"observe":0.1,'
        '"labels":{{"cam":"{}"}}}}',
        '{{"metric":"t_seconds","observe":0.0312,"labels":{{"cam":"{}"}}}}',
    ),
}


def lines(form, n):
    return "".join(form.format(i % N_SERIES) + "\n" for i in range(n)).encode()


def send(plugin, block):
    """Sends the lines and waits until the last is taken."""
    for _ in range(N_LINES // BLOCK):
        plugin.send(block)
    if plugin.settle():
        raise RuntimeError("a line was refused")
    return N_LINES


def run(table):
    table.heading("lines over the plugin channel, per second of CPU")
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "push.sock")
        flags = ("--collector.disable-defaults", "--collector.push", f"--push.socket={path}")
        with running(Waap(BUILD / "exporter/waap", *flags, f"--push.table={directory}/table")) as ours:
            ours.wait_log("push: listening on")
            with Plugin(path, {"plugin": "bench", "start": "1"}, timeout=60) as plugin:
                for name, (first, later) in FORMS.items():
                    plugin.send(lines(first, N_SERIES))
                    block = lines(later, BLOCK)
                    loads = [Load(ours, lambda b=block: send(plugin, b)) for _ in range(ROUNDS)]
                    value = statistics.median(1 / load.cpu for load in loads)
                    table.line(name, rate(value), budget=f">= {rate(BUDGET)}", good=value >= BUDGET)
