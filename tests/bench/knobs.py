"""How long a knob takes from the request to the plugin, at rest and among plugins that write."""

import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from effort import effort
from measure import running
from paths import BUILD
from plugin import Plugin
from running import Waap
from table import seconds

TURNS = effort(400, 5)
PAUSE = 0.005  # between turns, so that each meets the writers elsewhere
N_WRITERS = 8
BUDGET = 5e-3  # what plugins are promised

# Sends its lines until it is killed: so many at once, so many seconds apart.
WRITER = """
import socket, sys, time
path, name, n, pause = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
s = socket.socket(socket.AF_UNIX)
s.connect(path)
s.sendall(b'{"hello": {"plugin": "%s"}}\\n{"metric": "n_total", "type": "counter", "inc": 1}\\n' % name.encode())
lines = b'{"metric": "n_total", "inc": 1}\\n' * n
while True:
    s.sendall(lines)
    time.sleep(pause)
"""

# What else the daemon has to do: lines at once, seconds apart.
LOADS = {
    "idle": None,
    f"{N_WRITERS} writers, 10 k lines/s in all": (125, 0.1),
    f"{N_WRITERS} writers that never rest": (1000, 0),
}


@contextlib.contextmanager
def writers(path, load):
    with contextlib.ExitStack() as stack:
        for i in range(N_WRITERS if load else 0):
            command = [sys.executable, "-c", WRITER, str(path), f"writer-{i}", *map(str, load)]
            process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL))
            stack.callback(process.kill)
        yield


def turns(daemon, plugin):
    """Seconds from each PUT until the plugin has the value."""
    taken = []
    connection = daemon.connect()
    for i in range(TURNS):
        body = json.dumps({"value": i}).encode()
        begin = time.monotonic()
        connection.request("PUT", "/api/v1/plugins/bench/params/res", body)
        heard = plugin.hear()
        taken.append(time.monotonic() - begin)
        if heard != {"param": "res", "value": i} or connection.getresponse().read() == b"":
            raise RuntimeError(f"turned to {i}, heard {heard}")
        plugin.say({"param": "res", "applied": i})
        time.sleep(PAUSE)
    connection.close()
    return taken


def run(table):
    table.heading("a knob, from the request to the plugin")
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "push.sock")
        flags = ("--collector.disable-defaults", "--collector.push", f"--push.socket={path}")
        with running(Waap(BUILD / "exporter/waap", *flags, f"--push.table={directory}/table")) as ours:
            ours.wait_log("push: listening on")
            with Plugin(path, {"plugin": "bench"}, timeout=60) as plugin:
                plugin.tell({"param": "res", "type": "int", "default": 0})
                for name, load in LOADS.items():
                    with writers(path, load):
                        time.sleep(effort(1, 0) if load else 0)
                        taken = turns(ours, plugin)
                    for what, value in (("median", statistics.median(taken)), ("worst", max(taken))):
                        budget = f"<= {seconds(BUDGET)}"
                        table.line(f"{name}, {what} of {TURNS}", seconds(value), budget=budget, good=value <= BUDGET)
