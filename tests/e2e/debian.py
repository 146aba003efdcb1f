"""A small Debian of this machine's release in a folder, for tests that install something."""

import os
import shutil
import subprocess

import pytest

from running import ROOT


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def debootstrap(root, packages):
    """Skips the test where there can be none."""
    if os.geteuid() != 0:
        pytest.skip("not root, so no root directory can be made")
    if shutil.which("debootstrap") is None:
        pytest.skip("no debootstrap here: .ci/deps deb installs it")
    release = output_of("sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME")
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={','.join(sorted(packages))}", release, root,
         output_of(ROOT / ".ci/fetch", "--mirror")], capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        pytest.skip(f"no Debian to install in: {done.stdout[-300:]}")
