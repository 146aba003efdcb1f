"""waap as a service of systemd: what the daemon says to its manager, what it is handed, and what
systemd makes of the units."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys

import pytest

from running import ROOT, Waap, wait_until

UNITS = ROOT / "deploy/systemd"
# A tenth of the exposure level, as systemd-analyze wants it. Left are TCP, all of /proc, NVIDIA's devices.
MOST_EXPOSURE = 25

# Hands descriptors over as systemd does: from 3 on, and then the same process is another program.
HAND_OVER = """
import os, sys
fds = [os.dup2(int(fd), 100 + i) for i, fd in enumerate(sys.argv[1].split(","))]
for i, fd in enumerate(fds):
    os.dup2(fd, 3 + i)
os.closerange(3 + len(fds), 200)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)), WATCHDOG_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


class Manager:
    """The manager's end of NOTIFY_SOCKET."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(10)
        self.alive = 0

    def hear(self):
        """The next message that is no sign of life, as a dictionary."""
        while True:
            message = dict(line.split("=", 1) for line in self.socket.recv(4096).decode().split("\n"))
            if "WATCHDOG" not in message:
                return message
            self.alive += 1

    def hear_alive(self, times):
        for _ in range(times):
            assert self.socket.recv(4096) == b"WATCHDOG=1"


def section(name, unit="waap.service"):
    """The (key, value) pairs of one section of a unit."""
    text = (UNITS / unit).read_text().split(f"[{name}]\n")[1].split("\n[")[0]
    lines = [line for line in text.split("\n") if line and line[0] != "#"]
    return [tuple(line.split("=", 1)) for line in lines]


class Service(Waap):
    """The command of the unit, with what systemd would give it."""

    def __init__(self, binary, tmp_path, sockets, **variables):
        self.manager = Manager(tmp_path / "notify")
        self.config = tmp_path / "waap.yaml"
        unit = dict(section("Service"))
        store = f'/run/{unit["RuntimeDirectory"]}/'
        text = (ROOT / "deploy/waap.yaml").read_text()
        assert f"table: {store}push.table " in text
        self.config.write_text(text.replace(store, f"{tmp_path}/store/"))
        command = unit["ExecStart"].split()
        command = [str(binary), *command[1:-1], f"--config.file={self.config}"]
        (tmp_path / "store").mkdir(int(unit["RuntimeDirectoryMode"], 8))
        fds = [listener.fileno() for listener in sockets.values()]
        super(Waap, self).__init__(
            [sys.executable, "-c", HAND_OVER, ",".join(map(str, fds)), *command], None, pass_fds=fds,
            env={"NOTIFY_SOCKET": str(tmp_path / "notify"),
                 "LISTEN_FDNAMES": ":".join(sockets), **variables})


@pytest.fixture
def service(waap_binary, tmp_path, started):
    def start(sockets, **variables):
        return started(Service(waap_binary, tmp_path, sockets, **variables))

    return start


@pytest.fixture
def sockets(tmp_path):
    """Those of the socket units: plugins first, as the names say."""
    with contextlib.ExitStack() as stack:
        push = stack.enter_context(socket.socket(socket.AF_UNIX))
        push.bind(str(tmp_path / "push.sock"))
        push.listen()
        web = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        yield {"push": push, "waap.socket": web}


def test_the_manager_is_told_and_its_sockets_are_used(service, sockets, tmp_path):
    with socket.socket(socket.AF_UNIX) as plugin:
        plugin.connect(str(tmp_path / "push.sock"))
        plugin.sendall(b'{"hello": {"plugin": "cars"}}\n{"metric": "fps", "type": "gauge", "set": 30}\n')
        daemon = service(sockets)
        daemon.url = "http://127.0.0.1:%d" % sockets["waap.socket"].getsockname()[1]
        assert daemon.manager.hear() == {"READY": "1", "STATUS": "serving"}
        wait_until(lambda: any(key.startswith("fps{") for key in daemon.samples()), what="what was pushed")
    assert (tmp_path / "store/push.table").exists()
    assert not any(line for line in daemon.output().split("\n") if "level=warn" in line and "push" in line)
    code, _ = daemon.stop()
    assert code == 0
    assert daemon.manager.hear() == {"STOPPING": "1"}
    assert daemon.manager.alive == 0
    assert (tmp_path / "push.sock").exists(), "it belongs to systemd"


def test_a_reload_is_told_with_what_came_of_it(service, sockets):
    daemon = service(sockets)
    assert daemon.manager.hear()["READY"] == "1"
    good = daemon.config.read_text()
    for text, status in ((good, "serving"), ("wbe: {}\n", "configuration rejected, the old one stays active"),
                         (good, "serving")):
        daemon.config.write_text(text)
        daemon.process.send_signal(1)
        assert set(daemon.manager.hear()) == {"RELOADING", "MONOTONIC_USEC"}
        assert daemon.manager.hear() == {"READY": "1", "STATUS": status}


def test_signs_of_life(service, sockets):
    daemon = service(sockets, WATCHDOG_USEC="100000")
    assert daemon.manager.hear()["READY"] == "1"
    daemon.manager.hear_alive(5)
    daemon.stop()
    assert daemon.manager.hear() == {"STOPPING": "1"}


def test_a_daemon_that_cannot_start_is_never_ready(service, sockets):
    with socket.socket() as deaf:
        daemon = service({**sockets, "waap.socket": deaf})
        assert daemon.wait_exit() == 1
    assert "descriptor 4 of systemd is not a listening socket" in daemon.output()
    assert daemon.manager.hear() == {"STOPPING": "1"}


@pytest.fixture(scope="module")
def analyze():
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here (package systemd)")

    def run(*arguments):
        done = subprocess.run(["systemd-analyze", *map(str, arguments)], capture_output=True, text=True,
                              env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"}, timeout=60)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture
def units(tmp_path, waap_binary):
    """A copy with the program where it is."""
    for unit in UNITS.iterdir():
        if unit.is_file():
            text = unit.read_text().replace("/usr/bin/waap", str(waap_binary))
            (tmp_path / unit.name).write_text(text)
    return tmp_path


def with_drop_ins(units):
    text = (units / "waap.service").read_text()
    for drop_in in sorted((UNITS / "waap.service.d").iterdir()):
        text += drop_in.read_text()
    (units / "waap.service").write_text(text)


@pytest.mark.parametrize("change", [None, with_drop_ins])
def test_systemd_understands_the_units(analyze, units, change):
    if change:
        change(units)
    code, output = analyze("verify", "--man=no", *sorted(units.glob("waap*")))
    assert (code, output) == (0, "")


def test_systemd_would_name_a_mistake(analyze, units):
    (units / "waap.service").write_text((units / "waap.service").read_text() + "[Service]\nRestrat=no\n")
    assert "Restrat" in analyze("verify", "--man=no", units / "waap.service")[1]


def test_little_is_exposed(analyze, units):
    arguments = ("security", "--offline=true", "--no-pager")
    code, output = analyze(*arguments, f"--threshold={MOST_EXPOSURE}", units / "waap.service")
    if "unrecognized option" in output:
        pytest.skip("this systemd-analyze cannot judge a unit that is not loaded")
    assert code == 0, output
    assert analyze(*arguments, "--threshold=1", units / "waap.service")[0] != 0
