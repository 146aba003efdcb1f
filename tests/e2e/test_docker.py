"""The container collector beside a Docker daemon of its own: private socket, private data, one image
made from busybox. Where Docker cannot run the tests are skipped; .ci/fetch docker gets it."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from running import ROOT, remove_empty_cgroups, wait_until

UNPACKED = ROOT / "build/deps/docker"
IMAGE = "local/busybox:1"


class Docker:
    def __init__(self, place):
        self.place = place
        self.socket = place / "docker.sock"
        paths = [str(UNPACKED / "usr/sbin"), str(UNPACKED / "usr/bin"), os.environ["PATH"]]
        self.environment = {**os.environ, "PATH": ":".join(paths)}
        self.log = open(place / "log", "wb")
        self.process = subprocess.Popen(
            ["dockerd", f"--host=unix://{self.socket}", f"--data-root={place / 'data'}",
             f"--exec-root={place / 'exec'}", f"--pidfile={place / 'pid'}", "--bridge=none",
             "--iptables=false", "--ip6tables=false", "--storage-driver=vfs"],
            env=self.environment, stdout=self.log, stderr=self.log)

    def __call__(self, *arguments, check=True):
        command = ["docker", f"--host=unix://{self.socket}", *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout.strip()

    def run(self, *arguments):
        return self("run", "--detach", "--network=none", *arguments)

    def ready(self):
        assert self.process.poll() is None, "dockerd ended"
        return "Server Version" in self("info", check=False)

    def fill(self):
        root = self.place / "root"
        (root / "bin").mkdir(parents=True)
        shutil.copy2(UNPACKED / "bin/busybox", root / "bin/busybox")
        for applet in ("sh", "sleep", "tail", "true"):
            (root / "bin" / applet).symlink_to("busybox")
        archive = self.place / "root.tar"
        subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
        self("import", str(archive), IMAGE)

    def close(self):
        left = self("ps", "--all", "--quiet", check=False).split()
        if left:
            self("rm", "--force", *left, check=False)
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
        remove_empty_cgroups("docker")


@pytest.fixture(scope="module")
def docker():
    if not (UNPACKED / "usr/sbin/dockerd").exists():
        pytest.skip("no Docker: .ci/fetch docker has not been run, or could not")
    if os.geteuid() != 0:
        pytest.skip("dockerd needs root")
    place = pathlib.Path(tempfile.mkdtemp(prefix="waap-docker-"))
    daemon = Docker(place)
    try:
        wait_until(daemon.ready, 30, "dockerd")
        daemon.fill()
        daemon("run", "--rm", "--network=none", IMAGE, "true")
    except (AssertionError, subprocess.SubprocessError) as problem:
        daemon.close()
        last = (place / "log").read_text().strip().splitlines()[-1:]
        shutil.rmtree(place, ignore_errors=True)
        pytest.skip(f"Docker does not run here: {str(problem).splitlines()[0]} {last}")
    yield daemon
    daemon.close()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def daemon(waap, docker):
    return waap("--collector.disable-defaults", "--collector.container",
                f"--collector.container.docker-socket={docker.socket}",
                "--collector.container.podman-socket=", "--collector.container.crio-socket=")


def of(daemon, name):
    """{metric: value} of the container of that name, and its labels."""
    page = daemon.get("/metrics").text
    assert 'waap_collector_success{collector="container"} 1' in page
    values, labels = {}, {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.labels.get("name") == name:
                values[sample.name] = sample.value
                labels.update(sample.labels)
    return values, labels


def finished(daemon):
    return float(daemon.samples().get(f'container_finished_total{{image="{IMAGE}"}}', 0))


def test_names_labels_rename_restart_pause(docker, daemon):
    id = docker.run("--name=web", "--label=com.docker.compose.service=front", "--memory=64m",
                    "--cpus=0.5", IMAGE, "sleep", "600")
    wait_until(lambda: of(daemon, "web")[0], what="the container")
    values, labels = of(daemon, "web")
    assert labels["image"] == IMAGE and id in labels["id"]
    assert labels["container_label_com_docker_compose_service"] == "front"
    assert values["container_processes"] == 1
    assert values["container_spec_memory_limit_bytes"] == 64 << 20
    assert values["container_spec_cpu_quota"] / values["container_spec_cpu_period"] == 0.5
    assert abs(values["container_start_time_seconds"] - time.time()) < 60
    assert "container_network_receive_bytes_total" not in values
    docker("rename", "web", "www")
    wait_until(lambda: of(daemon, "www")[0], what="the name after the renaming")
    assert of(daemon, "web")[0] == {}
    docker("pause", "www")
    assert of(daemon, "www")[0]["container_threads"] == 1
    docker("unpause", "www")
    before = of(daemon, "www")[0]["container_start_time_seconds"]
    docker("restart", "--time=0", "www")
    wait_until(lambda: of(daemon, "www")[0].get("container_start_time_seconds", 0) > before,
               what="the start after the restart")
    docker("rm", "--force", "www")
    assert of(daemon, "www")[0] == {}


def test_oom_kill(docker, daemon):
    docker.run("--name=hungry", "--memory=16m", "--memory-swap=16m", IMAGE, "sh", "-c",
               "tail /dev/zero; sleep 600")
    wait_until(lambda: of(daemon, "hungry")[0].get("container_oom_events_total") == 1, 30,
               "the killing")
    assert of(daemon, "hungry")[0]["container_memory_max_usage_bytes"] <= 16 << 20
    docker("rm", "--force", "hungry")


def test_many_come_and_go_while_scraping(docker, daemon):
    before = finished(daemon)
    loop = " ".join(["for i in 1 2 3 4 5 6 7 8 9 10; do", "docker", f"--host=unix://{docker.socket}",
                     "run --rm --network=none", IMAGE, "true || exit 1; done"])
    running = [subprocess.Popen(["sh", "-c", loop], env=docker.environment) for _ in range(2)]
    ids = set()
    while any(process.poll() is None for process in running):
        page = daemon.get("/metrics").text
        assert 'waap_collector_success{collector="container"} 1' in page
        ids.update(re.findall(r'container_last_seen{id="([^"]+)"', page))
    assert [process.returncode for process in running] == [0, 0]
    wait_until(lambda: finished(daemon) == before + 20, what="twenty that have ended")
    assert "container_last_seen{" not in daemon.get("/metrics").text
