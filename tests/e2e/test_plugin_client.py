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

import pytest

from push_peer import PushPeer
from running import ROOT
from waiting import LIMIT, pace, wait_until

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
    """start(program): a Python program that has imported plugin and what one waits with; ended with the
    test."""
    processes = []

    def run(program, python=sys.executable, **environment):
        imports = "from waap import plugin\nfrom waiting import pace, wait_idle, wait_until\n"
        command = [python, "-c", imports + textwrap.dedent(program)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("WAAP_")}
        clean.update(PYTHONPATH=f"{PACKAGE}:{ROOT / 'tests/e2e'}", PYTHONDONTWRITEBYTECODE="1")
        clean.update(WAAP_PUSH_SOCKET=peer.path)
        clean.update(PYTHONWARNINGS="ignore::DeprecationWarning")  # from 3.12 on, a fork beside threads
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
def run(start, peer):
    """run(program): runs it to its end, which must be good, and to that of what it sent; returns what it printed.
    Of mistakes it tells on standard error these alone."""

    def to_end(program, mistakes=(), **options):
        process = start(program, **options)
        output, errors = process.communicate(timeout=LIMIT)
        assert (process.returncode, errors) == (0, "".join(f"waap: {text}\n" for text in mistakes)), errors
        wait_until(peer.has_heard_all, what="the end of all connections")
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
        wait_idle(time.process_time)
        assert plugin.stats()["connects"] == 2
    """)
    assert peer.sums["frames_total"] == 2


@pytest.mark.parametrize("end", [0, 1])
def test_one_end_of_the_pipe_closed_by_others(peer, run, end):
    run(f"""
import os, time
plugin.configure(interval=60)
frames = plugin.counter("frames_total")
frames.inc()
assert plugin.flush()
n_open = len(os.listdir("/proc/self/fd"))
os.close(plugin._shared._wake_fds[{end}])
plugin._shared._session.sock.shutdown(0)  # which wakes it where the pipe does not
wait_idle(time.process_time)
frames.inc()
assert plugin.flush()
assert len(os.listdir("/proc/self/fd")) == n_open
""")
    assert peer.sums["frames_total"] == 2


def mistakes_of(program):
    names = {"frames.inc(-1)": "frames_total", 'counter("first").inc(-1)': "first"}
    return [f"{name}: inc(-1): a counter cannot go down" for call, name in names.items() if call in program]


ENDING = """
    import sys, threading, time
    sys.setswitchinterval(1e-6)
    class Late:
        def __del__(self):
            frames.inc()
            seconds.observe(1)
            queue.set(1)
            frames.inc(-1)
            assert res.get() == 1
            plugin.counter("late_total").inc()
            plugin.param("late", default=1)
            plugin.stats()
            assert not plugin.flush()
            print("late", flush=True)
    frames, seconds, queue = plugin.counter("frames_total"), plugin.histogram("seconds"), plugin.gauge("queue")
    res = plugin.param("res", default=1)
    frames.inc()
    assert plugin.flush()
    sys.ps2 = Late()  # which the interpreter drops first of all
    def record(n):
        while True:
            frames.inc()
            seconds.observe(1)
            queue.set(1)
            frames.inc(-1)
            plugin.counter("each_total", labels={"n": n}).inc()
    for n in range(4):
        threading.Thread(target=record, args=(n,), daemon=True).start()
    pace(0.1)
"""


def check_ending(peer):
    assert peer.sums["frames_total"] > 0


@pytest.mark.parametrize("n", range(5))
def test_a_record_at_the_very_end_waits_for_nobody(peer, run, n):
    assert run(ENDING, mistakes=mistakes_of(ENDING)) == "late\n"
    check_ending(peer)


def test_an_atexit_function_from_before_the_import_flushes(peer, run):
    run("""
        import atexit, importlib
        atexit.unregister(plugin._shared._at_exit)
        def late():
            frames.inc()
            assert plugin.flush()
        atexit.register(late)
        plugin = importlib.reload(plugin)
        frames = plugin.counter("frames_total")
        frames.inc()
    """)
    assert peer.sums["frames_total"] == 2


def test_the_first_record_of_all_at_the_very_end(run):
    assert run("""
        import sys
        class Late:
            def __del__(self):
                plugin.counter("frames_total").inc()
                plugin.param("res", default=1)
                assert not plugin.flush(0.1)
                print("late", flush=True)
        sys.ps2 = Late()
    """) == "late\n"


FORKED_WITH_THE_LOCK = """
    import os, signal, threading
    frames = plugin.counter("frames_total")
    held, done = threading.Event(), threading.Event()
    def hold():
        with plugin._shared._lock, frames._lock:
            held.set()
            done.wait()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    if os.fork() == 0:
        signal.alarm(60)  # which ends it where it waits for the lock
        plugin.counter("child_total").inc()
        frames.inc()
        os._exit(0 if plugin.flush() else 1)
    status = os.wait()[1]
    done.set()
    thread.join()
    assert status == 0
"""


def check_forked_with_the_lock(peer):
    assert peer.sums == {"frames_total": 1, "child_total": 1}


FORKED_WHILE_A_METRIC_IS_MADE = """
    import os, signal, threading
    def pause():
        if os.getpid() == parent:
            half_made.set()
            forked.wait()
    class Kinds(dict):
        def __setitem__(self, name, kind):
            pause()
            dict.__setitem__(self, name, kind)
    class Series(list):
        def append(self, series):
            pause()
            list.append(self, series)
    plugin.counter("first").inc()
    assert plugin.flush()
    parent, client = os.getpid(), plugin._shared
    half_made, forked = threading.Event(), threading.Event()
    if {dropped}:
        client._series = client._session._series = Series(client._series)
        plugin.counter("first").inc(-1)
        client.wake()
    else:
        client._kinds = Kinds(client._kinds)
        threading.Thread(target=lambda: plugin.counter("frames_total"), daemon=True).start()
    half_made.wait()
    if os.fork() == 0:
        signal.alarm(60)
        for name in ("first", "frames_total"):
            plugin.counter(name).inc(5)
        plugin.counter("first").inc(-1)
        os._exit(0 if plugin.flush() else 1)
    status = os.wait()[1]
    forked.set()
    assert status == 0
