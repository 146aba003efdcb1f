"""A Docker daemon of the tests' own: private socket, data, network, mounts and cgroups, and one image
with busybox and tests/vm/load in it. Where Docker cannot run the tests are skipped; .ci/fetch docker
gets what is missing."""

import contextlib
import ctypes
import http.client
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import urllib.parse

import pytest

from running import ROOT, connect, remove_empty_cgroups, wait_until

UNPACKED = ROOT / "build/deps/docker"
BUSYBOX = UNPACKED / "bin/busybox"
LOAD = ROOT / "build/tests/vm/load"
IMAGE = "local/busybox:1"
# The bridge's, in the range of addresses that is kept for measurements.
GATEWAY, SUBNET = "198.18.0.1", "198.18.0.0/24"
# The uid on the host of root in a container where users are mapped: no existing user.
MAPPED = 231072
CLONE_NEWNET = 0x40000000
APPLETS = ("head", "nc", "sh", "sleep", "tail", "true")


def enter_network(namespace):
    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def root_filesystem():
    """A tar archive of it."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        directory = tarfile.TarInfo("bin")
        directory.type, directory.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(directory)
        tar.add(BUSYBOX, "bin/busybox")
        tar.add(LOAD, "bin/load")
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return archive.getvalue()


class Docker:
    """Spoken to as its own command line does, by HTTP on its socket."""

    def __init__(self, place, map_users=False, host_network=False):
        self.place = place
        self.socket = place / "docker.sock"
        self.cgroup = f"waap-test-{os.getpid()}"
        paths = [str(UNPACKED / "usr/sbin"), str(UNPACKED / "usr/bin"), os.environ["PATH"]]
        self.log = open(place / "log", "wb")
        # Rules, addresses and forwarding of the machine reach it as little as its own reach the machine.
        namespaces = ["unshare", "--mount", *([] if host_network else ["--net"])]
        setup, flags = self.map_users() if map_users else ("", [])
        setup += "" if host_network else f"{BUSYBOX} ip link set lo up && "
        self.process = subprocess.Popen(
            [*namespaces, "sh", "-c", setup + 'exec "$@"', "sh", "dockerd", f"--host=unix://{self.socket}",
             f"--data-root={place / 'data'}", f"--exec-root={place / 'exec'}", f"--pidfile={place / 'pid'}",
             "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", *flags,
             "--bridge=none" if host_network else f"--bip={GATEWAY}/24", "--storage-driver=vfs",
             "--exec-opt=native.cgroupdriver=cgroupfs", f"--cgroup-parent=/{self.cgroup}"],
            env={**os.environ, "PATH": ":".join(paths)},
            stdout=self.log, stderr=self.log)

    def map_users(self):
        """Commands and flags that map users, by tables that only this daemon sees."""
        commands = ""
        for name in ("subuid", "subgid"):
            table = self.place / name
            table.write_text("".join(f"{user}:{MAPPED}:65536\n" for user in ("nobody", "nogroup")))
            commands += f"mount --bind {table} /etc/{name} && "
        self.place.chmod(0o711)
        return commands, ["--userns-remap=nobody:nogroup"]

    @contextlib.contextmanager
    def network(self, container=None):
        """The calling thread is in the network of the daemon, or of a container."""
        pid = self.process.pid if container is None else self.pid(container)
        with open("/proc/thread-self/ns/net") as before, open(f"/proc/{pid}/ns/net") as inside:
            enter_network(inside)
            try:
                yield
            finally:
                enter_network(before)

    def ask(self, method, path, body=None, *pairs, **query):
        """Status and answer. `pairs` are parameters that may be given more than once."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        with contextlib.closing(connect(f"unix:{self.socket}", 60)) as connection:
            connection.request(method, f"{path}?{urllib.parse.urlencode([*pairs, *query.items()])}", body,
                               {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read().decode(errors="replace")

    def __call__(self, method, path, body=None, *pairs, **query):
        status, text = self.ask(method, path, body, *pairs, **query)
        assert status < 300, text
        return text

    def ready(self):
        assert self.process.poll() is None, "dockerd ended"
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.ask("GET", "/_ping")[0] == 200

    def fill(self):
        repository, tag = IMAGE.split(":")
        self("POST", "/images/create", root_filesystem(), fromSrc="-", repo=repository, tag=tag)

    def run(self, name, *command, image=IMAGE, network="none", labels=None, **limits):
        """Starts a container; returns its id."""
        settings = {key: limits.pop(key) for key in ("User", "Env", "Tty", "OpenStdin") if key in limits}
        body = {"Image": image, "Cmd": command or None, "Labels": labels or {}, **settings,
                "HostConfig": {"NetworkMode": network, "SecurityOpt": ["apparmor=unconfined"],
                               **limits}}
        id = json.loads(self("POST", "/containers/create", body, name=name))["Id"]
        self("POST", f"/containers/{id}/start")
        return id

    def act(self, container, action, **query):
        self("POST", f"/containers/{container}/{action}", **query)

    def pid(self, name):
        return json.loads(self("GET", f"/containers/{name}/json"))["State"]["Pid"]

    def remove(self, name):
        self("DELETE", f"/containers/{name}", force="1")

    def remove_all(self):
        for container in json.loads(self("GET", "/containers/json", all="1")):
            self.remove(container["Id"])

    def close(self):
        with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
            self.remove_all()
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
        remove_empty_cgroups(self.cgroup)


@contextlib.contextmanager
def docker_of_our_own(map_users=False, host_network=False):
    """The daemon with its image; skips the test where there can be none. It has a network of its own unless
    containers must reach what the machine reaches."""
    if not (UNPACKED / "usr/sbin/dockerd").exists():
        pytest.skip("no Docker: .ci/fetch docker has not been run, or could not")
    if not LOAD.exists():
        pytest.skip("no static programs: the C library has no libc.a")
    if os.geteuid() != 0:
        pytest.skip("dockerd needs root")
    place = pathlib.Path(tempfile.mkdtemp(prefix="waap-docker-"))
    docker = Docker(place, map_users, host_network)
    try:
        wait_until(docker.ready, 30, "dockerd")
        docker.fill()
        docker.remove(docker.run("first", "sleep", "60"))
    except (AssertionError, OSError, http.client.HTTPException) as problem:
        docker.close()
        last = (place / "log").read_text().strip().splitlines()[-1:]
        shutil.rmtree(place, ignore_errors=True)
        pytest.skip(f"Docker does not run here: {str(problem).splitlines()[:1]} {last}")
    try:
        yield docker
    finally:
        docker.close()
        shutil.rmtree(place, ignore_errors=True)
