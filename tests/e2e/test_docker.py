"""The container collector beside a real Docker daemon, on this machine's own kernel and cgroups."""

import concurrent.futures
import json
import os
import pathlib
import re
import signal
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dockerd import IMAGE, docker_of_our_own, root_filesystem
from waiting import pace, wait_until

MIB = 1 << 20
NETWORK = [f"container_network_{way}_{what}_total" for way in ("receive", "transmit")
           for what in ("bytes", "packets", "errors", "packets_dropped")]


@pytest.fixture(scope="module")
def running_docker():
    with docker_of_our_own() as docker:
        yield docker


@pytest.fixture
def docker(running_docker):
    yield running_docker
    running_docker.remove_all()


@pytest.fixture
def start(waap, docker):
    return lambda: waap("--collector.disable-defaults", "--collector.container",
                        f"--collector.container.docker-socket={docker.socket}",
                        "--collector.container.podman-socket=")


@pytest.fixture
def daemon(start):
    return start()


@pytest.fixture
def load(docker, tmp_path):
    """load("burn 2"): has it done in a container called "load"; returns the CPU seconds that it has
    used in all."""
    for name in ("ask", "answer"):
        os.mkfifo(tmp_path / name)
    docker.run("load", "load", "/talk", Binds=[f"{tmp_path}:/talk"])

    def order(words):
        (tmp_path / "ask").write_text(words + "\n")
        return float((tmp_path / "answer").read_text())

    return order


def ours(daemon, docker):
    """The samples of this Docker's containers: there may be others on the machine."""
    page = daemon.get("/metrics").text
    assert 'waap_collector_success{collector="container"} 1' in page
    return [sample for family in text_string_to_metric_families(page) for sample in family.samples
            if f"/{docker.cgroup}/" in sample.labels.get("id", "")]


def of(daemon, docker, name):
    """{metric: value} of the container of that name."""
    return {sample.name: sample.value for sample in ours(daemon, docker)
            if sample.labels["name"] == name}


def finished(daemon, what="total"):
    return float(daemon.samples().get(f'container_finished_{what}{{image="{IMAGE}"}}', 0))


def test_names_labels_limits(docker, daemon):
    id = docker.run("web", "sleep", "600", labels={"com.docker.compose.service": "front"},
                    Memory=64 * MIB, NanoCpus=500000000, PidsLimit=20)
    wait_until(lambda: of(daemon, docker, "web"), what="the container")
    labels = next(sample.labels for sample in ours(daemon, docker)
                  if sample.name == "container_last_seen")
    assert labels == {"id": f"/{docker.cgroup}/{id}", "name": "web", "image": IMAGE,
                      "container_label_com_docker_compose_service": "front"}
    values = of(daemon, docker, "web")
    assert values["container_processes"] == 1
    assert values["container_threads_max"] == 20
    assert values["container_spec_memory_limit_bytes"] == 64 * MIB
    assert values["container_spec_cpu_quota"] / values["container_spec_cpu_period"] == 0.5
    assert abs(values["container_start_time_seconds"] - time.time()) < 60
    docker.remove("web")
    assert ours(daemon, docker) == []


def test_rename_pause_restart(docker, daemon):
    docker.run("web", "sleep", "600")
    wait_until(lambda: of(daemon, docker, "web"), what="the container")
    docker.act("web", "rename", name="www")
    wait_until(lambda: of(daemon, docker, "www"), what="the name after the renaming")
    assert of(daemon, docker, "web") == {}
    docker.act("www", "pause")
    paused = of(daemon, docker, "www")
    assert paused["container_threads"] == 1
    assert of(daemon, docker, "www")["container_cpu_usage_seconds_total"] == (
        paused["container_cpu_usage_seconds_total"])
    docker.act("www", "unpause")
    before = finished(daemon)
    docker.act("www", "restart", t=0)
    wait_until(lambda: of(daemon, docker, "www").get("container_start_time_seconds", 0)
               > paused["container_start_time_seconds"], what="the start after the restart")
    assert finished(daemon) == before + 1
    docker.act("www", "stop", t=0)
    assert ours(daemon, docker) == []
    docker.act("www", "start")
    wait_until(lambda: of(daemon, docker, "www"), what="the container once more")


