"""Plugins that use pywaggle and know nothing of us: we read the run logs they write."""

import itertools
import json
import os
import resource
import time

import pytest

from plugin import Plugin
from waiting import wait_idle, wait_until

PAGE = "/metrics?collect[]=push"


class RunLog:
    """What pywaggle writes to PYWAGGLE_LOG_DIR."""

    def __init__(self, directory):
        directory.mkdir(exist_ok=True)
        self.path = directory / "data.ndjson"

    def publish(self, name, value, **meta):
        self.write(
            json.dumps(
                {
                    "meta": meta,
                    "name": name,
                    "timestamp": "2024-05-01T12:00:00.123456789",
                    "value": value,
                },
                sort_keys=True,
                separators=(",", ":"),
            )
            + "\n"
        )

    def write(self, text):
        with self.path.open("a") as file:
            file.write(text)


@pytest.fixture
def logs(tmp_path, waap):
    """The daemon and a directory of run logs that it follows."""
    directory = tmp_path / "logs"
    directory.mkdir()
    old = RunLog(directory / "old")
    old.publish("env.temp", 1)
    program = waap(
        "--collector.disable-defaults",
        "--collector.push",
        f"--push.pywaggle-log={directory}/",
        f"--push.socket={tmp_path}/push.sock",
    )
    # Stamps of files are a tick of the kernel behind: a log of the first 10 ms counts as older than the daemon.
    time.sleep(0.02)
    return program, directory


def wait_sample(program, series, value):
    wait_until(lambda: program.samples(path=PAGE).get(series) == value, what=f"{series} {value}")


def test_publishes_become_metrics(logs):
    program, directory = logs
    log = RunLog(directory / "cars")
    log.publish("env.count.car", 3, camera="top")
    log.publish("env.count.car", 5, camera="top")
    log.publish("plugin.duration.inference", 31_000_000)
    log.publish("label", "a text")
    wait_sample(program, 'env_count_car{camera="top",plugin="cars"}', "5")
    page = program.samples(path=PAGE)
    assert page['plugin_publishes_total{name="env.count.car",plugin="cars"}'] == "2"
    assert page['plugin_publishes_total{name="label",plugin="cars"}'] == "1"
    assert page['plugin_duration_seconds_sum{name="inference",plugin="cars"}'] == "0.031"
    bucket = 'plugin_duration_seconds_bucket{name="inference",plugin="cars",le="0.05"}'
    assert page[bucket] == "1"


def test_what_was_there_before_is_passed_over(logs):
    program, directory = logs
    RunLog(directory / "old").publish("env.temp", 2)
    wait_sample(program, 'env_temp{plugin="old"}', "2")
    assert program.samples(path=PAGE)['plugin_publishes_total{name="env.temp",plugin="old"}'] == "1"


def test_own_log_of_the_directory(logs):
    program, directory = logs
    RunLog(directory).publish("x", 1)
    wait_sample(program, 'x{plugin="logs"}', "1")


def test_half_lines_and_garbage(logs):
    program, directory = logs
    log = RunLog(directory / "a")
    log.write('{"name":"x","va')
    log.publish("y", 1)  # glued to the half: one bad line
    log.write("garbage\n\n")
    log.write('{"name":"z","value":7}')
    program.wait_log(f"push: plugin a by {directory}/a/data.ndjson: refused (unreadable): ")
    assert 'z{plugin="a"}' not in program.samples(path=PAGE)
    log.write("\n")
    wait_sample(program, 'z{plugin="a"}', "7")
    assert program.output().count("level=warn") == 1
    assert program.stop()[0] == 0
    assert "refused (unreadable): and 1 more" in program.output()


def test_log_that_is_cut_or_replaced(logs):
    program, directory = logs
    log = RunLog(directory / "a")
    log.publish("x", 1, note="a long line that the next one is shorter than")
    wait_sample(program, 'plugin_publishes_total{name="x",plugin="a"}', "1")
    log.path.write_text("")
    log.publish("x", 2)
    wait_sample(program, 'x{plugin="a"}', "2")
    os.replace(log.path, log.path.with_suffix(".1"))
    log.publish("x", 3)
    log.publish("x", 4)
    wait_sample(program, 'x{plugin="a"}', "4")
    series = 'plugin_publishes_total{name="x",plugin="a"}'
    assert program.samples(path=PAGE)[series] == "4"


def test_links_are_not_followed(logs, tmp_path):
    program, directory = logs
    outside = tmp_path / "outside"
    RunLog(outside).publish("secret", 1)
    (directory / "linked").symlink_to(outside)
    (directory / "own").mkdir()
    (directory / "own/data.ndjson").symlink_to(outside / "data.ndjson")
    RunLog(directory / "cars").publish("x", 1)
    wait_sample(program, 'x{plugin="cars"}', "1")
    RunLog(outside).publish("secret", 2)
    RunLog(directory / "cars").publish("x", 2)
    wait_sample(program, 'x{plugin="cars"}', "2")
    assert not any(series.startswith("secret") for series in program.samples(path=PAGE))


def test_a_log_does_not_speak_for_a_connected_plugin(logs, tmp_path):
    program, directory = logs
    with Plugin(tmp_path / "push.sock", {"plugin": "victim"}) as plugin:
        plugin.tell({"metric": "temp", "type": "gauge", "set": 1})
        log = RunLog(directory / "victim")
        for value in (98, 99):
            log.publish("temp", value)
            RunLog(directory / "other").publish("x", value)
            wait_sample(program, 'x{plugin="other"}', str(value))
        program.wait_log(
            f"push: plugin victim by {log.path}: refused (forbidden): plugin victim is owned by uid "
        )
        page = program.samples(path=PAGE)
    assert page['temp{plugin="victim"}'] == "1"
    assert 'plugin_publishes_total{name="temp",plugin="victim"}' not in page
    assert program.output().count("level=warn") == 1


