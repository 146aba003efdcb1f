"""What a running program uses while clients ask it."""

import contextlib
import io
import mmap
import pathlib
import re
import struct
import subprocess
import time

from paths import BUILD


@contextlib.contextmanager
def running(program):
    """Ends the program at last; what it said is of interest to tests only."""
    try:
        yield program
    finally:
        with contextlib.redirect_stdout(io.StringIO()):
            program.close()


def cpu_seconds(program):
    """User and system time of all its threads, also of those that ended, in nanosecond steps: the
    clock that clock_getcpuclockid(3) names, for which Python has no call."""
    return time.clock_gettime(~program.process.pid << 3 | 2)


class Watch:
    """What loop_watch.c notes of the daemon's loop."""

    def __init__(self, directory):
        path = pathlib.Path(directory, "watch")
        path.write_bytes(bytes(16))
        self.env = {"LD_PRELOAD": str(BUILD / "tests/bench/libloop_watch.so"), "LOOP_WATCH": str(path)}
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 16)

    def begin(self):
        self.map[:] = bytes(16)

    def longest(self):
        return struct.unpack("=QQ", self.map[:])[1] / 1e9


class Load:
    """What answering n requests took: seconds of CPU and of waiting, per request."""

    def __init__(self, program, client):
        cpu = cpu_seconds(program)
        begin = time.monotonic()
        n = client()
        self.seconds = (time.monotonic() - begin) / n
        self.cpu = (cpu_seconds(program) - cpu) / n


def curl(program, n, gzip):
    """Gets /metrics n times over one connection and throws it away."""
    url = f"http://127.0.0.1:{program.port}/metrics?turn=[1-{n}]"
    header = ["--header", "Accept-Encoding: gzip"] if gzip else []
    subprocess.run(["curl", "-sf", "-o", "/dev/null", *header, url], check=True)
    return n


def wrk(program, connections, run_seconds):
    """Gets /metrics over and over on some connections at once; returns how often."""
    url = f"http://127.0.0.1:{program.port}/metrics"
    command = ["wrk", "-t1", f"-c{connections}", f"-d{run_seconds}s", url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in text:
        raise RuntimeError(text)
    return int(re.search(r"(\d+) requests in", text)[1])
