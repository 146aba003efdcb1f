"""Real programs that waap has to get along with, as Debian packages them."""

import functools
import json
import pathlib
import shutil
import subprocess
import urllib.parse

import pytest

from running import ROOT, Program, free_port

PROMETHEUS_VERSIONS = ("2.42", "2.53", "3")

# Where .ci/fetch unpacks them, by program and version.
UNPACKED = {
    ("kubectl", ""): "kubectl",
    ("prometheus-node-exporter", ""): "node-exporter",
    ("prometheus-pushgateway", ""): "pushgateway",
    ("victoria-metrics", ""): "victoria-metrics",
    ("vmagent", ""): "victoria-metrics",
    ("vmalert", ""): "victoria-metrics",
}
for _version in PROMETHEUS_VERSIONS:
    UNPACKED["prometheus", _version] = UNPACKED["promtool", _version] = f"prometheus-{_version}"


@functools.lru_cache(maxsize=None)
def find_program(name, version=""):
    """The path of a program: unpacked, or installed in that version; None where there is none."""
    path = ROOT / "build/deps" / UNPACKED[name, version] / "usr/bin" / name
    if path.exists():
        return path
    installed = shutil.which(name)
    if installed is None:
        return None
    done = subprocess.run([installed, "--version"], capture_output=True, text=True, timeout=30)
    return pathlib.Path(installed) if f"version {version}" in done.stdout + done.stderr else None


def need_program(name, version=""):
    """The same, but the test is skipped where there is none."""
    path = find_program(name, version)
    if path is None:
        pytest.skip(f"no {name} {version}".rstrip() + " on this machine (make deps)")
    return path


def promtool(version, *arguments, page=b""):
    """Runs promtool on `page`: exit code and what it said."""
    command = [need_program("promtool", version), *arguments]
    done = subprocess.run(command, input=page, capture_output=True, timeout=60)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


class Peer(Program):
    """A peer on a port of its own, ready when it answers."""

    def __init__(self, binary, *flags, ready_path="/-/ready", **options):
        address = f"127.0.0.1:{free_port()}"
        command = [binary, f"--web.listen-address={address}", *flags]
        super().__init__(command, f"http://{address}", **options)
        try:
            self.wait_ready(ready_path)
        except AssertionError:
            self.stop()
            raise


class NodeExporter(Peer):
    def __init__(self, *flags):
        super().__init__(need_program("prometheus-node-exporter"), *flags, ready_path="/metrics")


class Pushgateway(Peer):
    def __init__(self, *flags):
        super().__init__(need_program("prometheus-pushgateway"), *flags)


class Prometheus(Peer):
    """A server that scrapes as the jobs say: {name: options of the job}; `config` adds to its configuration. Or `jobs` is
    a whole prometheus.yml."""

    def __init__(self, binary, directory, target_port, jobs, *flags, config=None):
        if not isinstance(jobs, str):
            jobs = json.dumps({  # JSON is YAML
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                "scrape_configs": [
                    {
                        "job_name": name,
                        "static_configs": [{"targets": [f"127.0.0.1:{target_port}"]}],
                        **options,
                    }
                    for name, options in jobs.items()
                ],
                **(config or {}),
            })
        directory = pathlib.Path(directory)
        file = directory / "prometheus.yml"
        file.write_text(jobs)
        storage = f"--storage.tsdb.path={directory / 'data'}"
        super().__init__(binary, f"--config.file={file}", storage, *flags, env={"GOMAXPROCS": "2"})

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