"""


def check_forked_while_a_metric_is_made(peer):
    child = peer.last[peer.hellos[1]["start"]]
    assert child == {"first": 5, "frames_total": 5, "plugin_records_dropped_total": 1}


@pytest.mark.parametrize("dropped", [False, True])
def test_fork_while_a_metric_is_made(peer, run, dropped):
    program = FORKED_WHILE_A_METRIC_IS_MADE.format(dropped=dropped)
    run(program, mistakes=mistakes_of(program))
    check_forked_while_a_metric_is_made(peer)


def test_a_forked_child_has_no_connection_of_its_parent(peer, run):
    run("""
        import os, socket, threading, time, waap._client
        class Slow(socket.socket):
            def connect(self, path):
                opening.set()
                pace(0.3)
                super().connect(path)
        opening = threading.Event()
        socket.socket = Slow
        waap._client.FORK_SECONDS = 30  # however slow the machine
        plugin.counter("x")
        opening.wait()
        if os.fork() == 0:
            paths = ["/proc/self/fd/{}".format(fd) for fd in range(3, 64)]
            os._exit(sum(os.path.islink(path) and os.readlink(path).startswith("socket:") for path in paths))
        assert os.wait()[1] == 0
        assert plugin.flush()
    """)


FORKED_BESIDE_LOGGING = """
    import importlib, logging, logging.config, os, signal, threading, time
    plugin = importlib.reload(plugin)  # as if imported after logging: its hook comes first
    class Handler(logging.Handler):
        def __init__(self):  # with logging's lock, for which its own hook waits at fork
            super().__init__()
            making.set()
            pace(0.2)
            self.lines = plugin.counter("log_lines_total")
    signal.alarm(60)
    plugin.counter("first").inc()
    making = threading.Event()
    settings = {"version": 1, "handlers": {"h": {"()": Handler}}, "root": {"handlers": ["h"]}}
    thread = threading.Thread(target=logging.config.dictConfig, args=(settings,))
    thread.start()
    making.wait()
    if os.fork() == 0:
        os._exit(0)
    assert os.wait()[1] == 0
    thread.join()
"""


def check_forked_beside_logging(peer):
    assert peer.sums["first"] == 1


def test_fork_while_logging_is_configured(peer, run):
    run(FORKED_BESIDE_LOGGING)
    check_forked_beside_logging(peer)


def test_a_fork_that_lasts_opens_no_socket(peer, run):
    run("""
        plugin._shared._before_fork()
        plugin.counter("x").inc()
        assert not plugin.flush(0.3)
        assert plugin.stats()["connects"] == 0
        plugin._shared._after_fork_in_parent()
        assert plugin.flush(10)
    """)
    assert peer.sums["x"] == 1


THREADS_OF_A_CHILD = """
    import os, threading, time
    def slow_zero():
        zeroing.set()
        pace(0.2)
        first._value = 0
    zeroing = threading.Event()
    first, frames = plugin.counter("first"), plugin.counter("frames_total")
    frames.inc(100)
    assert plugin.flush()
    if os.fork() == 0:
        first.zero = slow_zero
        threads = [threading.Thread(target=first.inc)]
        threads[0].start()
        if not hasattr(os, "register_at_fork"):
            zeroing.wait()
        threads += [threading.Thread(target=record) for record in [frames.inc, lambda: frames.inc(-1)] * 2]
        for thread in threads[1:]:
            thread.start()
        for thread in threads:
            thread.join()
        os._exit(0 if plugin.flush() else 1)
    assert os.wait()[1] == 0
"""


def check_threads_of_a_child(peer):
    child = peer.last[peer.hellos[1]["start"]]
    assert child == {"first": 1, "frames_total": 2, "plugin_records_dropped_total": 2}


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


def test_a_signal_within_a_record_may_need_the_thread(peer, run):
    """The lock stands for a record that a signal's handler, or __del__, interrupts."""
    run("""
        import time
        plugin.configure(interval=0.001)
        for kind, record in (("counter", "inc"), ("rate", "inc"), ("gauge", "set"), ("histogram", "observe")):
            series = plugin.metric("interrupted_" + kind, kind)
            with series._lock:
                getattr(series, record)(1)
                pace(0.05)
                plugin.counter("signals_total").inc()
                assert plugin.flush()
    """)
    assert peer.sums["signals_total"] == 4


def test_a_histogram_is_read_while_it_is_observed(peer, run):
    run("""
        class Counts(list):
            def __setitem__(self, i, n):
                list.__setitem__(self, i, n)
                assert seconds._sum == n
            def __iter__(self):
                while before:
                    seconds.observe(before.pop())
                yield from list.__iter__(self)
                while after:
                    seconds.observe(after.pop())
        before, after = [1], [1]
        seconds = plugin.histogram("seconds", buckets=[1, 2])
        assert plugin.flush()
        seconds._counts = Counts(seconds._counts)
        assert plugin.flush() and plugin.flush()
    """)
    totals = [(line["total"]["counts"], line["total"]["sum"]) for line in peer.lines if "total" in line]
    assert totals == [([0, 0], 0), ([1, 1], 2), ([2, 2], 2)]


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
        pace(rng.uniform(0, 0.03))
        peer.kill()
        pace(rng.uniform(0, 0.03))
        peer.listen()
    output, errors = process.communicate(timeout=LIMIT)
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
    wait_until(peer.unread, what="what is on its way")
    peer.kill()
    peer.never_reads = False
    peer.listen()
    assert process.wait(LIMIT) == 0
    assert (peer.sums["frames_total"], peer.gauges["queue"]) == (5, 3)


def test_without_an_exporter_nothing_waits(peer, run):
    peer.kill()
    run("""
        frames = plugin.counter("frames_total")
        res = plugin.param("res", default=720, min=240, max=1080)
        for _ in range(100000):  # if each waited a little, they would never end
            frames.inc()
            assert res.get() == 720
        assert not plugin.flush(0.1)
        assert not plugin.stats()["connected"]
    """)


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


