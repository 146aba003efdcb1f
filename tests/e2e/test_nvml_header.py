"""What we declare of NVML, against NVIDIA's own header."""

import pathlib
import re
import shutil
import subprocess

import pytest

from running import ROOT

HEADERS = (ROOT / "build/deps/nvml-header/usr/include", pathlib.Path("/usr/include"))


def test_declarations_are_those_of_the_header():
    folder = next((folder for folder in HEADERS if (folder / "nvml.h").exists()), None)
    if folder is None:
        pytest.skip("no nvml.h on this machine: Debian has it in non-free only (.ci/fetch nvml-header)")
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    done = subprocess.run(
        [compiler, "-std=gnu11", "-fsyntax-only", f"-I{ROOT}", "-isystem", folder,
         ROOT / "tests/e2e/nvml_header.c"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_function_is_compared():
    """Those that Debian's header has; the newest are not in it."""
    table = (ROOT / "collectors/nvml/library.c").read_text()
    compared = re.findall(r"SAME_CALL\(\w+, (\w+)\)", (ROOT / "tests/e2e/nvml_header.c").read_text())
    assert set(re.findall(r'"(nvml\w+)"', table)) - set(compared) <= {"nvmlDeviceGetTemperatureV"}
