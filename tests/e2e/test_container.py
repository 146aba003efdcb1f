"""The container collector from outside: recorded cgroups, and a runtime that answers, or does not."""

import json
import re
import shutil
import socket
import subprocess
import threading
import time

import pytest

from running import wait_until

A = "a" * 64
B = "b" * 64


class Runtime:
    """Docker's side of its socket: the list of containers, and events. Silent: it only accepts."""

    def __init__(self, path, containers, silent=False):
        self.containers = containers
        self.silent = silent
        self.listeners = []
        self.kept = []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            self.kept.append(peer)
            if self.silent:
                continue
            request = peer.recv(65536).decode()
            peer.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n")
            if request.startswith("GET /events"):
                self.listeners.append(peer)
            else:
                peer.sendall(json.dumps(self.containers).encode())
                peer.close()

    def tell(self, action, id, **attributes):
        event = {"Type": "container", "Action": action,
                 "Actor": {"ID": id, "Attributes": attributes}}
        for peer in self.listeners:
            peer.sendall(json.dumps(event).encode() + b"\n")

    def close(self):
        self.socket.close()
        for peer in self.kept:
            peer.close()


@pytest.fixture
def place(tmp_path, source_root):
    """A root directory with recorded cgroups of one Docker container."""
    shutil.copytree(source_root / "tests/fixtures/cgroup/v2", tmp_path / "cgroup", symlinks=True)
    shutil.rmtree(tmp_path / "cgroup/lxc.payload.web")
    (tmp_path / "run").mkdir()
    add(tmp_path, A)
    return tmp_path


def add(place, id):
    system = place / "cgroup/system.slice"
    shutil.copytree(system, system / f"docker-{id}.scope",
                    ignore=shutil.ignore_patterns("*.service", "*.scope"))


@pytest.fixture
def runtime():
    """runtime(path, containers, silent=False); ends with the test."""
    started = []
    yield lambda *options, **more: started.append(Runtime(*options, **more)) or started[-1]
    for one in started:
        one.close()


def flags(place):
    return ["--collector.disable-defaults", "--collector.container", f"--path.rootfs={place}",
            f"--path.cgroupfs={place / 'cgroup'}"]


def names(daemon):
    page = daemon.get("/metrics").text
    return set(re.findall(r'container_last_seen{id="[^"]*",name="([^"]*)"', page))


def test_names_follow_the_runtime(waap, place, runtime):
    docker = runtime(place / "run/docker.sock", [
        {"Id": A, "Names": ["/web"], "Image": "nginx:1",
         "Labels": {"com.docker.compose.service": "front", "secret": "x"}}])
    daemon = waap(*flags(place))
    wait_until(lambda: names(daemon) == {"web"}, what="the name")
    page = daemon.get("/metrics").text
    assert 'image="nginx:1",container_label_com_docker_compose_service="front"' in page
    assert "secret" not in page
    docker.tell("rename", A, name="www", image="nginx:1")
    wait_until(lambda: names(daemon) == {"www"}, what="the other name")
    docker.tell("create", B, name="cam", image="cam:2")
    time.sleep(0.3)
    add(place, B)
    assert names(daemon) == {"www", "cam"}
    shutil.rmtree(place / f"cgroup/system.slice/docker-{B}.scope")
    assert names(daemon) == {"www"}
    finished = daemon.samples()['container_finished_total{image="cam:2"}']
    assert float(finished) == 1


def test_a_silent_runtime_delays_nothing(waap, place, runtime):
    runtime(place / "run/docker.sock", [], silent=True)
    daemon = waap(*flags(place))
    for _ in range(5):
        answer = daemon.get("/metrics")
        assert answer.seconds < 1
        assert f'name="{A[:12]}"' in answer.text
        assert 'waap_collector_success{collector="container"} 1' in answer.text


def test_promtool(waap, place):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    page = waap(*flags(place)).get("/metrics").text
    check = subprocess.run(["promtool", "check", "metrics"], input=page, text=True,
                           capture_output=True, timeout=20)
    assert (check.returncode, check.stdout + check.stderr) == (0, "")


def test_golden(waap, place, source_root):
    daemon = waap(*flags(place), "--web.disable-exporter-metrics",
                  f"--path.sysfs={source_root / 'tests/fixtures/cgroup/sys'}")
    changing = re.compile(r"^(container_(last_seen|start_time_seconds|cpu_usage_peak_cores).*} ).*$",
                          re.MULTILINE)
    page = changing.sub(r"\1X", daemon.get("/metrics").text)
    lines = [line for line in page.split("\n") if "waap_collector_" not in line]
    golden = source_root / "tests/fixtures/golden/container-v2.prom"
    assert sorted(lines) == sorted(golden.read_text().split("\n"))