def test_flush_waits_however_long(peer, start):
    peer.kill()
    process = start("""
        import signal, threading
        signal.alarm(60)
        def wait(seconds):
            results.append(plugin.flush(seconds))
        results = []
        plugin.counter("x").inc()
        threads = [threading.Thread(target=wait, args=(seconds,)) for seconds in (float("inf"), 1e10, 1e300)]
        for thread in threads:
            thread.start()
        assert [plugin.flush(seconds) for seconds in (float("nan"), -1e300, float("-inf"), 0.1)] == [False] * 4
        print("waiting", results, flush=True)
        for thread in threads:
            thread.join()
        print(results)
    """)
    assert process.stdout.readline() == "waiting []\n"
    peer.listen()
    assert process.communicate(timeout=LIMIT) == ("[True, True, True]\n", "")


def test_an_exporter_that_comes_late_gets_everything(peer, start):
    peer.kill()
    process = start(ALL_KINDS + "    print('recorded', flush=True)\n    assert plugin.flush(30)\n")
    assert process.stdout.readline() == "recorded\n"
    peer.listen()
    assert process.wait(LIMIT) == 0
    check_all_kinds(peer)


def test_without_acknowledgements_the_end_comes_all_the_same(peer, run):
    peer.never_acks = True
    run(ALL_KINDS)
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
        errors = []
        plugin.configure(interval=0.01, on_error=errors.append)
        fps = plugin.metric("fps")
        n = 0
        while n < 50 or not errors:
            fps.inc()
            n += 1
            pace(0.01)
        print(errors, plugin.stats()["errors"], n)
    """)
    told, n = output.rsplit(None, 1)
    assert told == "['fps: is a gauge of another'] 1"
    assert peer.sums["fps"] == int(n)


def test_labels_by_name_or_in_order(peer, run):
    assert run("""
        seen = plugin.counter("seen_total", labels=["kind", "cam"])
        seen.labels("car", "top").inc()
        seen.labels(cam="top", kind="car").inc()
        for wrong in (lambda: seen.labels("car"), lambda: seen.labels("car", cam="top"), lambda: seen.labels()):
            try:
                wrong()
            except ValueError as error:
                print(error)
    """).splitlines() == [
        "seen_total: expected the values of kind, cam, got 'car'",
        "seen_total: expected the values of kind, cam, got 'car'",
        "seen_total: expected the labels cam, kind, got none",
    ]
    assert peer.sums['seen_total{"cam": "top", "kind": "car"}'] == 2


def test_debug_says_what_is_wrong(peer, start):
    peer.answer = b'nonsense\n[1]\n{"error": "refused"}\n{"error": "refused"}\n{"param": "x", "value": 1}\n'
    process = start("plugin.counter('x').inc()\nplugin.flush()\nprint(plugin.stats()['errors'])", WAAP_DEBUG="1")
    output, errors = process.communicate(timeout=LIMIT)
    assert output == "5\n"
    assert errors.splitlines() == [
        f"waap: connected to {peer.path} as plugin python",
        "waap: not understood: b'nonsense'",
        "waap: not understood: b'[1]'",
        "waap: refused",
        "waap: param x: is not known",
    ]


def test_debug_tells_of_every_process(peer, start):
    process = start("""
        import os
        plugin.counter("x").inc()
        assert plugin.flush()
        if os.fork() == 0:
            plugin.counter("x").inc()
            assert plugin.flush()
            os._exit(0)
        assert os.wait()[1] == 0
    """, WAAP_DEBUG="1")
    errors = process.communicate(timeout=LIMIT)[1]
    assert errors.splitlines() == [f"waap: connected to {peer.path} as plugin python"] * 2


@pytest.mark.parametrize("debug", ["1", "", "0"])
def test_mistakes_are_told_once_per_metric(peer, start, debug):
    process = start("""
        class Odd:
            def __repr__(self):
                raise KeyError
        a = plugin.counter("a_total", labels=["x"])
        for _ in range(3):
            a.labels(x=1).inc(-3)
            a.labels(x=2).inc("many")
            plugin.metric("fps", "rate").inc(-0.5)
            plugin.gauge("y").set("a" * 100)
            plugin.gauge("z").dec(Odd())
            plugin.histogram("h").observe(float("nan"))
        plugin.flush()
    """, WAAP_DEBUG=debug)
    told = [line for line in process.communicate(timeout=LIMIT)[1].splitlines() if "connected" not in line]
    assert told == [
        "waap: a_total: inc(-3): a counter cannot go down",
        "waap: fps: inc(-0.5): a rate cannot go down",
        f"waap: y: set('{39 * 'a'}...): is not a number",
        "waap: z: inc(Odd): is not a number",
        "waap: h: observe(nan): is not a finite number",
    ]
    assert peer.sums["plugin_records_dropped_total"] == 18


def test_a_mistake_of_the_last_moment_is_told_without_an_exporter(peer, run):
    peer.kill()
    for _ in range(5):
        run("plugin.counter('x').inc(-1)", mistakes=["x: inc(-1): a counter cannot go down"])


def test_an_exporter_that_stays_away_is_told_once(peer, run):
    peer.kill()
    run("""
        import os, time
        plugin.counter("x").inc()
        began = time.monotonic()
        wait_until(lambda: plugin._shared._settings.absence_told)
        assert time.monotonic() - began >= 5
        pid = os.fork()
        plugin.counter("x").inc()
        pace(6)
        if pid != 0:
            os.waitpid(pid, 0)
    """, mistakes=[
        f"nobody listens on {peer.path} (No such file or directory): is waap running, is {os.path.dirname(peer.path)} "
        "mounted into this container, and is WAAP_PUSH_SOCKET right?"
    ])


def test_on_error_may_record_and_wait_for_others(peer, run):
    output = run("""
        import threading
        told = threading.Event()
        def record(text):
            plugin.counter("errors_total", labels={"of": "another thread"}).inc()
            plugin.stats()
        def on_error(text):
            plugin.counter("errors_total").inc()
            thread = threading.Thread(target=record, args=(text,), daemon=True)
            thread.start()
            thread.join(10)
            assert not thread.is_alive()
            print(text, threading.current_thread().name)
            told.set()
        plugin.configure(max_series=2, on_error=on_error)
        plugin.counter("errors_total")
        plugin.counter("errors_total", labels={"of": "another thread"})
        plugin.counter("more").inc()
        assert told.wait(10)
        assert plugin.flush()
    """, mistakes=["more: more than 2 series"])
    assert output == "more: more than 2 series waap-plugin\n"
    assert peer.sums["errors_total"] == peer.sums['errors_total{"of": "another thread"}'] == 1


def test_on_error_without_a_thread_may_record(run):
    output = run("""
        import queue, threading
        def record():
            while True:
                plugin.counter("errors_total", labels={"n": asked.get()}).inc()
                plugin.stats()
                done.put(True)
        def on_error(text):
            seen.append(text)
            plugin.counter("errors_total", labels={"n": -len(seen)}).inc()
            asked.put(len(seen))
            waited.append(done.get(timeout=60))
        def no_thread(*_, **__):
            raise RuntimeError("can't start new thread")
        asked, done, seen, waited = queue.Queue(), queue.Queue(), [], []
        threading.Thread(target=record, daemon=True).start()
        plugin.configure(on_error=on_error)
        threading.Thread.start = no_thread
        plugin.counter("x").inc()
        print(set(seen), 0 < len(seen) == len(waited) < 10)
    """)
    assert output == """{"no thread: can't start new thread"} True\n"""


def test_a_thread_that_cannot_start_is_tried_again(peer, run):
    run("""
        import threading
        def no_thread(*_, **__):
            raise RuntimeError("can't start new thread")
        real, threading.Thread.start = threading.Thread.start, no_thread
        plugin.counter("x").inc()
        assert not plugin.flush(0.1)
        threading.Thread.start = real
        plugin.counter("y").inc()
        assert plugin.flush(10)
    """)
    assert peer.sums == {"x": 1, "y": 1}


def test_a_thread_that_could_not_start_is_tried_again_by_records(peer, run):
    run("""
        import threading, time
        tries = []
        def no_thread(*_, **__):
            tries.append(time.monotonic())
            raise RuntimeError("can't start new thread")
        real, threading.Thread.start = threading.Thread.start, no_thread
        frames = plugin.counter("frames_total")
        while len(tries) < 3:
            frames.inc(0)
            plugin.counter("other").inc(0)
        assert tries[2] - tries[1] > 0.5 and tries[1] - tries[0] > 0.5, tries
        threading.Thread.start = real
        while not plugin.stats()["connected"]:
            frames.inc(0)
            pace(0.01)
        assert plugin._shared.running
        frames.inc()
        wait_until(lambda: plugin._shared._session._series[0].sent == 1)
    """)
    assert peer.sums["frames_total"] == 1


def test_a_thread_that_could_not_start_is_tried_again_at_the_end(peer, run):
    program = "import atexit, threading; atexit.register(lambda: threading.Thread(target=print).start())"
    if "RuntimeError" in subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr:
        pytest.skip("SKIP: this Python starts no threads at its end")
    run("""
        import threading
        def no_thread(*_, **__):
            raise RuntimeError("can't start new thread")
        real, threading.Thread.start = threading.Thread.start, no_thread
        plugin.counter("frames_total").inc()
        threading.Thread.start = real
    """)
    assert peer.sums["frames_total"] == 1


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("raise SystemExit(1)", id="exit"),
        pytest.param("raise KeyboardInterrupt", id="interrupt"),
        pytest.param("raise Mute", id="mute"),
        pytest.param("sys.stderr.close(); raise KeyError", id="stderr closed"),
        pytest.param("sys.stderr = None; raise KeyError", id="no stderr"),
    ],
)
def test_whatever_a_callback_raises_the_rest_goes_on(peer, start, fault):
    def turn(connection, line):
        if "default" in line:
            connection.send(b'{"error": "refused"}\n{"param": "res", "value": 1}\n')

    peer.on_line = turn
    process = start(f"""
