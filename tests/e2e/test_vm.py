"""The container collector on a kernel of its own: Debian's, with cgroup v2, in a virtual machine.

The machine runs tests/vm/init from an initramfs that holds little more than the daemon. Without
qemu or the kernel the tests are skipped: .ci/fetch vm gets what is missing."""

import os
import pathlib
import re
import shutil
import stat
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from running import ROOT

UNPACKED = ROOT / "build/deps/vm"
QEMU = shutil.which("qemu-system-x86_64")
A, B, C, D = (f"/docker/{letter * 64}" for letter in "abcd")


def libraries(program):
    """The shared libraries of a program, with those of unpacked packages."""
    paths = {**os.environ, "LD_LIBRARY_PATH": str(UNPACKED / "usr/lib/x86_64-linux-gnu")}
    lines = subprocess.run(["ldd", program], capture_output=True, text=True, env=paths).stdout
    return [pathlib.Path(path) for path in re.findall(r"(?:=> |^\s+)(/\S+)", lines, re.MULTILINE)]


def fill(root, waap):
    """A root directory with busybox, the runtimes and the daemon."""
    binaries = {"busybox": UNPACKED / "bin/busybox", "runc": UNPACKED / "usr/sbin/runc",
                "crun": UNPACKED / "usr/bin/crun", "waap": waap}
    for directory in ("bin", "sbin", "proc", "sys", "dev", "lib64", "usr/lib"):
        (root / directory).mkdir(parents=True)
    for name, path in binaries.items():
        shutil.copy2(path, root / "bin" / name)
        for library in libraries(path):
            at = root / str(library).lstrip("/")
            if library.is_relative_to(UNPACKED):
                at = root / library.relative_to(UNPACKED)
            at.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(library, at)
    applets = subprocess.run([binaries["busybox"], "--list"], capture_output=True, text=True).stdout
    for applet in applets.split():
        if not (root / "bin" / applet).exists():
            (root / "bin" / applet).symlink_to("busybox")
    shutil.copy2(ROOT / "tests/vm/init", root / "init")
    (root / "init").chmod(stat.S_IRWXU)


def pack(root, image):
    files = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with open(image, "wb") as out:
        subprocess.run([UNPACKED / "bin/busybox", "cpio", "-o", "-H", "newc"], cwd=root, stdout=out,
                       input=files.encode(), stderr=subprocess.DEVNULL, check=True)


@pytest.fixture(scope="module")
def said(tmp_path_factory, waap_binary):
    """{name: text} of what the machine showed."""
    kernels = sorted(UNPACKED.glob("boot/vmlinuz-*"))
    if QEMU is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    if not kernels:
        pytest.skip("no kernel: .ci/fetch vm has not been run, or could not")
    if os.uname().machine != "x86_64":
        pytest.skip("the machine is made for x86_64")
    where = tmp_path_factory.mktemp("vm")
    (where / "root").mkdir()
    fill(where / "root", waap_binary)
    pack(where / "root", where / "initrd")
    run = subprocess.run(
        [QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "512", "-nographic",
         "-no-reboot", "-net", "none", "-kernel", kernels[-1], "-initrd", where / "initrd",
         "-append", "console=ttyS0 quiet panic=-1 psi=1 rdinit=/init"],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=240)
    console = run.stdout.decode(errors="replace").replace("\r", "")
    assert "VM DONE" in console, console[-4000:]
    return dict(re.findall(r"^BEGIN (\S+)\n(.*?)^END$", console, re.MULTILINE | re.DOTALL))


def values(text, id):
    """{metric: value} of one container; of those with more labels, the last."""
    return {sample.name: sample.value
            for family in text_string_to_metric_families(text) for sample in family.samples
            if sample.labels.get("id") == id}


def keyed(text):
    return {key: int(value) for key, value in (line.split() for line in text.splitlines())}


def total(text, name):
    return sum(sample.value for family in text_string_to_metric_families(text)
               for sample in family.samples if sample.name == name)


def test_mode_and_no_containers(said):
    assert 'waap_cgroup_mode{mode="v2"} 1' in said["empty"]
    assert "container_cpu_usage_seconds_total{" not in said["empty"]
    assert 'waap_collector_success{collector="container"} 1' in said["empty"]


def test_cpu(said):
    exported, told = values(said["load"], A), keyed(said["load.cpu.stat"])
    assert exported["container_cpu_usage_seconds_total"] == told["usage_usec"] / 1e6
    assert exported["container_cpu_cfs_throttled_periods_total"] == told["nr_throttled"] > 10
    assert exported["container_spec_cpu_quota"] == 50000
    # Half a CPU for three seconds; what came after it is in the other number.
    assert 1.2 < keyed(said["burn.cpu.stat"])["usage_usec"] / 1e6 < 1.9
    assert 0.2 < exported["container_cpu_usage_peak_cores"] < 3


def test_memory(said):
    exported, told = values(said["load"], A), keyed(said["load.memory.stat"])
    assert exported["container_memory_cache"] == told["file"] >= 256 * 65536
    assert exported["container_memory_rss"] == told["anon"]
    assert exported["container_memory_usage_bytes"] == int(said["load.memory.current"])
    assert exported["container_memory_working_set_bytes"] == (
        int(said["load.memory.current"]) - told["inactive_file"])
    assert 256 * 65536 < exported["container_memory_max_usage_bytes"] <= 33554432
    assert exported["container_spec_memory_limit_bytes"] == 33554432
    assert exported["container_oom_events_total"] == 1
    assert exported["container_memory_failcnt"] == keyed(said["load.memory.events"])["max"] > 0


def test_tasks_and_pressure(said):
    exported = values(said["load"], A)
    assert exported["container_processes"] == exported["container_threads"] == 1
    assert exported["container_threads_max"] == 8
    assert exported["container_pressure_cpu_waiting_seconds_total"] > 0.5


def test_short_life_is_accounted(said):
    assert values(said["short"], B) == {}
    assert total(said["short"], "container_finished_total") == 1
    used = keyed(said["short.cpu.stat"])["usage_usec"] / 1e6
    counted = total(said["short"], "container_finished_cpu_usage_seconds_total")
    # The last of ten samples a second may be a tenth of a second old, on a busy machine two.
    assert used - 0.25 < counted <= used


@pytest.mark.parametrize("runtime, id", [("runc", C), ("crun", D)])
def test_real_runtimes(said, runtime, id):
    exported = values(said["runtimes"], id)
    assert exported, said[f"{runtime}.log"]
    assert exported["container_processes"] == 1
    assert exported["container_start_time_seconds"] > 1e9
    assert values(said["deleted"], id) == {}


def test_races(said):
    lines = said["races"].splitlines()
    assert len(lines) > 3
    assert set(lines) == {'waap_collector_success{collector="container"} 1'}
    ids = set(re.findall(r'id="(/docker/[0-9a-f]+)"', said["races.after"]))
    assert ids == {A}
    assert total(said["races.after"], "container_finished_total") <= 1003
