"""The container collector from outside: recorded cgroups, and a runtime that answers, or does not."""

import json
import os
import re
import shutil

import pytest

from peers import promtool
from running import wait_until

A = "a" * 64
B = "b" * 64


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
    docker.tell("rename", A, name="web", image="nginx:1")  # events are read in order
    wait_until(lambda: names(daemon) == {"web"}, what="the first name again")
    add(place, B)
    assert names(daemon) == {"web", "cam"}
    shutil.rmtree(place / f"cgroup/system.slice/docker-{B}.scope")
    assert names(daemon) == {"web"}
    finished = daemon.samples()['container_finished_total{image="cam:2"}']
    assert float(finished) == 1


POD_LABELS = {"io.kubernetes.container.name": "app", "io.kubernetes.pod.name": "cam-0",
              "io.kubernetes.pod.namespace": "edge"}


def test_labels_name_a_pod_only_in_kubepods(waap, place, runtime):
    """An image can have any label; the kubelet overwrites those of the containers that it starts."""
    pod = "kubepods/burstable/pod2b0c4f5a-11d2-4c3e-9d7e-aa00bb11cc22"
    shutil.copytree(place / f"cgroup/system.slice/docker-{A}.scope", place / "cgroup" / pod / B)
    runtime(place / "run/docker.sock", [
        {"Id": A, "Names": ["/web"], "Image": "i", "Labels": {**POD_LABELS, "io.kubernetes.docker.type": "podsandbox"}},
        {"Id": B, "Names": ["/k8s_app_cam-0"], "Image": "i", "Labels": POD_LABELS}])
    daemon = waap(*flags(place))
    wait_until(lambda: names(daemon) == {"web", "k8s_app_cam-0"}, what="the names")
    seen = [labels for labels in daemon.samples() if labels.startswith("container_last_seen")]
    assert sorted(seen) == [
        f'container_last_seen{{id="/{pod}/{B}",name="k8s_app_cam-0",image="i",container="app",'
        'namespace="edge",pod="cam-0"}',
        f'container_last_seen{{id="/system.slice/docker-{A}.scope",name="web",image="i"}}']


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give cgroups away")
def test_a_cgroup_that_a_user_made_has_no_name(waap, place, runtime):
    """A service with Delegate=yes makes cgroups of any name; what root's Docker knows by that id is another container."""
    service = place / "cgroup/system.slice/app.service"
    service.mkdir()
    shutil.copytree(place / f"cgroup/system.slice/docker-{A}.scope", service / f"docker-{A}.scope")
    os.chown(service, 65534, 65534)
    runtime(place / "run/docker.sock", [{"Id": A, "Names": ["/web"], "Image": "i"}])
    daemon = waap(*flags(place))
    wait_until(lambda: "web" in names(daemon), what="the name")
    seen = [labels for labels in daemon.samples() if labels.startswith("container_last_seen")]
    assert sorted(seen) == [
        f'container_last_seen{{id="/system.slice/app.service/docker-{A}.scope",name="{A[:12]}"}}',
        f'container_last_seen{{id="/system.slice/docker-{A}.scope",name="web",image="i"}}']


def test_a_silent_runtime_delays_nothing(waap, place, runtime):
    runtime(place / "run/docker.sock", [], silent=True)
    daemon = waap(*flags(place))
    for _ in range(5):
        answer = daemon.get("/metrics")
        assert f'name="{A[:12]}"' in answer.text
        assert 'waap_collector_success{collector="container"} 1' in answer.text


def test_promtool(waap, place):
    page = waap(*flags(place)).get("/metrics").text
    assert promtool("2.42", "check", "metrics", page=page.encode()) == (0, "")


def check_golden(daemon, golden):
    """But for what is another each time, and for peaks, which are there from the second sample on."""
    changing = re.compile(r"^(container_(last_seen|start_time_seconds).*} ).*$", re.MULTILINE)
    page = changing.sub(r"\1X", daemon.get("/metrics").text)
    lines = [line for line in page.split("\n")
             if "waap_collector_" not in line and "_peak_cores" not in line]
    assert sorted(lines) == sorted(golden.read_text().split("\n"))


