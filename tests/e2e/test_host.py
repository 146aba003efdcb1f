"""The host collector against Debian's node_exporter on the same machine and the same files."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from peers import find_program, promtool
from running import free_port
from waiting import LIMIT, pace, wait_until

NODE_EXPORTER = find_program("prometheus-node-exporter")
FIXTURE = pathlib.Path(__file__).resolve().parents[1] / "fixtures/host"

# The same for both, as Debian's defaults are not upstream's. POSIX expressions have no \d.
EXCLUDES = {
    "diskstats.device-exclude": "^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme[0-9]+n[0-9]+p)[0-9]+$",
    "filesystem.mount-points-exclude": "^/(dev|proc|sys|mnt|var/lib/docker/.+)($|/)",
    "filesystem.fs-types-exclude": "^(autofs|cgroup2?|devpts|devtmpfs|overlay|proc|sysfs)$",
    "netdev.device-exclude": "^ifb1$",
}
OUR_NAMES = {"diskstats": "disk", "netdev": "network", "filesystem": "filesystem"}
THEIR_COLLECTORS = ("cpu diskstats filesystem loadavg meminfo netdev pressure stat thermal_zone "
                    "time uname").split()

# What node_exporter 1.5.0 has in the families that we cover, and we do not.
NOT_OURS = {
    "node_cooling_device_cur_state", "node_cooling_device_max_state",
    "node_cpu_core_throttles_total", "node_cpu_package_throttles_total",
    "node_disk_info", "node_network_receive_nohandler_total",
    "node_scrape_collector_duration_seconds", "node_scrape_collector_success",
    "node_time_clocksource_available_info", "node_time_clocksource_current_info",
    "node_time_zone_offset_seconds", "node_exporter_build_info", "node_softirqs_total",
}
# What newer versions of it have.
NOT_THEIRS = {"node_pressure_irq_stalled_seconds_total"}

CONSTANT = {
    "node_boot_time_seconds", "node_filesystem_files", "node_filesystem_readonly",
    "node_filesystem_size_bytes", "node_filesystem_device_error", "node_memory_MemTotal_bytes",
    "node_memory_SwapTotal_bytes", "node_memory_Hugepagesize_bytes",
    "node_memory_VmallocTotal_bytes", "node_uname_info",
}


def scrape(port, timeout=LIMIT):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=timeout) as answer:
        return answer.read().decode()


@contextlib.contextmanager
def running(command, port, log, stop=subprocess.Popen.terminate):
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)
    try:
        def answers():
            assert process.poll() is None, pathlib.Path(log).read_text()
            with contextlib.suppress(OSError):
                return scrape(port)

        wait_until(answers, what=f"{command[0]} answers")
        yield process
        stop(process)
        process.wait(5)
    finally:
        process.kill()
        process.wait(5)
        process.stdin.close()


def our_command(binary, port, *flags):
    excludes = []
    for name, value in EXCLUDES.items():
        collector, option = name.split(".")
        excludes.append(f"--collector.host.{OUR_NAMES[collector]}.{option}={value}")
    return [binary, "serve", "--push.table=", f"--web.listen-address=127.0.0.1:{port}",
            "--collector.disable-defaults", "--collector.host", *excludes, *flags]


def their_command(port, *flags):
    return [NODE_EXPORTER, f"--web.listen-address=127.0.0.1:{port}",
            "--web.disable-exporter-metrics", "--collector.disable-defaults",
            *[f"--collector.{name}" for name in THEIR_COLLECTORS],
            *[f"--collector.{name}={value}" for name, value in EXCLUDES.items()], *flags]


def families(page):
    """{name: (type, {label set: value})} of what is a node's own."""
    found = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name.startswith("node_"):
                labels = frozenset(sample.labels.items())
                found.setdefault(sample.name, (family.type, {}))[1][labels] = sample.value
    return found


@pytest.fixture
def pair(waap_binary, tmp_path):
    """Starts both exporters with the given flags; yields functions that scrape them."""
    if NODE_EXPORTER is None:
        pytest.skip("no prometheus-node-exporter on this machine (make deps)")
    with contextlib.ExitStack() as stack:
        def start(our_flags=(), their_flags=()):
            ours, theirs = free_port(), free_port()
            stack.enter_context(running(our_command(waap_binary, ours, *our_flags), ours,
                                        tmp_path / "waap.log"))
            stack.enter_context(running(their_command(theirs, *their_flags), theirs,
                                        tmp_path / "node_exporter.log"))
            return lambda: families(scrape(ours)), lambda: families(scrape(theirs))
        yield start


def assert_same_shape(ours, theirs):
    assert set(ours) - NOT_THEIRS == set(theirs) - NOT_OURS
    for name, (kind, samples) in ours.items():
        if name not in NOT_THEIRS:
            assert kind == theirs[name][0], name
            assert set(samples) == set(theirs[name][1]), name