def test_a_plugin_of_a_log_is_not_pushed_to_over_http(logs):
    program, directory = logs
    RunLog(directory / "cars").publish("x", 1)
    wait_sample(program, 'x{plugin="cars"}', "1")
    update = b'{"plugin":"cars","metric":"x","type":"gauge","set":2}'
    answer = program.get("/api/v1/push", method="POST", body=update)
    assert answer.status == 403 and b"is owned by pywaggle" in answer.body
    assert program.samples(path=PAGE)['x{plugin="cars"}'] == "1"


def test_much_at_a_time(logs):
    """More than one turn takes, of several plugins."""
    program, directory = logs
    for plugin in ("a", "b", "c"):
        log = RunLog(directory / plugin)
        log.publish("x", 0)
        log.write(log.path.read_text() * 4999)
    for plugin in ("a", "b", "c"):
        wait_sample(program, f'plugin_publishes_total{{name="x",plugin="{plugin}"}}', "5000")


def test_directory_that_comes_later(waap, tmp_path):
    directory = tmp_path / "later"
    program = waap(
        "--collector.disable-defaults", "--collector.push", f"--push.pywaggle-log={directory}"
    )
    program.wait_log(f"pywaggle: open {directory}: No such file or directory")
    directory.mkdir()
    program.wait_log("fine again")
    RunLog(directory / "a").publish("x", 1)
    wait_sample(program, 'x{plugin="a"}', "1")
    assert program.output().count("level=warn") == 1


PUBLISHES = 'plugin_publishes_total{name="x",plugin="a"}'


def test_directory_that_is_away_for_a_moment(logs):
    program, directory = logs
    log, other = RunLog(directory / "a"), RunLog(directory / "b")
    log.publish("x", 1)
    wait_sample(program, PUBLISHES, "1")
    away = directory.with_name("away")
    directory.rename(away)
    program.wait_log(f"pywaggle: open {directory}: No such file or directory")
    away.rename(directory)
    program.wait_log("fine again")
    turns = itertools.count(1)

    def wait_turn():
        """Until each log has been looked at: what the second of two turns finds was there in the first."""
        for _ in range(2):
            turn = next(turns)
            other.publish("turn", turn)
            wait_sample(program, 'turn{plugin="b"}', str(turn))

    wait_turn()
    assert program.samples(path=PAGE)[PUBLISHES] == "1"
    for path in (log.path.parent, log.path):
        path.rename(away)
        wait_turn()
        away.rename(path)
        wait_turn()
        assert program.samples(path=PAGE)[PUBLISHES] == "1", path
    log.publish("x", 2)
    wait_sample(program, PUBLISHES, "2")


def test_log_that_cannot_be_opened_for_a_moment(logs):
    program, directory = logs
    log = RunLog(directory / "a")
    log.publish("x", 1)
    wait_sample(program, PUBLISHES, "1")
    limits = resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    program.wait_log(f"pywaggle: open {directory}: Too many open files")
    log.publish("x", 2)
    resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE, limits)
    wait_sample(program, PUBLISHES, "2")


def test_logs_of_a_directory_that_comes_later(waap, tmp_path):
    """What is older than the daemon was there before, as in a mount that comes late."""
    made, directory = tmp_path / "made", tmp_path / "later"
    made.mkdir()
    old = RunLog(made / "a")
    old.publish("x", 1)
    program = waap(
        "--collector.disable-defaults", "--collector.push", f"--push.pywaggle-log={directory}"
    )
    program.wait_log(f"pywaggle: open {directory}: No such file or directory")
    RunLog(made / "b").publish("x", 1)
    made.rename(directory)
    wait_sample(program, 'plugin_publishes_total{name="x",plugin="b"}', "1")
    assert PUBLISHES not in program.samples(path=PAGE)
    RunLog(directory / "a").publish("x", 2)
    wait_sample(program, PUBLISHES, "1")
    late = tmp_path / "late"  # over it, as if mounted there
    directory.rename(tmp_path / "covered")
    late.mkdir()
    RunLog(late / "c").publish("x", 1)
    late.rename(directory)
    wait_sample(program, 'plugin_publishes_total{name="x",plugin="c"}', "1")
    directory.rename(late)
    (tmp_path / "covered").rename(directory)
    RunLog(directory / "a").publish("x", 3)
    wait_sample(program, PUBLISHES, "2")


def test_many_directories_are_no_load(waap, tmp_path):
    """Their number is whatever those who may write there like."""
    directory = tmp_path / "logs"
    RunLog(directory)
    for i in range(8000):
        (directory / f"empty{i}").mkdir()
    old = RunLog(directory / "old")
    old.publish("x", 1)
    program = waap(
        "--collector.disable-defaults", "--collector.push", f"--push.pywaggle-log={directory}"
    )
    wait_idle(program.cpu_seconds, 3)
    program.wait_log(f"pywaggle: {directory}: more than 500 entries; a plugin that is new")
    old.publish("x", 2)
    wait_sample(program, 'x{plugin="old"}', "2")
    series = 'plugin_publishes_total{name="x",plugin="old"}'
    assert program.samples(path=PAGE)[series] == "1"
    RunLog(directory / "empty7654").publish("x", 3)
    wait_sample(program, 'x{plugin="empty7654"}', "3")
    assert program.output().count("level=warn") == 1
