import contextlib
import os
import pathlib
import subprocess

import pytest

from browser import Browser
from running import ROOT, Waap
from runtime import Runtime
from waiting import LIMIT

# What other programs print is judged in English. A proxy of this machine's is not for what tests ask on loopback.
os.environ["LC_ALL"] = "C.UTF-8"
for name in ("no_proxy", "NO_PROXY"):
    os.environ[name] = ",".join(filter(None, ("localhost,127.0.0.1,::1", os.environ.get(name))))

WAAP = pathlib.Path(os.environ.get("WAAP_BINARY", ROOT / "build/exporter/waap")).absolute()


def pytest_collection_modifyitems(items):
    """Tests of a file share its servers and stay together; what runs apart does so by files."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session")
def waap_binary():
    return WAAP


@pytest.fixture(scope="session")
def fake_binary():
    """The daemon with collectors that misbehave on request."""
    return WAAP.parent.parent / "tests/fakes/waap-fake"


@pytest.fixture(scope="session")
def source_root():
    return ROOT


@pytest.fixture
def run_waap():
    """run_waap("check-config", file): runs it to its end; returncode, stdout and stderr as text."""

    def run(*arguments, timeout=LIMIT, **options):
        command = [WAAP, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)

    return run


@pytest.fixture
def hang_file(tmp_path):
    """For --collector.hang.file: the collector hangs until the test removes it."""
    file = tmp_path / "hang"
    file.touch()
    yield file
    file.unlink(missing_ok=True)


@pytest.fixture
def started():
    """started(Waap(…)): a program that ends with the test, in good order."""
    with contextlib.ExitStack() as stack:
        yield stack.enter_context


@pytest.fixture
def waap(started):
    """waap("--log.level=debug", …): the daemon, for the length of the test."""
    return lambda *flags, **options: started(Waap(WAAP, *flags, **options))


@pytest.fixture
def runtime():
    """runtime(path, containers, silent=False); ends with the test."""
    started = []
    yield lambda *options, **more: started.append(Runtime(*options, **more)) or started[-1]
    for one in started:
        one.close()


@pytest.fixture(scope="module")
def chromium():
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium):
    """With nothing to complain about, unless the test has looked at the complaints itself: no error, no
    dialog, nothing that the page's own policy forbids."""
    yield chromium
    problems = chromium.problems()
    chromium.close()
    assert problems == []
