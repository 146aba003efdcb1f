"""What was acknowledged is there after any end of the daemon, and nothing is there twice."""

import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

import pytest

from plugin import Plugin
from running import Waap
from waiting import LIMIT, pace, wait_until

NOBODY = 65534
ALONE = ("--collector.disable-defaults", "--collector.push")
N_WRITERS = 8
UPDATES_PER_SECOND = 10_000
LINES = 50  # before a writer asks whether all was taken
PER_KILL = 1000  # updates at least, however slow the machine is


@pytest.fixture
def place():
    """A directory on tmpfs, as /run is."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield pathlib.Path(directory)


class Writer(threading.Thread):
    """A plugin that counts, in both ways, whether or not somebody listens."""

    def __init__(self, number, path):
        super().__init__(daemon=True)
        self.plugin = f"writer{number}"
        self.path = path
        self.over = threading.Event()
        self.total = 0  # counted
        self.total_acked = 0
        self.inc_sent = 0
        self.inc_acked = 0
        self.error = None

    def connect(self):
        while True:
            try:
                return Plugin(self.path, {"plugin": self.plugin, "start": f"{self.plugin}-1"})
            except (ConnectionError, FileNotFoundError):
                pace(0.005)

    def lines(self):
        inc = b'{"metric": "incs_total", "type": "counter", "inc": 1}\n'
        for _ in range(LINES // 2):
            self.total += 1
            yield b'{"metric": "totals_total", "type": "counter", "total": %d}\n' % self.total
            self.inc_sent += 1
            yield inc

    def push(self, plugin):
        plugin.send(b"".join(self.lines()))
        heard = plugin.settle()
        assert heard == [], heard
        self.total_acked = self.total
        self.inc_acked += LINES // 2

    def go(self):
        interval = LINES * N_WRITERS / UPDATES_PER_SECOND
        plugin = self.connect()
        due = time.monotonic()
        while not self.over.is_set() or self.total_acked < self.total:
            try:
                self.push(plugin)
            except (ConnectionError, BrokenPipeError, AssertionError) as problem:
                if "hung up" not in str(problem) and isinstance(problem, AssertionError):
                    raise
                # What was not acknowledged may be there or not; a total can be said again.
                plugin.close()
                plugin = self.connect()
            due = max(due + interval, time.monotonic() - 0.1)
            pace(max(0, due - time.monotonic()))
        plugin.close()

    def run(self):
        try:
            self.go()
        except Exception as problem:
            self.error = problem


def listening(waap, *flags):
    """A daemon to which plugins can connect."""
    daemon = waap(*flags)
    daemon.wait_log("push: listening on")
    return daemon


def counts(waap, name):
    page = waap.metrics()
    return {
        dict(labels)["plugin"]: value for (n, labels), value in page.items() if n == name
    }


def n_updates(writers):
    return sum(writer.total + writer.inc_sent for writer in writers)


def crash(waap_binary, place, n_kills):
    flags = (*ALONE, f"--push.table={place}/table", f"--push.socket={place}/push.sock")
    writers = [Writer(i, place / "push.sock") for i in range(N_WRITERS)]
    daemon = Waap(waap_binary, *flags)
    for writer in writers:
        writer.start()
    begin = time.monotonic()
    for i in range(n_kills):
        pace(0.05 + 0.03 * (i % 7))
        wait_until(lambda: n_updates(writers) >= PER_KILL * (i + 1), what="updates")
        acked = {w.plugin: (w.total_acked, w.inc_acked) for w in writers}
        assert daemon.stop(signal=signal.SIGKILL)[0] == -signal.SIGKILL
        daemon.close()
        daemon = Waap(waap_binary, *flags)
        totals, incs = counts(daemon, "totals_total"), counts(daemon, "incs_total")
        for plugin, (total, inc) in acked.items():
            assert totals.get(plugin, 0) >= total and incs.get(plugin, 0) >= inc
    seconds = time.monotonic() - begin
    with daemon:
        for writer in writers:
            writer.over.set()
        for writer in writers:
            writer.join(LIMIT)
            assert writer.error is None, writer.error
            assert not writer.is_alive()
        totals, incs = counts(daemon, "totals_total"), counts(daemon, "incs_total")
    for writer in writers:
        assert totals[writer.plugin] == writer.total
        assert writer.inc_acked <= incs[writer.plugin] <= writer.inc_sent
    print(f"{n_kills} kills, {n_updates(writers) / seconds:.0f} updates/s for {seconds:.1f} s")


def test_nothing_acknowledged_is_lost_to_kills(waap_binary, place):
    crash(waap_binary, place, 20)


@pytest.mark.long
def test_nothing_acknowledged_is_lost_to_many_kills(waap_binary, place):
    crash(waap_binary, place, 200)


def test_an_orderly_end_keeps_everything(waap, place):
    flags = (*ALONE, f"--push.table={place}/table", f"--push.socket={place}/push.sock")
    first = listening(waap, *flags)
    with Plugin(place / "push.sock", {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "n", "type": "counter", "inc": 3}, {"metric": "g", "type": "gauge", "set": 7})
    assert first.stop()[0] == 0
    second = listening(waap, *flags)
    second.wait_log("2 series restored")
    assert counts(second, "n_total") == {"p": 3} and counts(second, "g") == {"p": 7}


def test_a_reboot_leaves_the_state_file(waap, place):
    flags = (*ALONE, f"--push.state-file={place}/state", f"--push.socket={place}/push.sock")
    first = listening(waap, *flags, f"--push.table={place}/table", "--push.state-interval=1s")
    with Plugin(place / "push.sock", {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "n", "type": "counter", "inc": 3})
    wait_until((place / "state").exists, what="a state file")
    saved = wait_until(lambda: first.samples().get("waap_push_state_saved_timestamp_seconds"))
    assert float(saved) > 1e9
    first.stop(signal=signal.SIGKILL)
    (place / "table").unlink()
    second = listening(waap, *flags, f"--push.table={place}/table")
    assert counts(second, "n_total") == {"p": 3}
    with Plugin(place / "push.sock", {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "n", "inc": 1})
    assert second.stop()[0] == 0
    (place / "table").unlink()
    third = listening(waap, *flags, f"--push.table={place}/table")
    assert counts(third, "n_total") == {"p": 4}


def damage(state, how):
    content = bytearray(state.read_bytes())
    if how == "cut":
        content = content[: len(content) // 2]
    elif how == "newer":
        content[8] = 99
    elif how == "empty":
        content = b""
    else:
        for place in range(100, len(content), 997):
            content[place] ^= 1
    state.write_bytes(content)


@pytest.mark.parametrize("how", ["cut", "newer", "empty", "flipped"])
def test_damaged_state_files_are_set_aside(waap, place, how):
    flags = (*ALONE, f"--push.state-file={place}/state", f"--push.socket={place}/push.sock")
    first = listening(waap, *flags)
    with Plugin(place / "push.sock", {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "n", "type": "counter", "inc": 3})
    assert first.stop()[0] == 0
    damage(place / "state", how)
    second = listening(waap, *flags)
    second.wait_log("set aside as")
    assert list(place.glob("state.bad-*"))
    with Plugin(place / "push.sock", {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "n", "type": "counter", "inc": 1})
    assert counts(second, "n_total")["p"] in (1, 4)


def expose(file, how):
    """Makes it a file that others can have written; what the log must say of it."""
    if how == "owner":
        if os.geteuid() != 0:
            pytest.skip("no right to give files away")
        os.chown(file, NOBODY, -1)
        return f"{file} is owned by user {NOBODY}, this process runs as user 0: remove the file"
    if how == "mode":
        file.chmod(0o602)
        return f"{file} can be written by others (mode 0602): remove the file"
    target = file.rename(file.with_suffix(".target"))
    file.symlink_to(target)
    return f"{file} is a symbolic link: remove it"


@pytest.mark.parametrize("how", ["owner", "mode", "link"])
@pytest.mark.parametrize("name", ["state", "table", "table.lock"])
def test_files_that_others_can_have_written_are_refused(waap, place, name, how):
    kept = f"--push.{'state-file' if name == 'state' else 'table'}={place / name.split('.')[0]}"
    flags = (*ALONE, kept, f"--push.socket={place}/push.sock")
    flags += ("--push.table=",) if name == "state" else ()
    first = listening(waap, *flags)
    with Plugin(place / "push.sock", {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "n", "type": "counter", "inc": 3})
    assert first.stop()[0] == 0
    words = expose(place / name, how)
    before = (place / name).lstat()
    second = listening(waap, *flags)
    second.wait_log(words)
    assert second.samples()["waap_push_series"] == "0"
    assert second.stop()[0] == 0
    after = (place / name).lstat()
    assert (after.st_ino, after.st_uid, after.st_mode) == (before.st_ino, before.st_uid, before.st_mode)


@pytest.mark.parametrize("name", ["table", "state"])
def test_its_files_are_for_the_daemon_alone(waap, place, name):
    """Whoever left a file where the next one is made."""
    stranger = (place / f"{name}.new").open("wb+")
    (place / f"{name}.new").chmod(0o666)
    flags = (f"--push.table={place}/table", f"--push.state-file={place}/state")
    daemon = listening(waap, *ALONE, *flags, f"--push.socket={place}/push.sock")
    with Plugin(place / "push.sock", {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "n", "type": "counter", "inc": 3})
    assert daemon.stop()[0] == 0
    assert (place / name).stat().st_mode & 0o777 == 0o600
    assert stranger.read() == b""


def test_a_state_file_that_cannot_be_is_told_at_once(waap, tmp_path):
    instance = waap(*ALONE, f"--push.state-file={tmp_path}/a/b/state", "--push.table=")
    instance.wait_log("nothing can be saved so far (see --push.state-file)")


def test_a_second_daemon_says_that_it_keeps_nothing(waap, place):
    waap(*ALONE, f"--push.table={place}/table")
    second = waap(*ALONE, f"--push.table={place}/table")
    second.wait_log("in use by another waap")
    assert second.samples()["waap_push_persistent"] == "0"


def test_a_second_daemon_says_that_it_leaves_the_state_file(waap, place):
    waap(*ALONE, f"--push.state-file={place}/state", "--push.table=")
    second = waap(*ALONE, f"--push.state-file={place}/state", "--push.table=")
    second.wait_log(f"push: {place}/state is in use by another waap; nothing is taken from it, and nothing is saved")


def test_a_reload_cannot_move_the_files(waap, place):
    file = place / "waap.yaml"
    file.write_text(f"push:\n  state_file: {place}/one\n")
    daemon = waap(*ALONE, f"--config.file={file}")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_log("configuration applied")
    assert "still using" not in daemon.output()
    file.write_text(f"push:\n  state_file: {place}/two\n")
    daemon.process.send_signal(signal.SIGHUP)
    words = daemon.wait_log("still using")
    assert f"{place}/one" in words and f"{place}/two" not in words


@pytest.fixture
def small_disk(tmp_path):
    """A tmpfs of 128 KiB."""
    path = tmp_path / "disk"
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", path], capture_output=True)
    if done.returncode != 0:
        pytest.skip("no right to mount a tmpfs")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def test_a_full_disk_refuses_what_is_added(waap, small_disk, tmp_path):
    flags = (*ALONE, f"--push.table={small_disk}/table", f"--push.socket={tmp_path}/push.sock")
    first = listening(waap, *flags)
    with Plugin(tmp_path / "push.sock", {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "n", "type": "counter", "inc": 1})
        for i in range(2000):
            plugin.say({"metric": f"series_{i}", "type": "gauge", "set": i, "help": "x" * 200})
        refused = [item for item in plugin.settle() if "no room" in item.get("error", "")]
        assert refused
        plugin.tell({"metric": "n", "inc": 1})
    assert counts(first, "n_total") == {"p": 2}
    page = first.samples()
    n_refused = float(page['waap_push_refused_total{reason="room"}'])
    assert n_refused >= len(refused)  # a client that does not read gets only some
    assert 200 < float(page["waap_push_series"]) == 2001 - n_refused


def test_a_full_disk_keeps_the_state_file_before(waap, small_disk, tmp_path):
    flags = (*ALONE, f"--push.state-file={small_disk}/state", f"--push.socket={tmp_path}/push.sock")
    first = listening(waap, *flags, "--push.state-interval=1s")
    with Plugin(tmp_path / "push.sock", {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "n", "type": "counter", "inc": 1})
        wait_until((small_disk / "state").exists, what="a state file")
        for i in range(1000):
            plugin.say({"metric": f"series_{i}", "type": "gauge", "set": i, "help": "x" * 200})
        plugin.settle()
        first.wait_log("state file: write")
    assert "No space left on device" in first.output()
    first.stop(signal=signal.SIGKILL)
    second = listening(waap, *flags)
    second.wait_log("1 series restored")
    assert counts(second, "n_total") == {"p": 1}