import sys, threading
class Mute(Exception):
    def __repr__(self):
        raise KeyError("no words")
    __str__ = __repr__
called = []
def callback(value):
    called.append(value)
    {fault}
plugin.configure(on_error=callback)
plugin.param("res", default=720, on_change=callback)
wait_until(lambda: {{"refused", 1}} <= set(called))
plugin.counter("alive").inc()
print(plugin.flush(), sorted(map(str, called))[:1])
""", WAAP_DEBUG="1")
    assert process.communicate(timeout=LIMIT)[0] == "True ['1']\n"
    assert peer.sums["alive"] == 1


def test_a_message_that_fails_stops_no_other(peer, run):
    output = run("""
        import json
        errors = []
        plugin.configure(on_error=errors.append)
        real = json.dumps
        def dumps(line, **options):
            if "bad" in (line.get("param"), line.get("metric")):
                raise KeyError("no such thing")
            return real(line, **options)
        json.dumps = dumps
        plugin.param("bad", default=1)
        plugin.counter("bad").inc()
        good = plugin.counter("good")
        for _ in range(3):
            good.inc()
            assert plugin.flush()
        assert plugin.param("fine", default=1).get() == 1 and plugin.flush()
        print(sorted(set(errors)), plugin.stats()["connects"])
    """)
    assert output == "[\"bad: KeyError('no such thing')\"] 1\n"
    assert peer.sums == {"good": 3}
    assert {line["param"] for line in peer.lines if "default" in line} == {"fine"}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("import random\nrandom.Random.uniform = lambda *_: fail()", id="turn"),
        pytest.param("import select\nselect.poll = fail", id="poll"),
    ],
)
def test_the_thread_survives(run, fault):
    run(f"""
