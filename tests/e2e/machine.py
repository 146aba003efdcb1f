"""A virtual machine with Debian's kernel, cgroup v2 and the daemon, booted from an initramfs that
holds little more: tests/vm/init runs in it. Without qemu or the kernel there is none; .ci/fetch vm
gets what is missing."""

import contextlib
import json
import lzma
import os
import pathlib
import re
import shutil
import stat
import subprocess

import pytest

from running import ROOT, Program, connect, free_port

UNPACKED = ROOT / "build/deps/vm"
LOAD = ROOT / "build/tests/vm/load"
CHURN = ROOT / "build/tests/vm/churn"
QEMU = shutil.which("qemu-system-x86_64")
MODULES = ("virtio_pci", "virtio_blk", "virtio_net")
DISK_BYTES = 64 << 20
TOP = "/sys/fs/cgroup/docker"


def libraries(program):
    """The shared libraries of a program, with those of unpacked packages."""
    paths = {**os.environ, "LD_LIBRARY_PATH": str(UNPACKED / "usr/lib/x86_64-linux-gnu")}
    lines = subprocess.run(["ldd", program], capture_output=True, text=True, env=paths).stdout
    return [pathlib.Path(path) for path in re.findall(r"(?:=> |^\s+)(/\S+)", lines, re.MULTILINE)]


def copy_program(program, root):
    shutil.copy2(program, root / "bin" / program.name)
    for library in libraries(program):
        inside = UNPACKED if library.is_relative_to(UNPACKED) else pathlib.Path("/")
        at = root / library.relative_to(inside)
        at.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library, at)


def copy_modules(names, root):
    """With what they depend on, as each says itself, and in an order that they can be loaded in."""
    paths = {path.name.split(".")[0]: path
             for path in UNPACKED.glob("lib/modules/*/kernel/**/*.ko*")}
    order = []

    def add(name):
        if name in order or name not in paths:
            return
        content = paths[name].read_bytes()
        if paths[name].suffix == ".xz":
            content = lzma.decompress(content)
        needed = re.search(rb"depends=([^\0]*)\0", content)
        for other in needed[1].decode().split(",") if needed else []:
            add(other)
        (root / name).write_bytes(content)
        order.append(name)

    for name in names:
        add(name)
    (root / "order").write_text("\n".join(order))


def fill(root, waap):
    for directory in ("bin", "sbin", "proc", "sys", "dev", "modules"):
        (root / directory).mkdir(parents=True)
    busybox = UNPACKED / "bin/busybox"
    for program in (busybox, UNPACKED / "usr/sbin/runc", UNPACKED / "usr/bin/crun", LOAD, CHURN):
        copy_program(program, root)
    copy_program(waap, root)
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True).stdout
    for applet in applets.split():
        if not (root / "bin" / applet).exists():
            (root / "bin" / applet).symlink_to("busybox")
    copy_modules(MODULES, root / "modules")
    shutil.copy2(ROOT / "tests/vm/init", root / "init")
    (root / "init").chmod(stat.S_IRWXU)


def pack(root, image):
    files = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with open(image, "wb") as out:
        subprocess.run([UNPACKED / "bin/busybox", "cpio", "-o", "-H", "newc"], cwd=root, stdout=out,
                       input=files.encode(), stderr=subprocess.DEVNULL, check=True)


class Machine(Program):
    """Asked for its metrics as a daemon is; `shell` runs a script in it."""

    def __init__(self, where, kernel):
        ports = [free_port() for _ in range(2)]
        forward = ",".join(f"hostfwd=tcp:127.0.0.1:{port}-:{guest}"
                           for port, guest in zip(ports, (9090, 8080)))
        self.control = f"http://127.0.0.1:{ports[1]}"
        super().__init__(
            [QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "512",
             "-nographic", "-no-reboot", "-nic", f"user,model=virtio-net-pci,restrict=on,{forward}",
             "-drive", f"file={where / 'disk'},if=virtio,format=raw", "-kernel", kernel,
             "-initrd", where / "initrd", "-append",
             "console=ttyS0 quiet panic=-1 psi=1 rdinit=/init"], f"http://127.0.0.1:{ports[0]}")

    def shell(self, script, timeout=120):
        """What it prints; each line of it must succeed."""
        with contextlib.closing(connect(self.control, timeout)) as connection:
            connection.request("POST", "/cgi-bin/run", script.encode())
            text, status = connection.getresponse().read().decode().rsplit("status ", 1)
        assert int(status) == 0, f"{script}\n{text}"
        return text

    def page(self, *collectors):
        asked = "&".join(f"collect[]={name}" for name in collectors or ("container",))
        answer = self.get(f"/metrics?{asked}")
        assert answer.status == 200, answer.text
        return answer.text