def close(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def between(low, value, high):
    low, high = min(low, high), max(low, high)
    return low <= value <= high or close(value, low) or close(value, high)


def test_this_machine_is_seen_alike(pair):
    our_scrape, their_scrape = pair()
    after = their_scrape()
    open_questions = None
    for _ in range(40):
        before, ours, after = after, our_scrape(), their_scrape()
        assert_same_shape(ours, after)
        differing = set()
        for name in set(ours) - NOT_THEIRS:
            for labels, value in ours[name][1].items():
                low, high = before[name][1].get(labels), after[name][1][labels]
                if low is None or not between(low, value, high):
                    differing.add((name, labels))
        assert not {name for name, _ in differing} & CONSTANT
        # A moving value may slip out between two looks, but not every time.
        open_questions = differing if open_questions is None else open_questions & differing
        if not open_questions:
            return
        pace(0.05)
    pytest.fail(f"never equal: {sorted(name for name, _ in open_questions)}")


def test_the_same_files_give_the_same_numbers(pair, tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(FIXTURE, tree)
    # node_exporter 1.5.0 knows only net/dev, gives up on a zone that has no temperature, and fills
    # gaps between CPUs with zeros.
    stat = tree / "proc/stat"
    stat.write_text(stat.read_text().replace("cpu3", "cpu1"))
    shutil.copytree(tree / "proc/1/net", tree / "proc/net")
    shutil.rmtree(tree / "sys/class/thermal/thermal_zone2")
    (tree / "media/my disk").mkdir(parents=True)
    paths = [f"--path.procfs={tree}/proc", f"--path.sysfs={tree}/sys", f"--path.rootfs={tree}"]
    our_scrape, their_scrape = pair(paths, [*paths, "--no-collector.netdev.netlink"])
    ours, theirs = our_scrape(), their_scrape()
    assert_same_shape(ours, theirs)
    moving = {"node_time_seconds", "node_filesystem_avail_bytes", "node_filesystem_free_bytes",
              "node_filesystem_files_free"} | NOT_THEIRS
    for name in set(ours) - moving:
        for labels, value in ours[name][1].items():
            assert close(value, theirs[name][1][labels]), (name, labels)
    assert len(ours["node_thermal_zone_temp"][1]) == 2


def test_lint_complains_about_inherited_names_only(waap_binary, tmp_path):
    port = free_port()
    with running(our_command(waap_binary, port), port, tmp_path / "waap.log"):
        page = scrape(port)
    _, output = promtool("2.42", "check", "metrics", page=page.encode())
    findings = output.splitlines()
    assert not [line for line in findings if not line.startswith("node_")], findings


# Runs a command in mount and process namespaces of its own, so that nothing else meets what is
# mounted there. Each line of standard input is for the shell there; at its end the command is
# stopped and its exit code passed on. Mounts a FUSE file system that nobody serves at argv[1].
NAMESPACE = """
import ctypes, os, subprocess, sys
dead, command = sys.argv[1], sys.argv[2:]
if dead:
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
    if ctypes.CDLL(None).mount(b"dead", dead.encode(), b"fuse", 0, options) != 0:
        sys.exit("mount failed")
# The address sanitizer's leak check would wait for the call that hangs.
environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
child = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)
for line in sys.stdin:
    subprocess.run(line, shell=True, stdin=subprocess.DEVNULL)
child.terminate()
sys.exit(child.wait(3))
"""


@contextlib.contextmanager
def running_apart(command, port, log, dead=""):
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    probe = subprocess.run([*unshare, "true"], capture_output=True, text=True, timeout=LIMIT)
    if probe.returncode != 0:
        pytest.skip(f"needs namespaces of its own: {probe.stderr.strip()}")
    with running([*unshare, sys.executable, "-c", NAMESPACE, dead, *command], port, log,
                 lambda process: process.stdin.close()) as process:
        def shell(line):
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        yield shell
    assert process.returncode == 0, "it did not shut down in time"


def mount_labels(device, fstype, mountpoint):
    return frozenset({"device": device, "fstype": fstype, "mountpoint": str(mountpoint)}.items())


def test_a_dead_mount_does_not_hold_up_the_rest(waap_binary, tmp_path):
    if not os.path.exists("/dev/fuse"):
        pytest.skip("needs /dev/fuse to make a file system that never answers")
    target = tmp_path / "dead mount"
    target.mkdir()
    dead = mount_labels("dead", "fuse", target)
    port = free_port()
    with running_apart(our_command(waap_binary, port), port, tmp_path / "waap.log", target):
        for _ in range(3):
            seen = families(scrape(port))
            assert seen["node_filesystem_device_error"][1][dead] == 1
            assert dead not in seen["node_filesystem_size_bytes"][1]
            sizes = seen["node_filesystem_size_bytes"][1]
            assert [labels for labels in sizes if ("mountpoint", "/") in labels]
            assert "node_memory_MemTotal_bytes" in seen


def test_mounts_come_and_go(waap_binary, tmp_path):
    target = tmp_path / "fresh"
    target.mkdir()
    fresh = mount_labels("fresh", "tmpfs", target)
    port = free_port()
    with running_apart(our_command(waap_binary, port), port, tmp_path / "waap.log") as shell:
        def wait_for(readonly):
            wait_until(
                lambda: families(scrape(port))["node_filesystem_readonly"][1].get(fresh) == readonly,
                what=f"readonly {readonly}",
            )

        wait_for(None)
        shell(f"mount -t tmpfs -o size=64k fresh {target}")
        wait_for(0)
        shell(f"mount -o remount,ro {target}")
        wait_for(1)
        shell(f"umount {target}")
        wait_for(None)
