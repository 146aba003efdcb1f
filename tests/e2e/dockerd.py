"""A Docker daemon of the tests' own: private socket, data, bridge and cgroups, and one image with
busybox and tests/vm/load in it. Where Docker cannot run the tests are skipped; .ci/fetch docker
gets what is missing."""

import contextlib
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
# Who root of a container is on the host where users are mapped: nobody that there is.
MAPPED = 231072
MAP_USERS = 'mount --bind "$0" /etc/subuid && mount --bind "$1" /etc/subgid && shift && exec "$@"'
APPLETS = ("head", "nc", "sh", "sleep", "tail", "true")


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

    def __init__(self, place, map_users=False):
        self.place = place
        self.socket = place / "docker.sock"
        self.cgroup = f"waap-test-{os.getpid()}"
        self.bridge = f"waap{os.getpid()}"
        self.address = f"198.18.{os.getpid() % 256}.1"
        paths = [str(UNPACKED / "usr/sbin"), str(UNPACKED / "usr/bin"), os.environ["PATH"]]
        self.log = open(place / "log", "wb")
        self.has_bridge = self.make_bridge()
        self.process = subprocess.Popen(
            [*(self.mapping() if map_users else ["dockerd"]), f"--host=unix://{self.socket}", f"--data-root={place / 'data'}",
             f"--exec-root={place / 'exec'}", f"--pidfile={place / 'pid'}", "--iptables=false",
             "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--userland-proxy=false",
             f"--bridge={self.bridge if self.has_bridge else 'none'}", "--storage-driver=vfs",
             "--exec-opt=native.cgroupdriver=cgroupfs", f"--cgroup-parent=/{self.cgroup}"],
            env={**os.environ, "PATH": ":".join(paths)},
            stdout=self.log, stderr=self.log)

    def mapping(self):
        """How to start it with users mapped, by tables that only it sees."""
        tables = [self.place / "subuid", self.place / "subgid"]
        for table in tables:
            table.write_text("".join(f"{name}:{MAPPED}:65536\n" for name in ("nobody", "nogroup")))
        self.place.chmod(0o711)
        return ["unshare", "--mount", "sh", "-c", MAP_USERS, *tables, "dockerd", "--userns-remap=nobody:nogroup"]

    def ip(self, words):
        return subprocess.run([BUSYBOX, "ip", *words.split()], stdout=self.log,
                              stderr=self.log).returncode == 0

    def make_bridge(self):
        """In the range of addresses that is kept for measurements."""
        return (self.ip(f"link add {self.bridge} type bridge")
                and self.ip(f"addr add {self.address}/24 dev {self.bridge}")
                and self.ip(f"link set {self.bridge} up"))

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
        user = {"User": limits.pop("User")} if "User" in limits else {}
        body = {"Image": image, "Cmd": command or None, "Labels": labels or {}, **user,
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
        self.ip(f"link del {self.bridge}")
        for namespace in self.place.glob("exec/netns/*"):  # the host's is left mounted
            subprocess.run([BUSYBOX, "umount", namespace], stdout=self.log, stderr=self.log)
        self.log.close()
        remove_empty_cgroups(self.cgroup)


@contextlib.contextmanager
def docker_of_our_own(map_users=False):
    """The daemon with its image; skips the test where there can be none."""
    if not (UNPACKED / "usr/sbin/dockerd").exists():
        pytest.skip("no Docker: .ci/fetch docker has not been run, or could not")
    if not LOAD.exists():
        pytest.skip("no static programs: the C library has no libc.a")
    if os.geteuid() != 0:
        pytest.skip("dockerd needs root")
    place = pathlib.Path(tempfile.mkdtemp(prefix="waap-docker-"))
    docker = Docker(place, map_users)
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