class Load:
    """tests/vm/load in a cgroup of the machine's, bare or made by a runtime."""

    def __init__(self, machine, runtime, digit, **resources):
        self.machine, self.runtime = machine, runtime
        self.id = digit * 64
        self.place = f"/run/{self.id}"
        self.cgroup = f"{TOP}/{self.id}"
        machine.shell(f"mkdir -p {self.place}/talk {self.place}/rootfs/bin\n"
                      f"cp /bin/load {self.place}/rootfs/bin\n"
                      f"mkfifo {self.place}/talk/ask {self.place}/talk/answer\n")
        if runtime is None:
            self.start_bare(resources)
        else:
            self.start_container(resources)

    def start_bare(self, resources):
        writes = [f"echo '{text}' >{self.cgroup}/{name}\n" for name, text in resources.items()]
        self.machine.shell(
            f"mkdir {self.cgroup}\n{''.join(writes)}"
            f"(echo 0 >{self.cgroup}/cgroup.procs\nexec load {self.place}/talk) "
            f">{self.place}/log 2>&1 &\n")

    def start_container(self, resources):
        major, minor = self.machine.shell("cat /sys/block/vda/dev").split(":")
        disk = {"type": "b", "major": int(major), "minor": int(minor)}
        namespaces = ("pid", "mount", "ipc", "uts", "network")
        spec = {
            "ociVersion": "1.0.2",
            "process": {"args": ["/bin/load", "/talk"], "cwd": "/", "user": {"uid": 0, "gid": 0},
                        "noNewPrivileges": True},
            "root": {"path": "rootfs"},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                {"destination": "/talk", "type": "bind", "source": f"{self.place}/talk",
                 "options": ["bind"]},
            ],
            "linux": {
                "cgroupsPath": f"/docker/{self.id}",
                "devices": [{"path": "/dev/vda", **disk}],
                "namespaces": [{"type": kind} for kind in namespaces],
                "resources": {"devices": [{"allow": False, "access": "rwm"},
                                          {"allow": True, "access": "rwm", **disk}], **resources},
            },
        }
        self.machine.shell(f"cat >{self.place}/config.json <<'END'\n{json.dumps(spec)}\nEND\n"
                           f"cd {self.place}\n"
                           f"{self.runtime} run --no-pivot -d {self.id} >{self.place}/log 2>&1 ||\n"
                           f"    {{ cat {self.place}/log; false; }}\n")

    def order(self, words):
        """Has it done; returns the CPU seconds that the load has used in all."""
        return float(self.machine.shell(f"echo '{words}' >{self.place}/talk/ask\n"
                                        f"cat {self.place}/talk/answer\n"))

    def file(self, name):
        return self.machine.shell(f"cat {self.cgroup}/{name}")

    def remove(self):
        if self.runtime is None:
            self.machine.shell(f"echo 1 >{self.cgroup}/cgroup.kill\n"
                               f"until rmdir {self.cgroup} 2>/dev/null; do usleep 1000; done\n"
                               f"rm -r {self.place}\n")
        else:
            self.machine.shell(f"{self.runtime} delete -f {self.id}\nrm -r {self.place}\n")


def boot(where, waap):
    """The machine, ready; skips the test where there can be none."""
    kernels = sorted(UNPACKED.glob("boot/vmlinuz-*"))
    if QEMU is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    if not kernels:
        pytest.skip("no kernel: .ci/fetch vm has not been run, or could not")
    if os.uname().machine != "x86_64":
        pytest.skip("the machine is made for x86_64")
    if not LOAD.exists():
        pytest.skip("no static programs: the C library has no libc.a")
    (where / "root").mkdir()
    fill(where / "root", waap)
    pack(where / "root", where / "initrd")
    with open(where / "disk", "wb") as disk:
        disk.truncate(DISK_BYTES)
    machine = Machine(where, kernels[-1])
    try:
        machine.wait_log("VM READY", 120)
    except AssertionError:
        machine.close()
        raise
    return machine