def test_what_the_load_did(docker, daemon, load):
    wait_until(lambda: of(daemon, docker, "load"), what="the container")
    load("burn 0")  # the first time everything takes longer, answering too
    began, before = load("burn 0"), of(daemon, docker, "load")
    ended, after = load("burn 2"), of(daemon, docker, "load")
    usage = "container_cpu_usage_seconds_total"
    assert after[usage] - before[usage] == pytest.approx(ended - began, rel=0.02)
    load(f"hold {32 * MIB}")
    # The kernel adds up the last few pages every two seconds, hence "after" and not "before".
    wait_until(lambda: of(daemon, docker, "load")["container_memory_rss"]
               - after["container_memory_rss"] == 32 * MIB, what="32 MiB more")
    load("processes 3")
    load("threads 5")
    values = of(daemon, docker, "load")
    assert (values["container_processes"], values["container_threads"]) == (4, 9)


def test_memory_that_runs_out(docker, daemon):
    docker.run("hungry", "sh", "-c", "tail /dev/zero; sleep 600", Memory=16 * MIB,
               MemorySwap=16 * MIB)
    wait_until(lambda: of(daemon, docker, "hungry").get("container_oom_events_total") == 1, 30,
               "the killing")
    assert of(daemon, docker, "hungry")["container_memory_max_usage_bytes"] <= 16 * MIB


def traffic(pid):
    """{interface: the eight numbers in the order of NETWORK} as a process sees them."""
    lines = pathlib.Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    fields = {line.split(":")[0].strip(): line.split(":")[1].split() for line in lines}
    return {name: [float(row[i]) for i in (0, 1, 2, 3, 8, 9, 10, 11)]
            for name, row in fields.items() if name != "lo"}


def test_network(docker, daemon):
    docker.run("server", "sh", "-c", "sleep 600 | nc -l -p 9 >/dev/null", network="bridge")
    docker.run("neighbour", "sleep", "600", network="container:server")
    docker.run("alone", "sleep", "600")
    address = re.search(r'"IPAddress":"([0-9.]+)"', docker("GET", "/containers/server/json"))[1]
    send = f"until head -c {MIB} /dev/zero | nc {address} 9; do sleep 0.1; done; sleep 600"
    docker.run("client", "sh", "-c", send, network="bridge")

    def exported():
        rows = {}
        for sample in ours(daemon, docker):
            if sample.name in NETWORK:
                key = sample.labels["name"], sample.labels["interface"]
                rows.setdefault(key, {})[sample.name] = sample.value
        return {key: [row[name] for name in NETWORK] for key, row in rows.items()}

    def expected():
        return {(name, interface): row for name in ("client", "server")
                for interface, row in traffic(docker.pid(name)).items()}

    wait_until(lambda: exported().get(("server", "eth0"), [0])[0] > MIB, 60, "the data")
    # Once for the two that share it.
    assert set(exported()) == {("server", "eth0"), ("client", "eth0")}
    wait_until(lambda: exported() == expected(), 60, "the same numbers")


def test_a_silent_docker_delays_nothing(docker, start):
    id = docker.run("quiet", "sleep", "600")
    docker.process.send_signal(signal.SIGSTOP)
    try:
        daemon = start()
        for _ in range(5):  # a page that waited for the answer would miss its deadline and show no container
            assert of(daemon, docker, id[:12])["container_processes"] == 1
    finally:
        docker.process.send_signal(signal.SIGCONT)
    wait_until(lambda: of(daemon, docker, "quiet"), 60, "the name")


