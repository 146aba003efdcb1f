"""waap on another libmicrohttpd than the one it was built with: the image's, of Debian 13."""

import ctypes
import os
import re
import subprocess
import sys

import pytest

from running import ROOT

UNPACKED = ROOT / "build/deps/microhttpd-trixie/usr/lib"
TESTS = ("test_http.py", "test_http_limits.py")


@pytest.fixture(scope="module")
def library():
    paths = list(UNPACKED.glob("*/libmicrohttpd.so.12"))
    if not paths:
        pytest.skip(".ci/fetch microhttpd-trixie has not been run")
    return paths[0]


def version(library):
    get = ctypes.CDLL(str(library)).MHD_get_version
    get.restype = ctypes.c_char_p
    return get().decode()


def test_the_documents_name_it(library):
    text = (ROOT / "SECURITY.md").read_text()
    assert version(library) in re.findall(r"^\| (\d+\.\d+\.\d+) \(Debian 13", text, re.M)
    assert re.findall("^ARG BASE=(.*)", (ROOT / "deploy/Dockerfile").read_text(), re.M) == ["debian:trixie-slim"]


def test_the_daemon_loads_it(waap, library):
    daemon = waap("--collector.disable-defaults", env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)})
    with open(f"/proc/{daemon.process.pid}/maps", encoding="utf-8") as maps:
        loaded = {line.split()[-1] for line in maps if "libmicrohttpd" in line}
    assert loaded == {str(library.resolve())}


def test_bad_requests_and_limits(library):
    """The same tests as with the machine's own, of requests that libraries treat differently."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
               *(ROOT / "tests/e2e" / name for name in TESTS), "-k", "bad or nul or bodies or header or limits"]
    done = subprocess.run(command, env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)}, cwd=ROOT, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
