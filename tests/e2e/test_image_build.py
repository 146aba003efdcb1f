"""The Dockerfile built by a real Docker, on a base made with debootstrap. It takes minutes: only in
long runs; test_image.py has the rest of the image."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

from debian import debootstrap
from dockerd import docker_of_our_own
from running import ROOT, connect, wait_until

pytestmark = pytest.mark.long

BASE, IMAGE = "local/debian:1", "local/waap:built"


@pytest.fixture
def base(tmp_path):
    root = tmp_path / "debian"
    debootstrap(root, {"ca-certificates"})
    # A proxy or a mirror of this machine's is needed in the build as well.
    for name in ("sources.list", "sources.list.d", "apt.conf.d"):
        ours = pathlib.Path("/etc/apt") / name
        if ours.is_dir():
            shutil.copytree(ours, root / "etc/apt" / name, dirs_exist_ok=True)
        elif ours.exists():
            shutil.copy(ours, root / "etc/apt" / name)
    yield root
    shutil.rmtree(root, ignore_errors=True)


def context():
    """What `docker build .` sends: the files that git knows."""
    archive = io.BytesIO()
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in names.split():
            tar.add(ROOT / name, name)
    return archive.getvalue()


def import_base(docker, root):
    """By a pipe: it is too large to be held."""
    with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
        with contextlib.closing(connect(f"unix:{docker.socket}", 600)) as connection:
            repository, tag = BASE.split(":")
            connection.request("POST", f"/images/create?fromSrc=-&repo={repository}&tag={tag}", tar.stdout,
                               {"Transfer-Encoding": "chunked"}, encode_chunked=True)
            assert connection.getresponse().status == 200


def build(docker):
    """What Docker says of it, line by line."""
    arguments = json.dumps({"BASE": BASE, **{name: value for name, value in os.environ.items()
                                             if name.lower().endswith("_proxy")}})
    path = f"/build?dockerfile=deploy/Dockerfile&t={IMAGE}&networkmode=host&buildargs=" + arguments.replace(" ", "")
    with contextlib.closing(connect(f"unix:{docker.socket}", 1800)) as connection:
        connection.request("POST", path.replace('"', "%22"), context(), {"Content-Type": "application/x-tar"})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        return [json.loads(line) for line in response.read().decode().splitlines() if line]


def test_it_builds_and_runs(base):
    with docker_of_our_own(host_network=True) as docker:
        import_base(docker, base)
        said = build(docker)
        assert not [line for line in said if "error" in line], "".join(
            line.get("stream", line.get("error", "")) for line in said[-60:])
        assert json.loads(docker("GET", f"/images/{IMAGE}/json"))["Size"] < 25_000_000
        id = docker.run("waap", image=IMAGE, network="none", ReadonlyRootfs=True, CapDrop=["ALL"],
                        Tmpfs={"/run/waap": "mode=0755,uid=65532", "/run/waap-store": "mode=0700,uid=65532"})

        def healthy():
            code = json.loads(docker("POST", f"/containers/{id}/exec", {"Cmd": ["/usr/bin/waap", "healthcheck"]}))["Id"]
            docker("POST", f"/exec/{code}/start", {"Detach": False})
            return json.loads(docker("GET", f"/exec/{code}/json"))["ExitCode"] == 0

        wait_until(healthy, what="the daemon is healthy")