def cpu_of_all(docker):
    """CPU seconds of all its containers, also of those that are gone: their parent remembers."""
    top = pathlib.Path("/sys/fs/cgroup")
    for place in (top, top / "unified"):
        path = place / docker.cgroup / "cpu.stat"
        if path.exists() and "usage_usec" in path.read_text():
            return int(path.read_text().split()[1]) / 1e6
    return int((top / "cpuacct" / docker.cgroup / "cpuacct.usage").read_text()) / 1e9


def test_a_hundred_come_and_go_while_scraping(docker, daemon):
    before, used = finished(daemon), finished(daemon, "cpu_usage_seconds_total")
    lived, told = finished(daemon, "lifetime_seconds_total"), cpu_of_all(docker)

    def come_and_go(number):
        name = f"one-{number}"
        docker.run(name, "sleep", "600")
        docker.remove(name)
        return name

    seen = set()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        work = [pool.submit(come_and_go, number) for number in range(100)]
        while not all(each.done() for each in work):
            samples = ours(daemon, docker)
            series = [(sample.name, frozenset(sample.labels.items())) for sample in samples]
            assert len(series) == len(set(series))
            seen.update(sample.labels["name"] for sample in samples)
            pace(0.05)
    names = {each.result() for each in work}
    assert ours(daemon, docker) == []
    wait_until(lambda: finished(daemon) == before + 100, what="a hundred that have ended")
    # By its name or, for the moment before Docker has told it, by its id; never by another's.
    assert len(names & seen) > 50
    assert all(name in names or re.fullmatch("[0-9a-f]{12}", name) for name in seen)
    used = finished(daemon, "cpu_usage_seconds_total") - used
    lived = finished(daemon, "lifetime_seconds_total") - lived
    told = cpu_of_all(docker) - told
    assert used == pytest.approx(told, rel=0.05)
    assert used < lived


# With the host's own Python, mounted.
SAY = """
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.connect("/push/push.sock")
s.sendall(b'{"hello": {"plugin": "cars", "container": "liar"}}\\n{"seq": 1, "metric": "fps", "type": "gauge", "set": 9}\\n')
print(s.recv(999))
time.sleep(60)
"""


@pytest.fixture
def plugins(waap, docker, tmp_path):
    """plugins({name: image}): the series of plugins in containers of those names and images, once there is one of each."""
    daemon = waap("--collector.disable-defaults", "--collector.push",
                  f"--push.socket={tmp_path / 'push.sock'}",
                  f"--collector.container.docker-socket={docker.socket}")
    daemon.wait_log("push: listening on")
    binds = [f"{tmp_path}:/push", *(f"{path}:{path}:ro" for path in ("/usr", "/lib", "/lib64"))]

    def run(images):
        for name, image in images.items():
            docker.run(name, "/usr/bin/python3", "-c", SAY, image=image, Binds=binds)

        def seen():
            found = [s for s in daemon.samples() if s.startswith("fps")]
            return len(found) == len(images) and sorted(found)

        return wait_until(seen, 30)

    return run


def test_plugins_are_known_by_their_container(plugins):
    assert plugins({"left": IMAGE, "right": IMAGE}) == [
        'fps{container="left",plugin="cars"}', 'fps{container="right",plugin="cars"}']


def test_an_image_cannot_name_its_containers(docker, plugins):
    labels = ("name", "io.kubernetes.container.name", "io.kubernetes.cri.container-name", "io.kubernetes.pod.name",
              "io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.namespace")
    docker("POST", "/images/create", root_filesystem(), *(("changes", f"LABEL {label}=left") for label in labels),
           fromSrc="-", repo="local/thief", tag="1")
    image = json.loads(docker("GET", "/images/local/thief:1/json"))
    assert image["Config"]["Labels"] == dict.fromkeys(labels, "left")
    assert plugins({"left": IMAGE, "thief": "local/thief:1"}) == [
        'fps{container="left",plugin="cars"}', 'fps{container="thief",plugin="cars"}']
