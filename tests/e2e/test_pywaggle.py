"""Plugins that use pywaggle and know nothing of us: we read the run logs they write."""

import json
import os

import pytest

from running import wait_until

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
        "--collector.disable-defaults", "--collector.push", f"--push.pywaggle-log={directory}/"
    )
    return program, directory


def wait_sample(program, series, value):
    wait_until(lambda: program.samples(path=PAGE).get(series) == value, 30, f"{series} {value}")


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
    program.wait_log("pywaggle:")
    assert 'z{plugin="a"}' not in program.samples(path=PAGE)
    log.write("\n")
    wait_sample(program, 'z{plugin="a"}', "7")
    program.wait_log("fine again")
    assert program.output().count("level=warn") == 1


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
