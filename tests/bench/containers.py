"""The daemon on a node with containers: what sampling and a scrape cost, and in how much memory.

The node is made of plain files, so that it is the same everywhere and nothing on this machine is
disturbed."""

import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import time

from effort import effort
from measure import Load, cpu_seconds, curl, running
from paths import BUILD, HERE
from running import Waap
from table import mebibytes, percent, seconds

SAMPLED_SECONDS = effort(10, 0.2)
SCRAPES = effort(50, 2)
ROUNDS = effort(5, 1)
KEPT_FILES = 256  # that the collector keeps open at most
MANIFEST = HERE.parent / "fixtures/jetson/xavier_nx_jp5.tree"
RECORDED = HERE.parent / "fixtures/cgroup/v2/user.slice"
COPIED = ("diskstats", "loadavg", "stat", "vmstat", "pressure/cpu", "pressure/io", "pressure/memory")
NETWORK = "Inter-| Receive | Transmit\n face | |\n  eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def add_container(root, number):
    """Its cgroup as recorded, and a process with a network of its own."""
    cgroup, pid = f"docker/{number:064x}", 10000 + number
    shutil.copytree(RECORDED, root / "sys/fs/cgroup" / cgroup)
    write(root / "sys/fs/cgroup" / cgroup / "cgroup.procs", f"{pid}\n")
    write(root / f"proc/{pid}/cgroup", f"0::/{cgroup}\n")
    write(root / f"proc/{pid}/net/dev", NETWORK)
    write(root / f"proc/{pid}/ns/net", "")
    write(root / f"proc/{pid}/stat", f"{pid} (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0\n")


def make_node(root, n_containers):
    """A Jetson Xavier NX with this machine's /proc and so many containers."""
    subprocess.run([BUILD / "tests/fakes/plant", MANIFEST, root], check=True)
    for name in COPIED:
        source = pathlib.Path("/proc") / name
        if source.exists():
            write(root / "proc" / name, source.read_text())
    for name in ("mounts", "net/dev"):
        write(root / "proc/1" / name, (pathlib.Path("/proc/self") / name).read_text())
    write(root / "proc/1/ns/net", "")
    write(root / "sys/fs/cgroup/cgroup.controllers", "cpu io memory pids\n")
    for number in range(n_containers):
        add_container(root, number)


def start(root, *flags):
    paths = {"cgroupfs": "sys/fs/cgroup", "procfs": "proc", "rootfs": "", "sysfs": "sys"}
    return Waap(
        BUILD / "exporter/waap",
        *(f"--path.{name}={root / place}" for name, place in paths.items()),
        "--collector.jetson.tegrastats=off",
        *flags,
    )


def only(*collectors):
    return ["--collector.disable-defaults", *(f"--collector.{name}" for name in collectors)]


def sampling(table, root):
    with running(start(root, *only("container"))) as waap:
        time.sleep(effort(1, 0))
        before = cpu_seconds(waap)
        time.sleep(SAMPLED_SECONDS)
        share = (cpu_seconds(waap) - before) / SAMPLED_SECONDS
    budget = 0.01
    table.line("20 containers sampled at 10 Hz: CPU", percent(share), "", "",
               f"<= {percent(budget)}", share <= budget)


def scrape(table, what, root, flags, n=SCRAPES, most=None):
    with running(start(root, *flags)) as waap:
        curl(waap, 10, False)
        cpu = min(Load(waap, lambda: curl(waap, n, False)).cpu for _ in range(ROUNDS))
        rss = waap.rss_kib() * 1024
    table.line(f"{what}: CPU per scrape", seconds(cpu), "", "", f"<= {seconds(most)}" if most else "",
               cpu <= most if most else None)
    return rss


def kernel_memory():
    """Of our own control group, in bytes; None where it cannot be told."""
    lines = pathlib.Path("/proc/self/cgroup").read_text().splitlines()
    for _, controllers, path in (line.split(":", 2) for line in lines):
        top = pathlib.Path("/sys/fs/cgroup")
        try:
            if controllers == "memory":
                return int((top / f"memory{path}" / "memory.kmem.usage_in_bytes").read_text())
            if controllers == "":
                text = (top / path.lstrip("/") / "memory.stat").read_text()
                return int(dict(line.split() for line in text.splitlines())["kernel"])
        except (OSError, KeyError, ValueError):
            pass
    return None


def kept_files(table):
    """What the kernel takes for the files that are kept open: measured on one of its own."""
    what = f"{KEPT_FILES} files kept open: kernel memory"
    files = [*pathlib.Path("/sys/fs/cgroup").glob("cpu.stat"),
             *pathlib.Path("/sys/fs/cgroup").glob("*/cpu.stat")]
    before = kernel_memory()
    if before is None or not files:
        table.skip(what, "no control group tells")
        return
    n = 8 * KEPT_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(n + 256, hard)), hard))
    fds = []
    try:
        for _ in range(n):
            fds.append(os.open(files[0], os.O_RDONLY))
            os.pread(fds[-1], 8192, 0)
        used = (kernel_memory() - before) * KEPT_FILES / n
    finally:
        for fd in fds:
            os.close(fd)
    budget = 6 * 1024 * KEPT_FILES
    table.line(what, mebibytes(used), "", "", f"<= {mebibytes(budget)}", used <= budget)


def run(table):
    table.heading("a node with containers")
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        make_node(root, 20)
        sampling(table, root)
        scrape(table, "20 containers, all collectors", root, [], most=0.002)
        for number in range(20, 50):
            add_container(root, number)
        few = scrape(table, "50 containers", root, only("container"))
        for number in range(50, 1000):
            add_container(root, number)
        many = scrape(table, "1000 containers", root, only("container"), n=effort(10, 2))
    table.line("RSS for 950 containers more", mebibytes(many - few))
    kept_files(table)
