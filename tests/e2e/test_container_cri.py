"""The container collector beside a containerd of its own, with pods as the kubelet makes them: their
cgroups, bundles, network and, over CRI, labels are those of k3s. Where containerd cannot run the
tests are skipped; .ci/fetch docker cni gets it."""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import uuid

import pytest
from prometheus_client.parser import text_string_to_metric_families

import cri
from running import ROOT, Waap, remove_empty_cgroups, wait_until

UNPACKED = ROOT / "build/deps/docker"
PLUGINS = ROOT / "build/deps/cni/usr/lib/cni"
PAUSE, BUSYBOX = "docker.io/local/pause:1", "docker.io/local/busybox:1"
JOB = "container_label_sagecontinuum_org_plugin_job"

CONFIG = """version = 2
root = "{place}/root"
state = "{place}/run/k3s/containerd"
[grpc]
address = "{place}/run/k3s/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "{place}/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{place}/cni"
"""

NETWORK = {"cniVersion": "0.4.0", "name": "waap-test", "plugins": [
    {"type": "ptp", "ipam": {"type": "host-local", "subnet": "192.0.2.0/24"}}]}


def archive(path, name):
    """An image of busybox, as `docker save` writes it."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(UNPACKED / "bin/busybox", "bin/busybox")
        for applet in ("sh", "sleep"):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine)
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    files = {
        "layer.tar": layer.getvalue(),
        "config.json": json.dumps({
            "architecture": machine, "os": "linux", "config": {"Cmd": ["/bin/sleep", "600"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}).encode(),
        "manifest.json": json.dumps([{
            "Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode(),
    }
    with tarfile.open(path, "w") as tar:
        for file, content in files.items():
            entry = tarfile.TarInfo(file)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


class Containerd:
    def __init__(self, place):
        self.place = place
        paths = [str(UNPACKED / "usr/sbin"), str(UNPACKED / "usr/bin"), os.environ["PATH"]]
        self.environment = {**os.environ, "PATH": ":".join(paths)}
        self.socket = place / "run/k3s/containerd/containerd.sock"
        self.runtime = cri.Runtime(self.socket)
        self.pods = []
        (place / "cni").mkdir()
        (place / "cni/10-ptp.conflist").write_text(json.dumps(
            {**NETWORK, "plugins": [{**NETWORK["plugins"][0], "ipam": {
                **NETWORK["plugins"][0]["ipam"], "dataDir": str(place / "addresses")}}]}))
        config = place / "config.toml"
        config.write_text(CONFIG.format(place=place, pause=PAUSE, plugins=PLUGINS))
        self.log = open(place / "log", "wb")
        self.process = subprocess.Popen(["containerd", "--config", config], stdout=self.log,
                                        stderr=self.log, env=self.environment)

    def ready(self):
        assert self.process.poll() is None, "containerd ended"
        with contextlib.suppress(AssertionError, OSError):
            return self.runtime.call("Status", [])

    def load(self, name):
        path = self.place / "image.tar"
        archive(path, name)
        subprocess.run(["ctr", f"--address={self.socket}", "--namespace=k8s.io", "images", "import",
                        "--snapshotter=native", path],
                       env=self.environment, check=True, capture_output=True, timeout=60)

    def run_pod(self, name, labels, **options):
        uid = str(uuid.uuid4())
        parent = f"/kubepods/burstable/pod{uid}"
        pod = self.runtime.run_pod(name, uid, "ses", labels, parent, **options)
        self.pods.append((pod[0], parent))
        return pod, parent

    def close(self):
        for id, _ in self.pods:
            with contextlib.suppress(AssertionError, OSError):
                self.runtime.remove_pod(id)
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
        for _, parent in self.pods:
            remove_empty_cgroups(parent.lstrip("/"))


@pytest.fixture(scope="module")
def containerd():
    for program in (UNPACKED / "usr/bin/containerd", PLUGINS / "ptp"):
        if not program.exists():
            pytest.skip(f"no {program.name}: .ci/fetch docker cni has not been run, or could not")
    if os.geteuid() != 0:
        pytest.skip("containerd needs root")
    place = pathlib.Path(tempfile.mkdtemp(prefix="waap-cri-"))
    runtime = Containerd(place)
    try:
        wait_until(runtime.ready, what="containerd")
        runtime.load(PAUSE)
        runtime.load(BUSYBOX)
        runtime.run_pod("first", {})
    except (AssertionError, OSError, subprocess.SubprocessError) as problem:
        runtime.close()
        last = (place / "log").read_text().strip().splitlines()[-1:]
        shutil.rmtree(place, ignore_errors=True)
        pytest.skip(f"containerd does not run pods here: {str(problem).splitlines()[0]} {last}")
    yield runtime
    runtime.close()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def daemon(waap, containerd):
    return waap("--collector.disable-defaults", "--collector.container",
                f"--path.rootfs={containerd.place}",
                "--collector.container.label-include=sagecontinuum.org/*")


def samples(daemon, id):
    """{metric: sample} of the container of that id."""
    page = daemon.get("/metrics").text
    assert 'waap_collector_success{collector="container"} 1' in page
    return {sample.name: sample
            for family in text_string_to_metric_families(page) for sample in family.samples
            if sample.labels.get("id", "").endswith(id)}


def labels(daemon, id, metric="container_processes"):
    found = samples(daemon, id).get(metric)
    return found.labels if found else {}


def test_pod(containerd, daemon):
    pod, parent = containerd.run_pod("counter-1", {"sagecontinuum.org/plugin-job": "cars", "a": "b"})
    app = containerd.runtime.run_container(pod, "counter", BUSYBOX, ["/bin/sleep", "600"])
    wait_until(lambda: JOB in labels(daemon, pod[0]) and JOB in labels(daemon, app),
               what="the labels of the pod")
    common = {"pod": "counter-1", "namespace": "ses", JOB: "cars"}
    assert labels(daemon, app) == {
        **common, "id": f"{parent}/{app}", "name": app, "image": BUSYBOX, "container": "counter"}
    sandbox = labels(daemon, pod[0])
    assert sandbox == {**common, "id": f"{parent}/{pod[0]}", "name": pod[0], **{
        name: sandbox[name] for name in ("image",) if name in sandbox}}
    # The network of the pod is there once, with its sandbox.
    assert samples(daemon, pod[0])["container_network_receive_bytes_total"].labels == {
        **sandbox, "interface": "eth0"}
    assert "container_network_receive_bytes_total" not in samples(daemon, app)
    containerd.runtime.remove_container(app)
    assert labels(daemon, app) == {}
    assert daemon.samples()[f'container_finished_total{{image="{BUSYBOX}"}}'] == "1"


def test_without_bundles(containerd, waap):
    """All names over CRI alone, as where the bundles may not be read; from a path that is given."""
    pod, _ = containerd.run_pod("alone", {"sagecontinuum.org/plugin-job": "birds"})
    app = containerd.runtime.run_container(pod, "watcher", BUSYBOX, ["/bin/sleep", "600"])
    daemon = waap("--collector.disable-defaults", "--collector.container", "--path.rootfs=/",
                  f"--collector.container.cri-socket={containerd.socket}",
                  "--collector.container.label-include=sagecontinuum.org/*")
    wait_until(lambda: JOB in labels(daemon, app), what="the labels of the pod")
    known = labels(daemon, app)
    assert known["pod"] == "alone" and known["namespace"] == "ses"
    assert known["container"] == "watcher" and known["image"] == BUSYBOX
    assert "container" not in labels(daemon, pod[0])
    containerd.runtime.remove_container(app)


def test_off(containerd, waap):
    pod, _ = containerd.run_pod("quiet", {"sagecontinuum.org/plugin-job": "birds"})
    daemon = waap("--collector.disable-defaults", "--collector.container",
                  f"--path.rootfs={containerd.place}", "--collector.container.cri-socket=off",
                  "--collector.container.label-include=sagecontinuum.org/*")
    wait_until(lambda: labels(daemon, pod[0]).get("pod") == "quiet", what="the pod")
    assert JOB not in labels(daemon, pod[0])


def is_there(cgroup):
    top = pathlib.Path("/sys/fs/cgroup")
    return any((root / cgroup.lstrip("/")).is_dir() for root in (top, *top.iterdir()))


def used_seconds(cgroup):
    """CPU time of a cgroup and of all that were ever below it, as the kernel tells."""
    top = pathlib.Path("/sys/fs/cgroup")
    for controller in ("cpuacct", "cpu,cpuacct"):
        usage = top / controller / cgroup.lstrip("/") / "cpuacct.usage"
        if usage.exists():
            return int(usage.read_text()) / 1e9
    return int((top / cgroup.lstrip("/") / "cpu.stat").read_text().split()[1]) / 1e6


def test_short_life_is_accounted(containerd, daemon):
    """Of containers that come and go between two scrapes, all is known that they have used."""
    pod, parent = containerd.run_pod("short", {})
    daemon.get("/metrics")
    for n in range(5):
        app = containerd.runtime.run_container(pod, f"burst-{n}", BUSYBOX, [
            "/bin/sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"])
        wait_until(lambda: not is_there(f"{parent}/{app}"), what="its end")
    used = used_seconds(parent) - used_seconds(f"{parent}/{pod[0]}")
    image = f'{{image="{BUSYBOX}"}}'
    page = wait_until(lambda: (page := daemon.samples()).get(
        f"container_finished_total{image}") == "5" and page, what="the five")
    counted = float(page[f"container_finished_cpu_usage_seconds_total{image}"])
    assert 0.9 * used < counted <= used + 1e-6, (counted, used)


NUMBERS = ["container_cpu_usage_seconds_total", "container_memory_working_set_bytes",
           "container_processes", "container_start_time_seconds", "container_threads"]


@pytest.mark.parametrize("right, named", [("", False), ("dac_read_search", True)])
def test_rights(containerd, started, waap_binary, right, named):
    """As nobody: numbers need no right at all, names from bundles need just one."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    containerd.place.chmod(0o711)
    program = containerd.place / f"waap-{right}"
    copy = shutil.copy2(waap_binary, containerd.place / "waap")
    caps = f"--inh-caps=+{right} --ambient-caps=+{right}" if right else "--bounding-set=-all"
    program.write_text(f"#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups {caps} "
                       f'{copy} "$@"\n')
    program.chmod(0o755)
    pod, _ = containerd.run_pod(f"rights-{right or 'none'}", {"sagecontinuum.org/plugin-job": "x"})
    app = containerd.runtime.run_container(pod, "app", BUSYBOX, ["/bin/sleep", "600"])
    daemon = started(Waap(program, "--collector.disable-defaults", "--collector.container",
                          f"--path.rootfs={containerd.place}",
                          "--collector.container.label-include=sagecontinuum.org/*"))
    wait_until(lambda: labels(daemon, app), what="the container")
    assert set(NUMBERS) <= set(samples(daemon, app))
    assert "container_network_receive_bytes_total" in samples(daemon, pod[0])
    assert ("pod" in labels(daemon, app)) == named
    assert JOB not in labels(daemon, app)  # the socket is root's


def test_network_of_the_host_is_left_out(containerd, daemon):
    pod, _ = containerd.run_pod("host", {}, host_network=True)
    wait_until(lambda: labels(daemon, pod[0]).get("pod") == "host", what="the pod")
    assert "container_network_receive_bytes_total" not in samples(daemon, pod[0])