def golden_flags(place, source_root):
    return [*flags(place), "--web.disable-exporter-metrics",
            f"--path.sysfs={source_root / 'tests/fixtures/cgroup/sys'}"]


def test_golden(waap, place, source_root):
    check_golden(waap(*golden_flags(place, source_root)),
                 source_root / "tests/fixtures/golden/container-v2.prom")


def write_bundle(place, id, **annotations):
    bundle = place / f"run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/{id}"
    bundle.mkdir(parents=True)
    (bundle / "config.json").write_text(json.dumps({"annotations": {
        "io.kubernetes.cri." + name.replace("_", "-"): value
        for name, value in annotations.items()}}))


def test_golden_v1(waap, tmp_path, source_root):
    """A plugin in k3s on JetPack 4: cgroup v1, and the cgroupfs driver."""
    shutil.copytree(source_root / "tests/fixtures/cgroup/v1", tmp_path / "cgroup", symlinks=True)
    for hierarchy in ("cpu,cpuacct", "memory", "blkio", "pids", "systemd"):
        top = tmp_path / "cgroup" / hierarchy
        pod = top / "kubepods/besteffort/pod2b0c4f5a-11d2-4c3e-9d7e-aa00bb11cc22"
        shutil.copytree(top / "system.slice", pod / A)
        shutil.copytree(top / "system.slice", pod / B)
        for pid, id in enumerate((A, B), 9999990):
            (pod / id / "cgroup.procs").write_text(f"{pid}\n")
    pod = {"sandbox_name": "objcounter-1", "sandbox_namespace": "ses"}
    write_bundle(tmp_path, A, container_type="container", container_name="objcounter",
                 image_name="waggle/objcounter:1", **pod)
    write_bundle(tmp_path, B, container_type="sandbox", **pod)
    check_golden(waap(*golden_flags(tmp_path, source_root)),
                 source_root / "tests/fixtures/golden/container-v1.prom")


UID = "2b0c4f5a_11d2_4c3e_9d7e_aa00bb11cc22"
LAYOUTS = [
    f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID}.slice/"
    f"cri-containerd-{A}.scope",
    f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID}.slice/crio-{B}.scope",
    f"user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{'c' * 64}.scope",
    f"machine.slice/libpod-{'d' * 64}.scope",
    "lxc.payload.web",
    "machine.slice/machine-my\\x2dcam.scope",
    "machine.slice/systemd-nspawn@cam.service",
]


def test_golden_layouts(waap, tmp_path, source_root, runtime):
    """The kubelet's systemd driver, CRI-O, podman with and without root, LXC and nspawn, with the
    cgroups of their monitors beside them."""
    recorded = source_root / "tests/fixtures/cgroup/v2"
    others = [layout.replace("crio-", "crio-conmon-").replace("libpod-", "libpod-conmon-")
              .replace("lxc.payload", "lxc.monitor") for layout in LAYOUTS]
    for path in {*LAYOUTS, *others}:
        (tmp_path / "cgroup" / path).mkdir(parents=True)
        for file in ("cpu.stat", "memory.current", "cgroup.procs"):
            shutil.copy(recorded / "system.slice" / file, tmp_path / "cgroup" / path)
    for path in LAYOUTS[1:4]:
        (tmp_path / "cgroup" / path / "container").mkdir()
    shutil.copy(recorded / "cgroup.controllers", tmp_path / "cgroup")
    write_bundle(tmp_path, A, container_type="container", container_name="app",
                 image_name="waggle/app:1", sandbox_name="app-1", sandbox_namespace="ses")
    (tmp_path / "run/podman").mkdir()
    runtime(tmp_path / "run/podman/podman.sock", [
        {"Id": "d" * 64, "Names": ["/recorder"], "Image": "docker.io/waggle/recorder:2"}])
    daemon = waap(*golden_flags(tmp_path, source_root))
    wait_until(lambda: "recorder" in names(daemon), what="the name")
    check_golden(daemon, source_root / "tests/fixtures/golden/container-layouts.prom")
