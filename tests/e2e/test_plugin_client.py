"""The Python package for plugins, by programs that use it against an exporter's end that misbehaves."""

import ast
import glob
import json
import os
import pathlib
import random
import subprocess
import sys
import textwrap
import time

import pytest

from push_peer import PushPeer
from running import ROOT, wait_until

PACKAGE = ROOT / "plugin/python"


def old_pythons():
    """Interpreters of other versions that this machine happens to have."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    wanted = ("3.6", "3.8", "3.12", "3.13")
    found = {version: glob.glob(f"{root}/versions/{version}.*/bin/python3") for version in wanted}
    return [
        pytest.param(paths[0] if paths else None, id=version) for version, paths in found.items()
    ]


@pytest.fixture
def peer(tmp_path):
    with PushPeer(tmp_path / "push.sock") as peer:
        yield peer


@pytest.fixture
def start(peer):
    """start(program): a Python program that has imported plugin; ended with the test."""
    processes = []

    def run(program, python=sys.executable, **environment):
        command = [python, "-c", "from waap import plugin\n" + textwrap.dedent(program)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("WAAP_")}
        clean.update(PYTHONPATH=str(PACKAGE), WAAP_PUSH_SOCKET=peer.path, PYTHONDONTWRITEBYTECODE="1")
        clean.update(environment)
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen(command, env=clean, text=True, **pipes)
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def run(start):
    """run(program): runs it to its end, which must be good; returns what it printed."""

    def to_end(program, seconds=60, **options):
        process = start(program, **options)
        output, errors = process.communicate(timeout=seconds)
        assert (process.returncode, errors) == (0, ""), errors
        return output

    return to_end


ALL_KINDS = """
    frames = plugin.counter("frames_total", help="Frames.", labels={"cam": "top"})
    fps = plugin.metric("fps")
    queue = plugin.gauge("queue")
    unset = plugin.gauge("unset")
    work = plugin.histogram("work", buckets=[1, 2])
    for i in range(100):
        frames.inc()
        fps.inc(2)
        queue.set(i)
        with plugin.timeit("inference"):
            work.observe(i % 4)
    frames.labels(stage="late").inc(0.5)
