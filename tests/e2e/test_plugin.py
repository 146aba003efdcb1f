"""Plugins and the daemon together: what they record is scraped, knobs turn, nothing is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from running import ROOT, Waap
from waiting import pace, wait_until

PACKAGE = ROOT / "plugin/python"


@pytest.fixture
def socket(tmp_path):
    return tmp_path / "push.sock"


@pytest.fixture
def daemon(waap, socket):
    return waap("--collector.disable-defaults", "--collector.push", f"--push.socket={socket}")


@pytest.fixture
def start(socket):
    """start(command…): a plugin; ended with the test."""
    processes = []

    def run(*command, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("WAAP_")}
        clean.update(PYTHONPATH=str(PACKAGE), WAAP_PUSH_SOCKET=str(socket), PYTHONDONTWRITEBYTECODE="1")
        clean.update(environment)
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen([str(word) for word in command], env=clean, text=True, **pipes)
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def python(start):
    """python(program): one that has imported plugin and is called objcounter."""

    def run(program, **environment):
        text = "from waap import plugin\n" + textwrap.dedent(program)
        return start(sys.executable, "-c", text, WAAP_PLUGIN_NAME="objcounter", **environment)

    return run


@pytest.fixture(params=["c", "python"])
def example(request, start, waap_binary):
    """Starts the example in C or in Python."""
    if request.param == "python":
        return lambda: start(sys.executable, ROOT / "plugin/examples/objcounter.py")
    return lambda: start(waap_binary.parent.parent / "plugin/objcounter")


def finish(process, seconds=60):
    """Waits for a good end; returns what was printed."""
    output, errors = process.communicate(timeout=seconds)
    assert process.returncode == 0, errors
    return output


def series(daemon, name):
    """The only series of that name: its value; None: there is none."""
    found = [value for (metric, _), value in daemon.metrics().items() if metric == name]
    assert len(found) < 2
    return found[0] if found else None


def ask(daemon, path, value=None):
    if value is None:
        answer = daemon.get(path)
    else:
        answer = daemon.get(path, method="PUT", body=json.dumps({"value": value}).encode())
    assert answer.status == 200, answer.text
    return json.loads(answer.text)["data"]


RES = "/api/v1/plugins/objcounter/params/res"


def test_the_examples_are_scraped(daemon, example):
    example()
    wait_until(lambda: (series(daemon, "fps_total") or 0) > 20, what="20 frames")
    assert 0 < wait_until(lambda: series(daemon, "fps"), what="a rate") < 100
    page = daemon.metrics()
    assert page["fps_total", frozenset({("plugin", "objcounter")})] > 0
    assert series(daemon, "inference_seconds_sum") > 0.02 * 20
    kinds = {dict(labels)["kind"] for name, labels in page if name == "objects_total"}
    assert kinds <= {"car", "person", "bicycle"} and kinds
    assert page["plugin_param", frozenset({("plugin", "objcounter"), ("param", "res")})] == 720


def test_a_knob_changes_the_frame_rate(daemon, example):
    example()

    def rate(lines):
        """Frames a second at that resolution."""
        ask(daemon, RES, lines)
        wait_until(lambda: ask(daemon, RES)["applied"] == lines, what=f"{lines} lines")
        began, before = time.monotonic(), series(daemon, "fps_total")
        wait_until(lambda: series(daemon, "fps_total") >= before + 15, what="15 frames")
        return (series(daemon, "fps_total") - before) / (time.monotonic() - began)

    wait_until(lambda: series(daemon, "fps_total"), what="the first frame")
    # A loaded machine may disturb one measurement, but not every one.
    wait_until(lambda: rate(240) > 2 * rate(1080), what="a rate that follows the knob")
    assert daemon.get(RES, method="PUT", body=b'{"value": 99}').status == 400
    assert ask(daemon, RES)["applied"] == 1080


def test_a_knob_is_applied_at_once(daemon, python):
    process = python("""
        import sys
        plugin.configure(interval=600)  # for which nobody waits
        res = plugin.param("res", default=720, min=240, max=1080, on_change=lambda value: None)
        sys.stdin.read()
    """)
    wait_until(lambda: daemon.get(RES).status == 200, what="the knob")
    for lines in range(300, 320):
        ask(daemon, RES, lines)
        wait_until(lambda: ask(daemon, RES)["applied"] == lines, what=f"{lines} lines")
    finish(process)


def test_flushed_is_scraped(daemon, python):
    process = python("""
        counter, gauge, odd = plugin.counter("frames"), plugin.gauge("queue"), plugin.gauge("odd")
        seconds = plugin.histogram("work_seconds", buckets=[1, 2])
        odd.set(float("nan"))
        for i in range(1, 101):
            counter.inc(i)
            gauge.set(i / 4)
            seconds.observe(i % 3)
            assert plugin.flush(30)
            print(i, flush=True)
            input()
    """)
    total = 0
    for i in range(1, 101):
        assert process.stdout.readline() == f"{i}\n", process.stderr.read()
        total += i
        if i % 10 == 0:
            assert series(daemon, "frames_total") == total
            assert series(daemon, "queue") == i / 4
            assert series(daemon, "work_seconds_count") == i
        process.stdin.write("\n")
        process.stdin.flush()
    finish(process)
    assert series(daemon, "work_seconds_sum") == 100
    assert str(series(daemon, "odd")) == "nan"


def test_forked_processes_add_up(daemon, python):
    process = python("""
        import os
        frames = plugin.counter("frames_total")
        frames.inc(1)
        for i in range(5):
            if os.fork() == 0:
                frames.inc(10)
                raise SystemExit(0)
        for i in range(5):
            assert os.wait()[1] == 0
        frames.inc(1)
    """)
    finish(process)
    assert series(daemon, "frames_total") == 52


def test_what_the_daemon_refuses_is_told(daemon, python):
    process = python(
        """
        plugin.gauge("waap_build_info").set(1)
        plugin.counter("good_total").inc()
        plugin.flush(30)
        print(plugin.stats()["errors"])
        """,
        WAAP_DEBUG="1",
    )
    output, errors = process.communicate(timeout=60)
    assert int(output) >= 1
    assert errors.startswith("waap: ") and "waap_build_info" in errors
    assert series(daemon, "good_total") == 1


COUNTING = """
    import sys, threading
    plugin.configure(interval=0.005)
    frames, seconds = plugin.counter("frames_total"), plugin.histogram("seconds")
    done = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
    n = 0
    while not done.is_set():
        frames.inc()
        seconds.observe(0.25)
        n += 1
        if n % 100 == 0:
            done.wait(0.001)
            plugin.flush(0)
    assert plugin.flush(30)
    print(n)
"""


@pytest.mark.parametrize("table", ["push.table", ""], ids=["table", "memory"])
@pytest.mark.parametrize("language", ["c", "python"])
def test_the_daemon_killed_again_and_again(started, waap_binary, start, python, socket, language, table):
    """The totals of a plugin that lives on are exact, however often the daemon did not, and whether it
    remembers what it had."""
    flags = ["--collector.disable-defaults", "--collector.push", f"--push.socket={socket}"]
    flags.append(f"--push.table={socket.with_name(table) if table else ''}")
    in_c = waap_binary.parent.parent / "tests/fakes/counting-plugin"
    process = start(in_c) if language == "c" else python(COUNTING)
    rng = random.Random(2)
    for _ in range(10):
        daemon = started(Waap(waap_binary, *flags))
        wait_until(lambda: series(daemon, "frames_total"), what="the plugin")
        pace(rng.uniform(0, 0.1))
        daemon.stop(signal=signal.SIGKILL)
    daemon = started(Waap(waap_binary, *flags))
    n = int(finish(process))
    assert n > 1000
    assert series(daemon, "frames_total") == n
    assert series(daemon, "seconds_count") == n
    assert series(daemon, "seconds_sum") == n / 4
