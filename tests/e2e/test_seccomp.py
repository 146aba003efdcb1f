"""Where a container's seccomp filter is older than the C library: threads cannot be made."""

import errno
import platform
import subprocess
import sys

import pytest

from running import DEFAULTS, Waap
from waiting import LIMIT

# Answers clone3 with an error number and becomes another program.
FILTER = """
import ctypes, os, struct, sys
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, JUMP_IF_EQUAL, RETURN, ERRNO, ALLOW, CLONE3 = 0x20, 0x15, 0x06, 0x00050000, 0x7FFF0000, 435
rows = [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, ERRNO | int(sys.argv[1])), (RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
    sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[2], sys.argv[2:])
"""


def filtered(number, *command):
    return [sys.executable, "-c", FILTER, str(number), *map(str, command)]


@pytest.fixture(scope="module", autouse=True)
def filters():
    done = subprocess.run(filtered(errno.EPERM, "/bin/true"), capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        pytest.skip(f"no seccomp here: {done.stderr.strip()}")


def test_a_forbidden_clone3_is_named_with_its_remedy(waap_binary):
    if [int(part) for part in platform.libc_ver()[1].split(".")] < [2, 34]:
        pytest.skip("this C library makes threads without clone3")
    flags = [f"{flag}={value}" for flag, value in DEFAULTS.items()]
    done = subprocess.run(filtered(errno.EPERM, waap_binary, "serve", *flags), capture_output=True, text=True,
                          timeout=LIMIT)
    assert done.returncode == 1
    assert "clone3" in done.stderr
    assert "--security-opt seccomp=unconfined" in done.stderr


def test_a_missing_clone3_does_no_harm(waap_binary, started):
    """What later ones of Docker answer: the C library has another way."""
    daemon = Waap.__new__(Waap)
    flags = [f"{flag}={value}" for flag, value in DEFAULTS.items()]
    super(Waap, daemon).__init__(filtered(errno.ENOSYS, waap_binary, "serve", *flags), None)
    started(daemon).wait_listening()
    assert daemon.get("/-/ready").status == 200
