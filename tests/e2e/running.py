"""Programs that run while a test looks at them: the daemon and the Prometheus servers."""

import contextlib
import gzip
import http.client
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until(condition, seconds=10, what="the condition"):
    """Asks again and again; returns the first answer that is true."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.02)


class Answer:
    def __init__(self, response, seconds):
        self.status = response.status
        self.headers = response.headers
        self.raw = response.read()
        self.seconds = seconds
        packed = self.headers.get("Content-Encoding") == "gzip"
        self.body = gzip.decompress(self.raw) if packed else self.raw

    @property
    def text(self):
        return self.body.decode()


class Program:
    """A program with an HTTP server on one port of the loopback interface."""

    def __init__(self, command, port, ready_path):
        self.port = port
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: self.is_ready(ready_path), 20, f"{command[0]} ready")
        except AssertionError:
            self.stop()
            raise AssertionError(self.output()) from None

    def is_ready(self, path):
        assert self.process.poll() is None, self.output()
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.get(path).status == 200
        return False

    def output(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def connect(self, timeout=30):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def get(self, path, headers=None, method="GET", timeout=30):
        begin = time.monotonic()
        connection = self.connect(timeout)
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = Answer(connection.getresponse(), 0)
        answer.seconds = time.monotonic() - begin
        return answer

    def rss_kib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def stop(self, seconds=10):
        """Asks it to end; returns its exit code and how long it took."""
        begin = time.monotonic()
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return self.process.returncode, time.monotonic() - begin

    def close(self):
        """Ends it; a build with sanitizers must have had nothing to say."""
        self.stop()
        output = self.output()
        self.log.close()
        assert "Sanitizer" not in output and "runtime error" not in output, output

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Waap(Program):
    def __init__(self, binary, *flags):
        port = free_port()
        listen = f"--web.listen-address=127.0.0.1:{port}"
        super().__init__([str(binary), "serve", listen, *flags], port, "/-/ready")

    def samples(self, headers=None, path="/metrics"):
        """The page as {series: value text}, from the lines as they stand."""
        answer = self.get(path, headers)
        assert answer.status == 200, answer.text
        lines = [line for line in answer.text.split("\n") if line and line[0] != "#"]
        return dict(line.rsplit(" ", 1) for line in lines)


def find_program(name, version):
    """Where the program of one version is unpacked, or None."""
    path = BUILD / "deps" / f"prometheus-{version}" / "usr/bin" / name
    if path.exists():
        return path
    installed = pathlib.Path("/usr/bin") / name
    if version == "2.42" and installed.exists():
        text = subprocess.run([installed, "--version"], capture_output=True, text=True).stdout
        return installed if "version 2.42" in text else None
    return None


class Prometheus(Program):
    """A server that scrapes as the jobs say: {name: options of the job}."""

    def __init__(self, binary, directory, target_port, jobs, *flags):
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [
                {
                    "job_name": name,
                    "static_configs": [{"targets": [f"127.0.0.1:{target_port}"]}],
                    **options,
                }
                for name, options in jobs.items()
            ],
        }
        directory = pathlib.Path(directory)
        file = directory / "prometheus.yml"
        file.write_text(json.dumps(config))  # JSON is YAML
        port = free_port()
        command = [
            str(binary),
            f"--config.file={file}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            *flags,
        ]
        os.environ.setdefault("GOMAXPROCS", "2")
        super().__init__(command, port, "/-/ready")

    def api(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        answer = self.get(f"/api/v1/{path}?{query}")
        assert answer.status == 200, answer.text
        return json.loads(answer.body)["data"]

    def targets(self):
        """{job: target} once every job has scraped."""
        active = self.api("targets", state="active")["activeTargets"]
        done = all(target["health"] != "unknown" for target in active)
        return {target["labels"]["job"]: target for target in active} if active and done else None

    def query(self, text):
        return self.api("query", query=text)["result"]