import threading, time
threads = []
def fail():
    threads.append(threading.current_thread().name)
    return 1 / 0
{fault}
plugin.counter("x").inc()
wait_until(lambda: threads.count("waap-plugin") > 1, what="a thread that goes on after a fault")
wait_idle(time.process_time)
""", WAAP_PUSH_SOCKET="/nonexistent/push.sock")


def test_descriptors_closed_by_others_and_no_more_to_have(peer, run):
    run("""
        import os, resource
        plugin.counter("x").inc()
        assert plugin.flush()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        os.closerange(3, 64)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        plugin.counter("x").inc()
        wait_until(lambda: not plugin.stats()["connected"])
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert plugin.flush(30)
    """)
    assert peer.sums["x"] == 2


def test_a_line_without_end_ends_the_connection(peer, run):
    peer.answer = b"x" * 200000
    run("""
        plugin.counter("x").inc()
        wait_until(lambda: plugin.stats()["connects"] >= 2)
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
    """, mistakes=["c: inc(nan): is not a finite number", "g: inc(nan): is not a finite number",
                   "h: observe(nan): is not a finite number"])
    assert peer.sums["plugin_records_dropped_total"] == 10
    assert (peer.sums["c"], peer.sums["h_count"], peer.gauges) == (1, 0, {})


def test_what_is_no_number_raises_nothing(peer, run):
    run("""
        from decimal import Decimal
        counter, gauge, histogram = plugin.counter("c"), plugin.gauge("g"), plugin.histogram("h")
        calls = (counter.inc, gauge.set, gauge.inc, gauge.dec, histogram.observe)
        class Tensor:
            def __float__(self):
                raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")
        bad = (None, "abc", [], 1j, 10**400, Decimal("sNaN"), object(), Tensor())
        for call in calls:
            for value in bad:
                assert call(value) is None
        assert plugin.stats()["dropped"] == len(calls) * len(bad), plugin.stats()
    """, mistakes=["c: inc(None): is not a number", "g: set(None): is not a number",
                   "h: observe(None): is not a number"])
    assert peer.sums["plugin_records_dropped_total"] == 40
    assert (peer.sums["c"], peer.sums["h_count"], peer.gauges) == (0, 0, {})


def test_a_declaration_that_failed_holds_no_name(peer, run):
    run("""
        try:
            plugin.counter("x", ttl="soon")
        except ValueError:
            plugin.gauge("x").set(1)
    """)
    assert peer.gauges == {"x": 1}


def test_numbers_of_any_type(peer, run):
    run("""
        from decimal import Decimal
        from fractions import Fraction
        class Uint8:
            def __init__(self, value):
                self._value = value
            def __float__(self):
                return float(self._value)
            def __neg__(self):
                return Uint8(256 - self._value)
        counter, gauge, histogram = plugin.counter("c"), plugin.gauge("g"), plugin.histogram("h")
        for value in (True, 2, 0.5, Decimal("0.25"), Fraction(1, 4), Uint8(4)):
            counter.inc(value)
            histogram.observe(value)
            gauge.inc(value)
        gauge.dec(Uint8(4))
        gauge.dec(Decimal(1))
    """)
    assert (peer.sums["c"], peer.sums["h_sum"], peer.gauges["g"]) == (8, 8, 3)


GAUGE_SET_AND_ADDED_TO = """
    import sys, threading, time
    sys.setswitchinterval(1e-6)
    gauge = plugin.gauge("g")
    stop = False
    def add():
        while not stop:
            gauge.inc(1)
    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            for value in (-1e9, 1e9):
                gauge.set(value)
                pace(0)
                assert (gauge.read() < 0) == (value < 0)
    finally:
        stop = True
"""


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
    """, mistakes=["many: more than 10 series"])


def test_names_of_durations_are_bounded(run):
    run("""
        def n_kept():
            return sum(map(len, (plugin._timed, plugin._shared._by_key, plugin._shared._kinds)))
        plugin.configure(max_series=10)
        for i in range(1000):
            with plugin.timeit("beyond_{}".format(i)), plugin.timeit(chr(0x4000 + i)):
                pass
        before = n_kept()
        for i in range(1000):
            with plugin.timeit("far_beyond_{}".format(i)), plugin.timeit(chr(0x5000 + i)):
                pass
        assert n_kept() == before < 100, n_kept()
    """, mistakes=["beyond_9_seconds: more than 10 series"])


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
        "plugin.histogram('x', buckets=[None])",
        "plugin.counter('x', labels={'': 'y'})",
        "plugin.counter('x', labels={'y': 'z', 1: 'z'})",
        "plugin.counter('x', ttl=float('nan'))",
        "plugin.counter('x', ttl=float('inf'))",
        "plugin.counter('x', ttl=-1)",
        "plugin.counter('x', ttl=[])",
        "plugin.counter('x', labels={'y': 'z' * 10000})",
        "plugin.param('', default=1)",
        "plugin.param('x', default=5, min=6)",
        "plugin.param('x', default=[])",
        "plugin.param('x', type='list')",
        "plugin.param('x', min=2, max=1)",
        "plugin.param('x', default='a', values=['b'])",
        "plugin.param('x', default='a', values=[])",
        "plugin.param('x', default='a', type='enum')",
        "plugin.param('x', default=1.5, type='int')",
        "plugin.param('x', default=1, type='list')",
        "plugin.param('x', default=1); plugin.param('x', default=2)",
        "plugin.param('x', default=10**400)",
    ],
)
def test_mistakes_are_told_at_once(start, call):
    process = start(call)
    assert "ValueError" in process.communicate(timeout=LIMIT)[1].splitlines()[-1]


TENSOR = """
class Tensor:
    def __float__(self):
        raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")
    __index__ = __float__
    def __repr__(self):
        return "Tensor()"
"""


