"""The container collector beside a containerd of its own, with cgroups and bundles as k3s has them."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from prometheus_client.parser import text_string_to_metric_families

from running import ROOT, remove_empty_cgroups, wait_until

UNPACKED = ROOT / "build/deps/docker"
UID = "2b0c4f5a-11d2-4c3e-9d7e-aa00bb11cc22"
SANDBOX, APP = "c" * 64, "d" * 64
ANNOTATIONS = {
    "io.kubernetes.cri.sandbox-name": "counter-1",
    "io.kubernetes.cri.sandbox-namespace": "ses",
}


class Containerd:
    def __init__(self, place):
        self.place = place
        self.state = place / "run/containerd"
        self.state.mkdir(parents=True)
        paths = [str(UNPACKED / "usr/sbin"), str(UNPACKED / "usr/bin"), os.environ["PATH"]]
        self.environment = {**os.environ, "PATH": ":".join(paths)}
        config = place / "config.toml"
        config.write_text(f'version = 2\nroot = "{place / "root"}"\nstate = "{self.state}"\n'
                          'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
                          f'[grpc]\naddress = "{place / "sock"}"\n')
        self.log = open(place / "log", "wb")
        self.process = subprocess.Popen(["containerd", "--config", config], stdout=self.log,
                                        stderr=self.log, env=self.environment)

    def ctr(self, *arguments, check=True):
        command = ["ctr", f"--address={self.place / 'sock'}", "--namespace=k8s.io", *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=30, stdin=subprocess.DEVNULL)
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout

    def ready(self):
        assert self.process.poll() is None, "containerd ended"
        with contextlib.suppress(AssertionError):
            return "Server" in self.ctr("version")

    def run(self, id, annotations):
        bundle = self.place / id
        (bundle / "rootfs/bin").mkdir(parents=True)
        shutil.copy2(UNPACKED / "bin/busybox", bundle / "rootfs/bin/sleep")
        subprocess.run(["runc", "spec"], cwd=bundle, env=self.environment, check=True)
        spec = json.loads((bundle / "config.json").read_text())
        spec["process"].update(terminal=False, args=["/bin/sleep", "600"])
        spec["process"].pop("rlimits", None)
        spec["root"]["path"] = str(bundle / "rootfs")
        spec["linux"]["cgroupsPath"] = f"/kubepods/burstable/pod{UID}/{id}"
        spec["annotations"] = {**ANNOTATIONS, **annotations}
        (bundle / "config.json").write_text(json.dumps(spec))
        self.ctr("run", "--detach", "--config", str(bundle / "config.json"), id)

    def remove(self, id):
        self.ctr("tasks", "kill", "--signal=9", id, check=False)
        self.ctr("tasks", "delete", "--force", id, check=False)
        self.ctr("containers", "delete", id, check=False)

    def close(self):
        self.remove(SANDBOX)
        self.remove(APP)
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
        remove_empty_cgroups(f"kubepods/burstable/pod{UID}")


@pytest.fixture
def containerd():
    if not (UNPACKED / "usr/bin/containerd").exists():
        pytest.skip("no containerd: .ci/fetch docker has not been run, or could not")
    if os.geteuid() != 0:
        pytest.skip("containerd needs root")
    place = pathlib.Path(tempfile.mkdtemp(prefix="waap-containerd-"))
    runtime = Containerd(place)
    try:
        wait_until(runtime.ready, 20, "containerd")
        runtime.run(SANDBOX, {"io.kubernetes.cri.container-type": "sandbox"})
    except (AssertionError, subprocess.SubprocessError) as problem:
        runtime.close()
        shutil.rmtree(place, ignore_errors=True)
        pytest.skip(f"containerd does not run here: {str(problem).splitlines()[0]}")
    yield runtime
    runtime.close()
    shutil.rmtree(place, ignore_errors=True)


def labels_of(daemon, id):
    page = daemon.get("/metrics").text
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name == "container_processes" and sample.labels["id"].endswith(id):
                return {**sample.labels, "processes": sample.value}
    return None


def test_pod(waap, containerd):
    daemon = waap("--collector.disable-defaults", "--collector.container",
                  f"--path.rootfs={containerd.place}")
    sandbox = wait_until(lambda: labels_of(daemon, SANDBOX), what="the sandbox")
    assert (sandbox["pod"], sandbox["namespace"]) == ("counter-1", "ses")
    assert "container" not in sandbox
    containerd.run(APP, {"io.kubernetes.cri.container-type": "container",
                         "io.kubernetes.cri.container-name": "counter",
                         "io.kubernetes.cri.image-name": "waggle/counter:1"})
    app = labels_of(daemon, APP)
    assert app == {"id": f"/kubepods/burstable/pod{UID}/{APP}", "name": APP, "processes": 1,
                   "image": "waggle/counter:1", "container": "counter", "pod": "counter-1",
                   "namespace": "ses"}
    containerd.remove(APP)
    assert labels_of(daemon, APP) is None
    assert daemon.samples()['container_finished_total{image="waggle/counter:1"}'] == "1"
