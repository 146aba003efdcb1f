"""Programs that run while a test looks at them: on loopback, with their log, asked over HTTP."""

import contextlib
import gzip
import http.client
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

import pytest
from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from waiting import LIMIT, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASK_OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0"}
# What every daemon of a test is told unless the test says otherwise: nothing under /run is touched.
DEFAULTS = {"--push.socket": "", "--push.table": "", "--web.listen-address": "127.0.0.1:0"}
SANITIZER_REPORT = re.compile(r".*(?:(?:Address|Leak|Thread)Sanitizer|: runtime error: ).*")


def free_port():
    """A port that nobody listens on, and that no client is given before the test uses it."""
    first_of_clients = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = range(1024, first_of_clients) or [0]
    while True:
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", random.choice(ports)))
            return listener.getsockname()[1]


def own_address():
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        try:
            sender.connect(("203.0.113.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return sender.getsockname()[0]


def remove_empty_cgroups(cgroup):
    """Removes what a runtime leaves behind, a cgroup and its parents, wherever nothing is in them."""
    top = pathlib.Path("/sys/fs/cgroup")
    for root in (top, *top.iterdir()):
        path = root / cgroup
        while path.is_dir() and path != root:
            try:
                path.rmdir()
            except OSError:
                break
            path = path.parent


def wait_reached(hang_file):
    """Until the collector `hang` is in the call that does not return."""
    reached = hang_file.with_name("hang.reached")
    wait_until(reached.exists, what="the call that hangs")
    reached.unlink()


class Answer:
    """`raw` is what came over the wire, `body` is unpacked, `text` is decoded."""

    def __init__(self, response, begin):
        self.status = response.status
        self.headers = response.headers
        self.raw = response.read()
        self.seconds = time.monotonic() - begin
        packed = self.headers.get("Content-Encoding") == "gzip"
        self.body = gzip.decompress(self.raw) if packed else self.raw

    @property
    def text(self):
        return self.body.decode()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def connect(url, timeout=LIMIT):
    """A connection to http://host:port or unix:/path."""
    place = urllib.parse.urlsplit(url)
    if place.scheme == "unix":
        return UnixConnection(place.path, timeout)
    return http.client.HTTPConnection(place.netloc, timeout=timeout)


class Program:
    """A program with an HTTP server. What it says is kept; after the test it is ended."""

    def __init__(self, command, url, **options):
        self.command = [str(word) for word in command]
        self.url = url
        self.ended = False
        # In append mode, as the program and our own reading share one position in the file.
        self.log = tempfile.TemporaryFile("ab+")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WAAP_")}
        environment.update(options.pop("env", {}))
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env=environment,
            **options,
        )

    @property
    def port(self):
        return urllib.parse.urlsplit(self.url).port

    def output(self):
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), size, 0).decode(errors="replace")

    def wait_log(self, text, seconds=LIMIT):
        """Waits for a line that contains `text` and returns the first one."""

        def find():
            over = self.process.poll() is not None
            found = [line for line in self.output().split("\n") if text in line]
            assert found or not over, f"ended before it said {text!r}:\n{self.output()}"
            return found

        return wait_until(find, seconds, f"a line with {text!r}")[0]

    def wait_ready(self, path="/-/ready", seconds=LIMIT):
        """Waits until it answers; returns itself."""

        def ready():
            assert self.process.poll() is None, self.output()
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self.get(path).status == 200

        wait_until(ready, seconds, f"{self.command[0]} ready")
        return self

    def connect(self, timeout=LIMIT):
        return connect(self.url, timeout)

    def get(self, path, headers=None, method="GET", timeout=LIMIT, body=None):
        """One request on a connection of its own, with no header that was not asked for."""
        begin = time.monotonic()
        with contextlib.closing(self.connect(timeout)) as connection:
            connection.putrequest(method, path, skip_host="Host" in (headers or {}), skip_accept_encoding=True)
            length = {} if body is None else {"Content-Length": str(len(body))}
            for name, value in {**length, **(headers or {})}.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            return Answer(connection.getresponse(), begin)

    def samples(self, headers=None, path="/metrics"):
        """The page as {series: value text}, from the lines as they stand."""
        answer = self.get(path, headers)
        assert answer.status == 200, answer.text
        lines = [line for line in answer.text.split("\n") if line and line[0] != "#"]
        return dict(line.rsplit(" ", 1) for line in lines)

    def metrics(self, path="/metrics", openmetrics=False):
        """The page as Prometheus' Python client reads it: {(name, frozenset of labels): value}."""
        answer = self.get(path, ASK_OPENMETRICS if openmetrics else {})
        assert answer.status == 200, answer.text
        parser = openmetrics_parser if openmetrics else text_parser
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in parser.text_string_to_metric_families(answer.text)
            for sample in family.samples
        }

    def rss_kib(self, part="VmRSS"):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split(f"{part}:")[1].split()[0])

    def reset_peak(self):
        """From now on rss_kib("VmHWM") is the most that was in use."""
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def cpu_seconds(self):
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        user, system = stat.rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stop(self, seconds=LIMIT, signal=signal.SIGTERM):
        """Asks it to end; returns its exit code (negative for a signal) and how long it took."""
        begin = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal)
        return self.wait_exit(seconds), time.monotonic() - begin

    def wait_exit(self, seconds=LIMIT):
        """Waits for it to end by itself; returns its exit code, which the caller judges."""
        self.ended = True
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.command[0]}: still there after {seconds} s") from None

    def close(self):
        """Ends it after the test; pytest shows the output of a test that failed."""
        try:
            self.stop()
        finally:
            print(" ".join(self.command), self.output(), sep="\n")
            self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Waap(Program):
    """The daemon, with DEFAULTS where the flags say nothing. It must end with 0 (unless the
    test has ended it and seen the code), and no sanitizer may have complained."""

    def __init__(self, binary, *flags, wait=True, **options):
        flags = [str(flag) for flag in flags]
        for name, value in DEFAULTS.items():
            if not any(flag.split("=")[0] == name for flag in flags):
                flags.append(f"{name}={value}")
        super().__init__([binary, "serve", *flags], None, **options)
        if wait:
            self.wait_listening()

    def wait_listening(self, seconds=LIMIT):
        try:
            self.wait_log("http: listening on ", seconds)
        except AssertionError:
            self.stop()
            raise
        first = self.addresses()[0]
        self.url = first if first.startswith("unix:") else f"http://{first}"

    def addresses(self):
        """Every address that it has said to listen on."""
        return re.findall(r'http: listening on ([^\s"]+)', self.output())

    def close(self):
        judged = self.ended
        try:
            code, _ = self.stop()
            assert judged or code == 0, f"waap ended with {code}"
            report = SANITIZER_REPORT.search(self.output())
            assert report is None, report.group()
        finally:
            super().close()