@pytest.mark.parametrize(
    "call, told",
    [
        ("plugin.counter('x', labels=['kind']).inc()",
         "x: has labels: .labels(kind=...) comes before a record"),
        ("plugin.counter('x').labels(cam='top', kind='car')",
         "x: labels(cam=..., kind=...): was declared without labels; with: counter('x', labels=['cam', 'kind'])"),
        ("plugin.metric('x').labels(cam='top')",
         "x: labels(cam=...): was declared without labels; with: metric('x', labels=['cam'])"),
        ("plugin.gauge('x', labels=['kind', 'cam']).set(1)",
         "x: has labels: .labels(cam=..., kind=...) comes before a record"),
        ("plugin.counter('x', labels='kind')", "x: labels are a dict, or a list of names, not 'kind'"),
        ("plugin.counter('x', labels=['kind']).labels(knd='car')", "x: expected the labels kind, got knd"),
        ("plugin.counter('x', labels=['kind']).labels()", "x: expected the labels kind, got none"),
        ("plugin.param('x', default=5, min=6, max=9)", "x: 5 is out of range, at least 6, at most 9"),
        ("plugin.param('x', default=5, max=4)", "x: 5 is out of range, at most 4"),
        ("plugin.param('x', default=7, min=0, max=10, step=2)", "x: default: 7 is not one of its steps of 2"),
        ("plugin.param('x', default=0.3, min=0.0, step=0.1); plugin.param('y', default=0.35, step=0.1)",
         "y: default: 0.35 is not one of its steps of 0.1"),
        ("plugin.param('x', default='a', min=6)", "x: min, max and step are for int and float, not for string"),
        ("plugin.param('x', default=True, step=1)", "x: min, max and step are for int and float, not for bool"),
        ("plugin.configure(interval=0)", "interval: 0 is no number of seconds above 0"),
        ("plugin.configure(interval=float('nan'))", "interval: nan is no number of seconds above 0"),
        ("plugin.configure(interval=float('inf'))", "interval: inf is no number of seconds above 0"),
        ("plugin.configure(max_series='many')", "max_series: 'many' is no number"),
        ("plugin.configure(on_error=5)", "on_error: 5 cannot be called"),
        ("plugin.param('x', default=5, min='1')", "x: min: '1' is no float"),
        ("plugin.param('x', default=5, max=1j)", "x: max: 1j is no float"),
        ("plugin.param('x', default=5, max=True)", "x: max: True is no float"),
        ("plugin.param('x', default=5, max=10**400)", f"x: max: {10**400} is no int"),
        ("plugin.param('x', default=5, type='int', min=0.5)", "x: min: 0.5 is no int"),
        ("plugin.param('x', default=5, step=float('inf'))", "x: step: inf is no float"),
        ("plugin.param('x', default=5, step=-1)", "x: step: -1 is below 0"),
        ("plugin.param('x', default=5, min=6, max=4)", "x: min, 6, is above max, 4"),
        ("plugin.param('x', default='a', values=5)", "x: values: 5 is no list"),
        ("plugin.param('x', default='a', type='string', values=['a'])", "x: values are for enum, not for string"),
        ("plugin.param('x', default=5, on_change=5)", "x: on_change: 5 cannot be called"),
        (TENSOR + "plugin.param('x', default=Tensor())", "x: Tensor() is no float"),
        (TENSOR + "plugin.param('x', default=5, max=Tensor())", "x: max: Tensor() is no float"),
        (TENSOR + "plugin.configure(interval=Tensor())", "interval: Tensor() is no number of seconds above 0"),
        ("plugin.param('my res', default=5)",
         "'my res': a param's name has letters, digits and _ only, and begins with none of the digits"),
        ("class Mute:\n    __str__ = None\nplugin.param('x', default=5, help=Mute())", "x: help: is no text"),
        ("class Mute:\n    __str__ = None\nplugin.param('x', default=5, unit=Mute())", "x: unit: is no text"),
    ],
)
def test_mistakes_are_told_with_the_name_and_what_to_do(start, call, told):
    process = start(call)
    assert process.communicate(timeout=LIMIT)[1].splitlines()[-1] == f"ValueError: {told}"


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


def test_labels_that_are_no_strings(peer, run):
    run("""
        import enum
        class Kind(str, enum.Enum):
            CAR = "car"
        class Mute:
            def __str__(self):
                raise KeyError("no words")
        objects = plugin.counter("objects_total", labels=["kind"])
        for kind in (Kind.CAR, "car", Kind.CAR, None, 1, True, 1.5, b"x", [1]):
            objects.labels(kind=kind).inc()
        try:
            objects.labels(kind=Mute()).inc()
            raise SystemExit(1)
        except KeyError:
            pass
    """)
    texts = {"car": 3, "None": 1, "1": 1, "True": 1, "1.5": 1, "b'x'": 1, "[1]": 1}
    assert peer.sums == {f'objects_total{{"kind": "{text}"}}': n for text, n in texts.items()}


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
    wait_until(lambda: {name: param.get() for name, param in params.items()} == wanted)
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


def test_a_knob_without_a_default(peer, run):
    turns = [[720], [1.5], [True], ["auto"], [None], [[1], {"a": 1}, 7]]

    def turn(connection, line):
        """The next value when the last one was applied; lists and objects are rejected."""
        for value in turns.pop(0) if line.get("param") == "res" and "applied" in line and turns else []:
            connection.send(json.dumps({"param": "res", "value": value}).encode() + b"\n")

    peer.on_line = turn
    run("""
        seen = []
        assert plugin.param("untouched").get() is None
        plugin.param("res", on_change=seen.append)
        wait_until(lambda: 7 in seen)
        assert [(type(value), value) for value in seen] == [
            (int, 720), (float, 1.5), (bool, True), (str, "auto"), (type(None), None), (int, 7)], seen
        assert plugin.stats()["errors"] == 2
        assert plugin.flush()
    """)
    assert {"param": "res", "type": "any", "default": None} in peer.lines
    assert [line["applied"] for line in peer.lines if "applied" in line][-1] == 7


REFINED = """
    res = plugin.param("res")
    wait_until(lambda: res.get() == {turned!r})
    same = plugin.param("res", {arguments})
    assert same is res and plugin.param("res") is res
    value = res.get()
    assert (type(value), value) == (type({left!r}), {left!r}), value
    assert plugin.flush()
    try:
        plugin.param("res", default=1, max=2)
    except ValueError as error:
        assert str(error) == "res: is declared already, and otherwise"
    else:
        raise SystemExit("nobody noticed")
"""


@pytest.mark.parametrize("turned, arguments, left, declared", [
    (480, "default=720, min=240, max=1080", 480, {"type": "int", "default": 720, "min": 240, "max": 1080}),
    (480, "default=0.5", 480.0, {"type": "float", "default": 0.5}),
    (480, "min=500, max=1080", None, {"type": "int", "default": None, "min": 500, "max": 1080}),
    (480, "type='float'", 480.0, {"type": "float", "default": None}),
    ("fast", "values=['fast', 'good']", "fast", {"type": "enum", "default": None, "values": ["fast", "good"]}),
    ("slow", "default='good', values=['fast', 'good']", "good",
     {"type": "enum", "default": "good", "values": ["fast", "good"]}),
    (None, "default=True", True, {"type": "bool", "default": True}),
])
def test_a_later_declaration_says_more(peer, run, turned, arguments, left, declared):
    def turn(connection, line):
        if line.get("type") == "any":
            connection.send(json.dumps({"param": "res", "value": turned}).encode() + b"\n")

    peer.on_line = turn
    run(REFINED.format(turned=turned, arguments=arguments, left=left))
    assert [line for line in peer.lines if "type" in line][-1] == {"param": "res", **declared}
    assert [line["applied"] for line in peer.lines if "applied" in line][-1] == left