"""


def check_all_kinds(peer):
    assert peer.sums['frames_total{"cam": "top"}'] == 100
    assert peer.sums['frames_total{"cam": "top", "stage": "late"}'] == 0.5
    assert peer.sums["fps"] == 200
    assert peer.gauges == {"queue": 99}
    assert peer.sums["work_count"] == 100
    assert peer.sums["work_sum"] == 150
    assert (peer.sums["work_bucket_0"], peer.sums["work_bucket_1"]) == (50, 75)
    assert peer.sums["inference_seconds_count"] == 100


def test_all_that_was_recorded_is_there_at_the_end(peer, run):
    run(ALL_KINDS, WAAP_PLUGIN_NAME="objcounter", WAAP_JOB="cars")
    check_all_kinds(peer)
    assert [(hello["plugin"], hello["job"]) for hello in peer.hellos] == [("objcounter", "cars")]
    declared = {line["metric"]: line["type"] for line in peer.lines if "type" in line}
    assert declared == {
        "frames_total": "counter",
        "fps": "rate",
        "queue": "gauge",
        "work": "histogram",
        "inference_seconds": "histogram",
    }
    first = next(line for line in peer.lines if line.get("metric") == "work")
    assert first["buckets"] == [1, 2]


@pytest.mark.parametrize("piece", [1, 7])
def test_lines_in_pieces(peer, run, piece):
    peer.piece = piece
    peer.answer = b'\n\n{"param": "none", "value": 1}\n'
    run(ALL_KINDS)
    check_all_kinds(peer)


FORKING = """
    import multiprocessing, os, time
    frames = plugin.counter("frames_total")
    frames.inc(10)
    assert plugin.flush()

    def work(n):
        frames.inc(n)

    if os.fork() == 0:
        raise SystemExit(0)  # records nothing, so it does not connect
    if os.fork() == 0:
        work(100)
        raise SystemExit(0)
    if os.fork() == 0:
        work(1000)
        assert plugin.flush()
        os._exit(0)
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=work, args=(10000,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    for _ in range(3):
        assert os.wait()[1] == 0
    frames.inc()
    assert plugin.flush()
    assert plugin.stats()["connects"] == 1
"""


def check_forking(peer):
    wait_until(lambda: peer.sums["frames_total"] == 31111, what="31111 frames")
    assert len(peer.last) == 6


def test_forked_processes_count_for_themselves(peer, run):
    run(FORKING)
    check_forking(peer)


def test_fork_while_other_threads_record(peer, run):
    run("""
        import os, threading
        frames = plugin.counter("frames_total")
        stop = False
        def record():
            while not stop:
                frames.inc()
        threads = [threading.Thread(target=record) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                frames.inc()
                plugin.gauge("child").set(1)
                os._exit(0 if plugin.flush() else 1)
            assert os.waitpid(pid, 0)[1] == 0
        stop = True
    """)
    assert len(peer.last) == 21
    assert sorted(totals["frames_total"] for totals in peer.last.values())[:20] == [1] * 20


def test_descriptors_closed_by_others(peer, run):
    run("""
        import os, socket, time
        frames = plugin.counter("frames_total")
        frames.inc()
        assert plugin.flush()
        os.closerange(3, 64)
        others = [end for _ in range(20) for end in socket.socketpair()]
        frames.inc()
        assert plugin.flush()
        for end in others:  # whatever took the numbers is not written to
            end.setblocking(False)
            try:
                assert not end.recv(1)
            except BlockingIOError:
                pass
        began = time.process_time()
        time.sleep(0.5)
        assert time.process_time() - began < 0.25
        assert plugin.stats()["connects"] == 2
    """)
    assert peer.sums["frames_total"] == 2


THREADS = """
    import threading
    frames = plugin.counter("frames_total")
    seconds = plugin.histogram("seconds")
    def record(i):
        for _ in range(20000):
            frames.inc()
            seconds.observe(0.5)
            plugin.counter("each_total", labels={"i": i}).inc()
    threads = [threading.Thread(target=record, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def check_threads(peer):
    assert peer.sums["frames_total"] == 80000
    assert peer.sums["seconds_count"] == 80000
    assert peer.sums["seconds_sum"] == 40000
    assert [peer.sums[f'each_total{{"i": "{i}"}}'] for i in range(4)] == [20000] * 4


def test_threads(peer, run):
    run(THREADS)
    check_threads(peer)


def test_nothing_is_lost_or_doubled_over_fifty_kills(peer, start):
    process = start("""
        import sys, threading
        plugin.configure(interval=0.002)
        frames = plugin.counter("frames_total")
        seconds = plugin.histogram("seconds")
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
    """)
    rng = random.Random(1)
    for _ in range(50):
        before = len(peer.hellos)
        wait_until(lambda: len(peer.hellos) > before or process.poll() is not None)
        time.sleep(rng.uniform(0, 0.03))
        peer.kill()
        time.sleep(rng.uniform(0, 0.03))
        peer.listen()
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    n = int(output)
    assert n > 1000
    assert len(peer.hellos) >= 50
    assert len({hello["start"] for hello in peer.hellos}) == 1
    assert (peer.sums["frames_total"], peer.sums["seconds_count"]) == (n, n)
    assert peer.sums["seconds_sum"] == n / 4


def test_what_was_on_its_way_is_sent_again(peer, start):
    peer.never_reads = True
    process = start("""
        plugin.counter("frames_total").inc(5)
        plugin.gauge("queue").set(3)
        while not plugin.flush(1):
            pass
    """)
    time.sleep(0.5)
    peer.kill()
    peer.never_reads = False
    peer.listen()
    assert process.wait(30) == 0
    assert (peer.sums["frames_total"], peer.gauges["queue"]) == (5, 3)


def test_without_an_exporter_nothing_waits(peer, run):
    peer.kill()
    began = time.monotonic()
    output = run("""
        import time
        frames = plugin.counter("frames_total")
        res = plugin.param("res", default=720, min=240, max=1080)
        slowest = 0
        for _ in range(2000):
            began = time.perf_counter()
            frames.inc()
            assert res.get() == 720
            slowest = max(slowest, time.perf_counter() - began)
        assert not plugin.flush(0.1)
        assert not plugin.stats()["connected"]
        print(slowest)
    """)
    assert float(output) < 0.5
    assert time.monotonic() - began < 5


def test_an_exporter_that_never_reads_blocks_nobody(peer, run):
    peer.never_reads = True
    output = run("""
        import resource
        plugin.configure(interval=0.001)
        many = [plugin.counter("many_total", labels={"i": i}) for i in range(900)]
        for _ in range(10):
            for counter in many:
                counter.inc()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(200):
            for counter in many:
                counter.inc()
        assert not plugin.flush(0.2)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """)
    assert int(output) < 4096


def test_an_exporter_that_comes_late_gets_everything(peer, start):
    peer.kill()
    process = start(ALL_KINDS + "    assert plugin.flush(30)\n")
    time.sleep(0.5)
    peer.listen()
    assert process.wait(30) == 0
    check_all_kinds(peer)


def test_without_acknowledgements_the_end_comes_all_the_same(peer, run):
    peer.never_acks = True
    began = time.monotonic()
    run(ALL_KINDS)
    assert time.monotonic() - began < 5
    assert [line for line in peer.lines if "seq" in line] == [{"seq": 1}]
    check_all_kinds(peer)


def test_refusals_are_told_and_the_series_rests(peer, run):
    refused = []

    def refuse(connection, line):
        if line.get("metric") == "fps" and not refused:
            refused.append(line)
            connection.send(b'{"error": "fps: is a gauge of another", "metric": "fps"}\n')

    peer.on_line = refuse
    output = run("""
        import time
        errors = []
        plugin.configure(interval=0.01, on_error=errors.append)
        fps = plugin.metric("fps")
        for _ in range(50):
            fps.inc()
            time.sleep(0.01)
        print(errors, plugin.stats()["errors"])
    """)
    assert output == "['fps: is a gauge of another'] 1\n"
    assert peer.sums["fps"] == 50


def test_debug_says_what_is_wrong(peer, start):
    peer.answer = b'nonsense\n[1]\n{"error": "refused"}\n{"error": "refused"}\n{"param": "x", "value": 1}\n'
    process = start("plugin.counter('x').inc()\nplugin.flush()\nprint(plugin.stats()['errors'])", WAAP_DEBUG="1")
    output, errors = process.communicate(timeout=30)
    assert output == "5\n"
    assert errors.splitlines() == [
        "waap: not understood: b'nonsense'",
        "waap: not understood: b'[1]'",
        "waap: refused",
        "waap: param x: is not known",
    ]


def test_a_line_without_end_ends_the_connection(peer, run):
    peer.answer = b"x" * 200000
    run("""
        import time
        plugin.counter("x").inc()
        end = time.monotonic() + 10
        while plugin.stats()["connects"] < 2 and time.monotonic() < end:
            time.sleep(0.01)
        assert plugin.stats()["connects"] >= 2
    """)


def test_what_is_no_number_is_dropped_and_counted(peer, run):
    run("""
        counter, gauge, histogram = plugin.counter("c"), plugin.gauge("g"), plugin.histogram("h")
        for bad in (float("nan"), float("inf"), -1, -0.5, 10**400):
            counter.inc(bad)
        for bad in (float("nan"), float("-inf")):
            gauge.inc(bad)
            histogram.observe(bad)
        counter.inc(True)
        histogram.observe(1e308)
        assert plugin.stats()["dropped"] == 10, plugin.stats()
    """)
    assert peer.sums["plugin_records_dropped_total"] == 10
    assert (peer.sums["c"], peer.sums["h_count"], peer.gauges) == (1, 0, {})


def test_gauges_beyond_json(peer, run):
    run("""
        for name, value in (("a", "nan"), ("b", "inf"), ("c", "-inf")):
            plugin.gauge(name).set(float(value))
    """)
    assert peer.gauges == {"a": "NaN", "b": "+Inf", "c": "-Inf"}


def test_series_are_bounded(peer, run):
    run("""
        plugin.configure(max_series=10)
        many = [plugin.counter("many", labels={"i": i}) for i in range(15)]
        for counter in many * 2:
            counter.inc()
        many[14].labels(more="yes").inc()
        assert plugin.stats()["series"] <= 11  # one more tells what was dropped
        assert plugin.stats()["dropped"] == 11, plugin.stats()
    """)


@pytest.mark.parametrize(
    "call",
    [
        "plugin.counter('')",
        "plugin.counter(None)",
        "plugin.metric('x', type='summary')",
        "plugin.counter('x'); plugin.gauge('x')",
        "plugin.histogram('x', buckets=[1]); plugin.histogram('x', buckets=[2])",
        "plugin.histogram('x', buckets=[])",
        "plugin.histogram('x', buckets=[2, 1])",
        "plugin.histogram('x', buckets=[float('nan')])",
        "plugin.metric('x', type='counter', buckets=[1])",
        "plugin.counter('x', labels={'': 'y'})",
        "plugin.counter('x', labels={'y': 'z' * 10000})",
        "plugin.param('', default=1)",
        "plugin.param('x', default=5, min=6)",
        "plugin.param('x', default=None)",
        "plugin.param('x', default='a', values=['b'])",
        "plugin.param('x', default='a', values=[])",
        "plugin.param('x', default='a', type='enum')",
        "plugin.param('x', default=1.5, type='int')",
        "plugin.param('x', default=1, type='list')",
        "plugin.param('x', default=1); plugin.param('x', default=2)",
    ],
)
def test_mistakes_are_told_at_once(start, call):
    process = start(call)
    assert "ValueError" in process.communicate(timeout=30)[1].splitlines()[-1]


def test_names_and_texts_are_made_fit(peer, run):
    run(r"""
        plugin.counter("env.count.car", labels={"a-b": "\udcff\n\"", "n": 5}).inc()
        plugin.timeit("plugin.duration.input").__enter__().__exit__()
        plugin.counter("9lives", help="\udc80").inc()
        assert plugin.counter("env.count.car", labels={"n": 5, "a-b": "\udcff\n\""}) is \
            plugin.counter("env_count_car", labels={"a_b": '?\n"', "n": "5"})
    """)
    assert peer.sums['env_count_car{"a_b": "?\\n\\"", "n": "5"}'] == 1
    assert peer.sums["plugin_duration_input_seconds_count"] == 1
    assert peer.sums["_9lives"] == 1


def test_names_of_labels_first_their_values_later(peer, run):
    run("""
        objects = plugin.counter("objects_total", labels=["kind", "cam"])
        for kind in ("car", "car", "person"):
            objects.labels(kind=kind, cam=1).inc()
        for wrong in ({}, {"kind": "car"}, {"kind": "car", "cam": 1, "more": 2}):
            try:
                objects.labels(**wrong)
                raise SystemExit(1)
            except ValueError:
                pass
    """)
    assert peer.sums == {
        'objects_total{"cam": "1", "kind": "car"}': 2,
        'objects_total{"cam": "1", "kind": "person"}': 1,
    }


def test_timeit_decorates(peer, run):
    run("""
        @plugin.timeit("fib")
        def fib(n):
            "Fibonacci's."
            return n if n < 2 else fib(n - 1) + fib(n - 2)
        assert (fib(5), fib.__doc__) == (5, "Fibonacci's.")
        try:
            with plugin.timeit("fault", buckets=[1]):
                raise KeyError
        except KeyError:
            pass
    """)
    assert (peer.sums["fib_seconds_count"], peer.sums["fault_seconds_count"]) == (15, 1)


KNOBS = """
    import time
    params = {
        "res": plugin.param("res", default=720, min=240, max=1080, step=120, unit="pixels", help="Lines."),
        "gain": plugin.param("gain", default=1, max=2.5),
        "on": plugin.param("on", default=False),
        "model": plugin.param("model", default="yolo"),
        "mode": plugin.param("mode", default="good", values=["fast", "good"]),
    }
    wanted = {"res": 480, "gain": 2, "on": True, "model": "ssd", "mode": "fast"}
    end = time.monotonic() + 10
    while {name: param.get() for name, param in params.items()} != wanted and time.monotonic() < end:
        time.sleep(0.001)
    values = {name: param.get() for name, param in params.items()}
    assert values == wanted, values
    assert isinstance(values["gain"], float) and isinstance(values["res"], int)
    assert plugin.flush()
"""


def turn_all(connection, line):
    if line.get("param") == "mode" and "default" in line:
        for name, value in [
            ("res", 99999),
            ("res", 480.5),
            ("res", "480"),
            ("res", True),
            ("res", 480),
            ("gain", 2),
            ("on", 1),
            ("on", True),
            ("model", "ssd"),
            ("mode", "slow"),
            ("mode", "fast"),
        ]:
            connection.send(json.dumps({"param": name, "value": value}).encode() + b"\n")


def check_knobs(peer):
    declared = {line["param"]: line for line in peer.lines if "default" in line}
    assert declared["res"] == {
        "param": "res",
        "type": "int",
        "default": 720,
        "min": 240,
        "max": 1080,
        "step": 120,
        "unit": "pixels",
        "help": "Lines.",
    }
    assert [declared[name]["type"] for name in ("gain", "on", "model", "mode")] == ["float", "bool", "string", "enum"]
    assert declared["mode"]["values"] == ["fast", "good"]
    applied = {line["param"]: line["applied"] for line in peer.lines if "applied" in line}
    assert applied == {"res": 480, "gain": 2, "on": True, "model": "ssd", "mode": "fast"}


def test_knobs_are_turned_and_applied(peer, run):
    peer.on_line = turn_all
    run(KNOBS)
    check_knobs(peer)


def test_a_knob_is_quick_and_survives_a_reconnect(peer, start):
    process = start("""
        plugin.configure(interval=60)
        res = plugin.param("res", default=720, min=240, max=1080)
        while res.get() != 1000:
            pass
        assert plugin.flush()
    """)

    def applied():
        return [line["applied"] for line in peer.lines if "applied" in line]

    wait_until(lambda: applied() == [720])
    began = time.monotonic()
    peer.send(b'{"param": "res", "value": 480}\n')
    wait_until(lambda: applied() == [720, 480])
    assert time.monotonic() - began < 0.5
    peer.kill()
    peer.listen()
    wait_until(lambda: applied() == [720, 480, 480])
    peer.send(b'{"param": "res", "value": 1000}\n')
    assert process.wait(10) == 0
    assert applied()[-1] == 1000


def test_a_knob_calls(peer, run):
    def turn(connection, line):
        if "default" in line:
            connection.send(b'{"param": "res", "value": 1}\n{"param": "res", "value": 2}\n')

    peer.on_line = turn
    run("""
        import time
        seen = []
        def changed(value):
            assert not plugin.flush(5)  # on the library's own thread it cannot wait
            seen.append(value)
            raise KeyError("no harm")
        res = plugin.param("res", default=720, on_change=changed)
        end = time.monotonic() + 10
        while 2 not in seen and time.monotonic() < end:
            time.sleep(0.01)
        assert 2 in seen
        assert plugin.counter("alive").inc() is None and plugin.flush()
    """)


def test_settings(peer, run):
    run(
        """
        plugin.configure(socket=%r, plugin="mine", job="j", labels={"cam": 1}, interval=1)
        plugin.counter("x").inc()
        try:
            plugin.configure(job="late")
            raise SystemExit(1)
        except RuntimeError:
            pass
        """
        % peer.path,
        WAAP_PUSH_SOCKET="/nonexistent/push.sock",
        WAAP_PLUGIN_NAME="other",
    )
    assert {key: value for key, value in peer.hellos[0].items() if key != "start"} == {
        "plugin": "mine",
        "job": "j",
        "labels": {"cam": "1"},
    }


def test_the_program_names_the_plugin(peer, tmp_path):
    script = tmp_path / "objcounter.py"
    script.write_text("from waap import plugin\nplugin.counter('x').inc()\n")
    package = tmp_path / "app"
    package.mkdir()
    (package / "__main__.py").write_text(script.read_text())
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGE}:{tmp_path}", "WAAP_PUSH_SOCKET": peer.path}
    environment.pop("WAAP_PLUGIN_NAME", None)
    for command in ([str(script)], ["-m", "app"], ["-c", script.read_text()]):
        subprocess.run([sys.executable, *command], env=environment, check=True, timeout=30)
    assert [hello["plugin"] for hello in peer.hellos] == ["objcounter", "app", "python"]


@pytest.mark.parametrize("python", old_pythons())
@pytest.mark.parametrize(
    "program, check, on_line",
    [
        pytest.param(ALL_KINDS, check_all_kinds, None, id="kinds"),
        pytest.param(FORKING, check_forking, None, id="fork"),
        pytest.param(KNOBS, check_knobs, turn_all, id="knobs"),
    ],
)
def test_other_pythons(peer, run, python, program, check, on_line):
    if python is None:
        pytest.skip("SKIP: no such interpreter here")
    peer.on_line = on_line or peer.on_line
    run(program, python=python, PYTHONWARNINGS="ignore")
    check(peer)


def test_its_language_is_that_of_python_3_6():
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "plugin/examples").glob("*.py")]:
        ast.parse(pathlib.Path(path).read_text(), feature_version=(3, 6))