def test_knobs_of_types_that_json_has_not(peer, run):
    run("""
        import enum
        from decimal import Decimal
        from fractions import Fraction

        class Number:
            def __init__(self, value):
                self._value = value
        class Int64(Number):
            def __index__(self):
                return self._value
            __int__ = __index__
        class Float32(Number):
            def __float__(self):
                return self._value
        class Array(Float32):
            def __index__(self):
                raise TypeError("only integer scalar arrays can be converted to a scalar index")
        class bool_(Number):
            def __bool__(self):
                return self._value
        class Mode(str, enum.Enum):
            FAST = "fast"
            GOOD = "good"

        res = plugin.param("res", default=Int64(720), min=Int64(240), max=Int64(1080), step=Int64(120))
        got = [res.get(),
               plugin.param("gain", default=Decimal("0.5"), max=Fraction(5, 2), unit=5, help=Decimal(1)).get(),
               plugin.param("whole", default=Decimal(5), type="int", min=1.0).get(),
               plugin.param("bias", default=Float32(0.25), min=Array(-1.5)).get(),
               plugin.param("on", default=bool_(True)).get(),
               plugin.param("mode", default=Mode.GOOD, values=iter(Mode)).get(),
               plugin.param("file", default="a\\udcff").get()]
        assert got == [720, 0.5, 5, 0.25, True, "good", "a?"], got
        assert [type(value) for value in got] == [int, float, int, float, bool, str, str], got
        assert plugin.param("res", default=720, min=240, max=1080, step=120) is res
        plugin.counter("alive").inc()
        assert plugin.flush()
    """)
    declared = {line.pop("param"): line for line in peer.lines if "default" in line}
    assert declared == {
        "res": {"type": "int", "default": 720, "min": 240, "max": 1080, "step": 120},
        "gain": {"type": "float", "default": 0.5, "max": 2.5, "unit": "5", "help": "1"},
        "whole": {"type": "int", "default": 5, "min": 1},
        "bias": {"type": "float", "default": 0.25, "min": -1.5},
        "on": {"type": "bool", "default": True},
        "mode": {"type": "enum", "default": "good", "values": ["fast", "good"]},
        "file": {"type": "string", "default": "a?"},
    }
    assert peer.sums["alive"] == 1


def test_steps_beyond_what_floats_tell_apart(peer, run):
    run("""
        plugin.param("tiny", default=1.0, step=5e-324)
        plugin.param("huge", default=1.7e308, min=-1.7e308, max=1.7e308, step=1.0)
        plugin.param("fine", default=1e300, step=1e-3)
        plugin.param("whole", default=10**308, min=-10**308, max=10**308, step=1)
        assert plugin.flush()
    """)
    assert sorted(line["param"] for line in peer.lines if "default" in line) == ["fine", "huge", "tiny", "whole"]


def test_a_knob_is_quick_and_survives_a_reconnect(peer, start):
    process = start("""
        plugin.configure(interval=600)  # for which nobody waits
        res = plugin.param("res", default=720, min=240, max=1080)
        wait_until(lambda: res.get() == 1000)
        assert plugin.flush()
    """)

    def applied():
        return [line["applied"] for line in peer.lines if "applied" in line]

    wait_until(lambda: applied() == [720])
    peer.send(b'{"param": "res", "value": 480}\n')
    wait_until(lambda: applied() == [720, 480])
    peer.kill()
    peer.listen()
    wait_until(lambda: applied() == [720, 480, 480])
    peer.send(b'{"param": "res", "value": 1000}\n')
    assert process.wait(LIMIT) == 0
    assert applied()[-1] == 1000


def test_a_knob_that_is_told_again_does_not_call(peer, start):
    """With every connection the exporter tells what is requested."""
    def tell(connection, line):
        if "default" in line:
            connection.send(b'{"param": "res", "value": 480}\n')

    peer.on_line = tell
    process = start("""
        seen = []
        res = plugin.param("res", default=720, on_change=seen.append)
        wait_until(lambda: res.get() == 1000)
        plugin.flush()
        assert seen == [480, 1000], seen
    """)

    def applied():
        return [line["applied"] for line in list(peer.lines) if "applied" in line]

    wait_until(lambda: applied()[-1:] == [480])
    n = len(applied())
    peer.kill()
    peer.listen()
    wait_until(lambda: len(applied()) > n and applied()[-1] == 480)
    peer.send(b'{"param": "res", "value": 1000}\n')
    assert process.wait(LIMIT) == 0


def test_a_series_may_stay_for_ever(peer, run):
    run("""
        plugin.gauge("stays", ttl=0).set(1)
        plugin.gauge("goes", ttl=7).set(1)
        plugin.gauge("usual").set(1)
    """)
    ttls = {line["metric"]: line.get("ttl") for line in peer.lines if "metric" in line}
    assert ttls == {"stays": 0, "goes": 7, "usual": None}


def test_a_knob_calls(peer, run):
    def turn(connection, line):
        if "default" in line:
            connection.send(b'{"param": "res", "value": 1}\n{"param": "res", "value": 2}\n')

    peer.on_line = turn
    run("""
        seen = []
        def changed(value):
            assert not plugin.flush(5)  # on the library's own thread it cannot wait
            seen.append(value)
            raise KeyError("no harm")
        res = plugin.param("res", default=720, on_change=changed)
        wait_until(lambda: 2 in seen)
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


@pytest.mark.parametrize("interval", ["1e-300", "1e9"])
def test_extreme_intervals(peer, run, interval):
    run(f"""
plugin.configure(interval={interval})
plugin.counter("x").inc()
pace(0.2)
assert plugin.flush()
plugin.counter("y").inc()
""")
    assert peer.sums == {"x": 1, "y": 1}


@pytest.mark.parametrize("argv, name", [("['cars.py']", "cars"), ("[None]", "python"), ("[]", "python")])
def test_a_program_without_a_place(peer, run, tmp_path, argv, name):
    run(f"""
import os, sys
os.mkdir({str(tmp_path / 'gone')!r})
os.chdir({str(tmp_path / 'gone')!r})
os.rmdir({str(tmp_path / 'gone')!r})
sys.argv = {argv}
plugin.counter("x").inc()
""")
    assert (peer.hellos[0]["plugin"], peer.sums["x"]) == (name, 1)


def test_the_program_names_the_plugin(peer, tmp_path):
    script = tmp_path / "objcounter.py"
    script.write_text("from waap import plugin\nplugin.counter('x').inc()\n")
    package = tmp_path / "app"
    package.mkdir()
    (package / "__main__.py").write_text(script.read_text())
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGE}:{tmp_path}", "WAAP_PUSH_SOCKET": peer.path}
    environment.pop("WAAP_PLUGIN_NAME", None)
    for command in ([str(script)], ["-m", "app"], ["-c", script.read_text()]):
        subprocess.run([sys.executable, *command], env=environment, check=True, timeout=LIMIT)
        wait_until(peer.has_heard_all)
    assert [hello["plugin"] for hello in peer.hellos] == ["objcounter", "app", "python"]


@pytest.mark.parametrize("python", old_pythons())
@pytest.mark.parametrize(
    "program, check, on_line",
    [
        pytest.param(ALL_KINDS, check_all_kinds, None, id="kinds"),
        pytest.param(FORKING, check_forking, None, id="fork"),
        pytest.param(KNOBS, check_knobs, turn_all, id="knobs"),
        pytest.param(ENDING, check_ending, None, id="end"),
        pytest.param(FORKED_WITH_THE_LOCK, check_forked_with_the_lock, None, id="fork with the lock"),
        pytest.param(FORKED_WHILE_A_METRIC_IS_MADE.format(dropped=False), check_forked_while_a_metric_is_made, None,
                     id="fork while a metric is made"),
        pytest.param(FORKED_BESIDE_LOGGING, check_forked_beside_logging, None, id="fork beside logging"),
        pytest.param(THREADS_OF_A_CHILD, check_threads_of_a_child, None, id="threads of a child"),
        pytest.param(GAUGE_SET_AND_ADDED_TO, lambda peer: None, None, id="gauge"),
    ],
)
def test_other_pythons(peer, run, python, program, check, on_line):
    if python is None:
        pytest.skip("SKIP: no such interpreter here")
    peer.on_line = on_line or peer.on_line
    run(program, mistakes=mistakes_of(program), python=python, PYTHONWARNINGS="ignore")
    check(peer)


def test_its_language_is_that_of_python_3_6():
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "plugin/examples").glob("*.py")]:
        ast.parse(pathlib.Path(path).read_text(), feature_version=(3, 6))


BY_USE = """
    fps = plugin.metric("fps")
    acc = plugin.metric("acc")
    unused = plugin.metric("unused")
    plugin.metrics.lag(labels=["cam"]).labels(cam="top").inc()
    plugin.metric.update("loss", 3)
    plugin.metric.update("loss", 1)
    for i in range(10):
        fps.inc()
        acc.set(i)
        acc.update(i / 10)
    assert plugin.metric("fps") is fps and plugin.metric("fps", "rate") is fps
    late = plugin.metric("late")
    assert plugin.gauge("late") is late and plugin.metrics.late() is late
    late.set(1)
    late.inc()
    total = plugin.counter("seen_total")
    assert plugin.metric("seen_total") is total
    total.inc(4)
    assert not hasattr(plugin.metrics, "__wrapped__")
"""


def test_the_first_record_decides(peer, run):
    run(BY_USE)
    declared = {line["metric"]: line["type"] for line in peer.lines if "type" in line}
    assert declared == {"fps": "rate", "acc": "gauge", "lag": "rate", "loss": "gauge", "late": "gauge",
                        "seen_total": "counter"}
    assert peer.sums["fps"] == 10 and peer.sums['lag{"cam": "top"}'] == 1 and peer.sums["seen_total"] == 4
    assert peer.gauges == {"acc": 0.9, "loss": 1, "late": 2}


@pytest.mark.parametrize(
    "calls, told",
    [
        ("x.inc(); x.set(3)", "x: set(3): is a rate: use inc()"),
        ("x.inc(); x.update('many')", "x: set('many'): is a rate: use inc()"),
        ("x.set(3); x.inc()", "x: inc(1): is a gauge: use set(), or declare it a gauge"),
        ("x.update(3); x.dec(2)", "x: dec(2): is a gauge: use set(), or declare it a gauge"),
        ("x.dec()", "x: dec(1): is a metric: begin with set(), or declare a gauge"),
        ("x.observe(1)", "x: observe(1): is a metric: declare a histogram"),
        ("x.set(1); plugin.counter('x')", "x: is a gauge already"),
        ("x.inc(); plugin.gauge('x')", "x: is a rate already"),
        ("plugin.histogram('x')", "x: is a metric already"),
        ("plugin.histogram('y'); plugin.metric('y')", "y: is a histogram already"),
        ("plugin.counter('y').set(3)", "y: set(3): is a counter: use inc()"),
    ],
)
def test_one_metric_is_of_one_kind(start, calls, told):
    process = start(f"x = plugin.metric('x'); {calls}")
    assert process.communicate(timeout=LIMIT)[1].splitlines()[-1] == f"ValueError: {told}"


def test_threads_decide_once(run):
    run("""
        import threading
        for i in range(200):
            x = plugin.metric("x{}".format(i))
            faults = []
            barrier = threading.Barrier(4)
            def record(call):
                barrier.wait()
                try:
                    call(1)
                except ValueError as error:
                    faults.append(str(error))
            threads = [threading.Thread(target=record, args=(call,)) for call in [x.inc, x.set] * 2]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(faults) == 2 and faults[0] == faults[1], faults
    """)


def test_no_thread_loses_what_it_records_while_another_decides(run):
    run("""
        import sys
        import threading
        plugin.configure(max_series=5000)
        sys.setswitchinterval(1e-6)
        for i in range(4000):
            x = plugin.metric("x{}".format(i))
            barrier = threading.Barrier(2)
            def record():
                barrier.wait()
                x.inc()
            threads = [threading.Thread(target=record) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert x.read() == 2, (i, x.read())
    """)
