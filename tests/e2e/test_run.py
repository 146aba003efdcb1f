"""`waap run`: commands of known cost, what stops them, and what is left when things go wrong."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap

import pytest

from running import ROOT, free_port
from waiting import LIMIT, wait_until

MIB = 1 << 20
PYTHON = sys.executable
HERE = str(pathlib.Path(__file__).parent)
QUICK = "sampling: {baseline: 0, cooldown: 0, interval: 20ms}"


def script(path, text):
    path.write_text(textwrap.dedent(text))
    return path


def lines(folder):
    return [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]


class Record:
    def __init__(self, folder):
        self.folder = folder
        self.lines = lines(folder)
        self.run = self.lines[0]
        self.ends = [line for line in self.lines if line["kind"] == "end"]
        self.samples = [line for line in self.lines if line["kind"] == "sample"]

    def phases(self, target="1"):
        return [line["phase"] for line in self.lines
                if line["kind"] == "phase" and line["target"] == target]

    def last(self, key):
        return next(line["values"][key] for line in reversed(self.samples) if key in line["values"])

    def output(self, end=0):
        return (self.folder / self.ends[end]["output"]).read_text()


@pytest.fixture
def profile(waap_binary, tmp_path):
    """profile("sage text", "--", command…): runs to the end; its Record, and what it complained about."""

    def run(text, *arguments, code=0, environment=None, timeout=60, kept=False):
        file = tmp_path / "sage.yaml"
        file.write_text(textwrap.dedent(text))
        process = subprocess.Popen([waap_binary, "run", file, f"--out={tmp_path / 'out'}", "--force", *arguments], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**os.environ, **(environment or {})})
        try:
            output, complaints = process.communicate(timeout=timeout)
        finally:
            process.kill()
        assert process.returncode == code, complaints
        assert not list(pathlib.Path("/sys/fs/cgroup").rglob(f"waap-run-{process.pid}.*"))
        return (Record(tmp_path / "out") if code != 2 or kept else None), complaints

    return run


BURN = """
    import sys, time
    block = bytearray(int(sys.argv[2]) << 20)
    block[::4096] = b"x" * len(block[::4096])
    while time.process_time() < float(sys.argv[1]):
        sum(range(10000))
    print(time.process_time())
"""


@pytest.fixture
def burn(tmp_path):
    return script(tmp_path / "burn.py", BURN)


@pytest.mark.parametrize("cgroups", [True, False])
def test_cpu_and_memory(profile, burn, cgroups):
    """Within 2 % of what the application itself counts, and of what it was told to take."""
    where = {} if cgroups else {"WAAP_PATH_CGROUPFS": "/nonexistent"}
    record, _ = profile(f"""
        name: burn
        version: 1.2
        profiling:
          {QUICK}
          command: [{PYTHON}, {burn}]
          targets:
            - {{name: small, args: 0.1 20}}
            - {{name: large, args: "1.5 220"}}
        """, environment=where)
    small, large = record.ends
    own = float(record.output(1))
    cpu = large["user_seconds"] + large["system_seconds"]
    assert abs(cpu - own) <= 0.02 * own + 0.02, (cpu, own)
    assert record.samples[-1]["values"].keys() & {"cpu.seconds", "memory.bytes", "processes"} == {"cpu.seconds"}
    growth = large["peak_memory_bytes"] - small["peak_memory_bytes"]
    assert abs(growth - 200 * MIB) < 0.02 * 200 * MIB
    assert abs(record.last("cpu.seconds") - cpu) < 0.02 * own
    assert record.run["application"] == {"name": "burn", "version": "1.2",
                                         "file": str(burn.parent / "sage.yaml")}
    environment = record.run["environment"]
    assert environment["kernel"] == os.uname().release
    if not cgroups:
        assert environment["launch"] == "process group"
        assert "/nonexistent" in environment["no_cgroup"]
        assert large["peak_memory_source"] == "rusage"
    assert large["stopped_by"] == "itself" and large["exit"] == 0 and not large["timed_out"]
    assert large["overhead_seconds"] < large["wall_seconds"]
    assert record.lines[-1]["kind"] == "finished" and not record.lines[-1]["interrupted"]


def test_cgroup_where_one_can_be_made(profile, burn):
    record, _ = profile(f"profiling: {{{QUICK}}}", "--", PYTHON, burn, "0.05", "1")
    environment = record.run["environment"]
    if environment["launch"] != "cgroup":
        pytest.skip(f"no cgroup can be made: {environment['no_cgroup']}")
    assert record.ends[0]["peak_memory_source"] in ("memory.peak", "max_usage", "rusage")


FRAMES = """
    import sys
    from waap import plugin
    fps = plugin.metric("fps", help="Frames.")
    for i in range(int(sys.argv[1])):
        with plugin.timeit("inference"):
            pass
        fps.inc()
"""


def test_frames_of_a_plugin(profile, tmp_path):
    """Everything that the application counted is there, the last frame too; runs do not mix."""
    application = script(tmp_path / "frames.py", FRAMES)
    record, _ = profile(f"""
        profiling:
          {QUICK}
          command: {PYTHON} {application}
          env: {{PYTHONPATH: {ROOT / "plugin/python"}}}
          targets: [{{args: "120", repeats: 2, warmup: 1}}, {{args: "7"}}]
        """)
    assert [end["frames"] for end in record.ends] == [120, 120, 120, 7]
    assert [(end["target"], end["run"]) for end in record.ends] == [
        ("1", 1), ("1", 2), ("1", 3), ("2", 1)]
    assert record.phases() == ["warmup", "run", "run"]
    assert record.last("app.fps_total") == 7
    assert record.last("app.inference_seconds_count") == 7
    assert record.last('app.inference_seconds{le="+Inf"}') == 7
    declared = {line["key"]: line for line in record.lines if line["kind"] == "series"}
    assert declared["app.fps_total"]["type"] == "counter"
    assert declared["app.fps_total"]["help"] == "Frames."
    assert declared['app.inference_seconds{le="+Inf"}']["type"] == "histogram_bucket"
    used = {key for sample in record.samples for key in sample["values"]}
    assert used == set(declared) - {"app.fps"}, "no run takes the second after which a mean is known"


def test_sweep_of_a_knob(profile, source_root, waap_binary):
    example = waap_binary.parent.parent / "plugin/objcounter"
    record, _ = profile(f"profiling: {{{QUICK}}}", "--knob=res=240,720", "--", example, "1")
    targets = [line for line in record.lines if line["kind"] == "target"]
    assert [(line["target"], line["of"], line["knobs"]) for line in targets] == [
        ("1.res=240", "1", {"res": 240}), ("1.res=720", "1", {"res": 720})]
    for name, res in (("1.res=240", 240), ("1.res=720", 720)):
        assert record.phases(name) == ["warmup", "run"]
        began = next(line["t"] for line in record.lines
                     if line.get("phase") == "run" and line["target"] == name)
        values = {line["values"]['app.param{param="res"}'] for line in record.samples
                  if line["target"] == name and line["t"] > began}
        assert values == {res}
    assert record.ends[0]["frames"] > record.ends[1]["frames"]


@pytest.fixture
def knobs(profile, waap_binary):
    """knobs("--knob=…", seconds): a sweep of the example plugin, which has the knob res."""
    example = waap_binary.parent.parent / "plugin/objcounter"

    def sweep(knob, command=(example, "60"), code=2):
        text = f"profiling: {{{QUICK}, grace: 1, repeats: 2, warmup: 1, targets: [{{name: a}}, {{name: b}}]}}"
        record, complaints = profile(text, knob, "--", *command, code=code, kept=True)
        return record, complaints.splitlines()

    return sweep


def test_a_misspelt_knob_is_told_at_once(knobs):
    """By the first run, as the others would say the same; so are values that it cannot have."""
    record, complaints = knobs("--knob=resolution=240,480")
    assert complaints == ["waap run: a.resolution=240: --knob: no plugin has a knob resolution, only res"]
    assert [end["error"] for end in record.ends] == ["--knob: no plugin has a knob resolution, only res"]
    record, complaints = knobs("--knob=res=7,8")
    assert len(complaints) == len(record.ends) == 1 and "--knob: res: 7 is below its minimum, 240" in complaints[0]


def test_an_application_without_knobs(knobs):
    """One that has none will not have any; one that crashes may have some the next time."""
    for command, n_runs in (("true", 1), ("false", 6)):
        record, complaints = knobs("--knob=res=240", command=(command,), code=3)
        assert [end["error"] for end in record.ends] == (
            n_runs * ["knobs were not applied before it ended: no plugin has declared a knob"])
        assert len(complaints) == n_runs


def test_arguments_and_environment(profile, tmp_path):
    """Hostile words stay words; there is no shell."""
    show = script(tmp_path / "show.py", """
        import json, os, sys
        print(json.dumps([sys.argv[1:], {k: os.environ.get(k) for k in ("A", "B", "WAAP_DATASET")}, os.getcwd()]))
    """)
    (tmp_path / "data").mkdir()
    record, _ = profile(f"""
        profiling:
          {QUICK}
          command: [{PYTHON}, {show.name}]
          env: {{A: one}}
          dataset: data
          targets:
            - args: "--x 'a b' ; rm -rf / $(touch pwned) `id` \\"q'\\""
            - {{args: ["; rm", "$HOME\\n"], env: {{B: "2"}}}}
        """)
    words, variables, where = json.loads(record.output(0))
    assert words == ["--x", "a b", ";", "rm", "-rf", "/", "$(touch", "pwned)", "`id`", "q'"]
    assert variables == {"A": "one", "B": None, "WAAP_DATASET": str(tmp_path / "data")}
    assert where == str(tmp_path)
    words, variables, _ = json.loads(record.output(1))
    assert words == ["; rm", "$HOME\n"] and variables["B"] == "2"
    assert not (tmp_path / "pwned").exists()


STUBBORN = """
    import os, signal, sys, time
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    pids = [os.getpid()]
    for apart in (False, True):
        read, write = os.pipe()
        if os.fork() == 0:
            if apart:
                os.setsid()
                if os.fork() > 0:
                    os._exit(0)
            os.write(write, b"%d" % os.getpid())
            os.close(write)
            while True:
                signal.pause()
        pids.append(int(os.read(read, 20)))
    print(*pids, flush=True)
    while True:
        signal.pause()
"""


def profile_in_time(profile, settings, *command, **options):
    """The record of an application that says when it is ready for signals, with a timeout for which it was quick enough."""
    for seconds in (1, 5, 25):
        text = settings.format(seconds=seconds)
        record, _ = profile(f"profiling: {{{QUICK}, {text}, timeout: {seconds}}}", "--force", "--", *command, **options)
        if record.output():
            return record
    pytest.fail("the application was never ready")


@pytest.mark.parametrize("cgroups", [True, False])
def test_application_that_ignores_signals(profile, tmp_path, cgroups):
    """It is gone after timeout and grace, with its children, one of which is a daemon."""
    application = script(tmp_path / "stubborn.py", STUBBORN)
    where = {} if cgroups else {"WAAP_PATH_CGROUPFS": "/nonexistent"}
    record = profile_in_time(profile, "grace: 200ms", PYTHON, application, environment=where)
    end = record.ends[0]
    assert end["timed_out"] and end["stopped_by"] == "SIGKILL" and end["signal"] == signal.SIGKILL
    assert end["wall_seconds"] >= 1.4
    assert record.phases() == ["run", "stop"]
    pids = record.output().split()
    assert len(pids) == 3
    for pid in pids:
        wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), what=f"the end of {pid}")


@pytest.mark.parametrize("obeyed", ["SIGINT", "SIGTERM"])
def test_timeout_is_obeyed(profile, tmp_path, obeyed):
    application = script(tmp_path / "polite.py", f"""
        import signal, sys
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.{obeyed}, lambda *_: sys.exit(7))
        print("ready", flush=True)
        while True:
            signal.pause()
    """)
    record = profile_in_time(profile, "grace: {seconds}s", PYTHON, application)
    end = record.ends[0]
    assert (end["stopped_by"], end["exit"], end["timed_out"]) == (obeyed, 7, True)


def test_longest_runtime(profile):
    record, _ = profile(f"profiling: {{{QUICK}, max_runtime: 300ms, timeout: 0}}", "--", "sleep", "60")
    assert record.ends[0]["timed_out"] and record.ends[0]["stopped_by"] == "SIGINT"


def test_application_that_fails(profile):
    record, _ = profile(f"profiling: {{{QUICK}, repeats: 2}}", "--", "sh", "-c", "echo why; exit 5", code=3)
    assert [end["exit"] for end in record.ends] == [5, 5]
    assert record.output() == "why\n"
    record, complaints = profile(f"profiling: {{{QUICK}}}", "--", "/nonexistent/app", code=3)
    assert "/nonexistent/app" in record.ends[0]["error"] and "/nonexistent/app" in complaints


@pytest.fixture
def begin(waap_binary, tmp_path):
    """begin(command…): `waap run` that is under way: its process, and the record once there are samples."""
    processes = []

    def start(*command, text="profiling: {%s}" % QUICK, before=()):
        (tmp_path / "sage.yaml").write_text(text)
        process = subprocess.Popen([*before, waap_binary, "run", tmp_path / "sage.yaml", "--out", tmp_path / "out", "--force",
                                    "--", *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        processes.append(process)
        file = tmp_path / "out/samples.jsonl"
        wait_until(lambda: file.exists() and file.read_text().count('"kind":"sample"') > 3, what="samples")
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_crash_leaves_a_valid_record(begin, tmp_path):
    application = script(tmp_path / "app.py", """
        import os, signal
        print(os.getpid(), flush=True)
        while True:
            signal.pause()
    """)
    process = begin(PYTHON, application)
    folder = next(pathlib.Path(tempfile.gettempdir()).glob(f"waap-run-{process.pid}.*"))
    pid = wait_until((tmp_path / "out/output/1-1.log").read_text, what="its pid").strip()
    process.kill()
    process.wait()
    assert lines(tmp_path / "out")[-1]["kind"] in ("sample", "lost")
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), what="the end of the application")
    begin("sleep", "60")
    wait_until(lambda: not folder.exists(), what="the next run to tidy up")


def test_an_application_in_the_background_is_told(profile):
    _, complaints = profile(f"profiling: {{{QUICK}, repeats: 2}}", "--", "sh", "-c", "setsid sleep 60 & exit 0")
    assert complaints == "waap run: 1: killed 1 process that outlived its first one\n"


def test_folders_of_runs_that_begin_are_left_alone(profile):
    """Ours is not locked, as that of a run is not for a moment; nobody has the other's number."""
    with tempfile.TemporaryDirectory() as tmp:
        ours, dead = f"waap-run-{os.getpid()}.abcdef", "waap-run-2147483647.abcdef"
        os.mkdir(f"{tmp}/{ours}")
        os.mkdir(f"{tmp}/{dead}")
        profile(f"profiling: {{{QUICK}}}", "--", "true", environment={"TMPDIR": tmp})
        assert os.listdir(tmp) == [ours]


def test_interrupt_keeps_what_was_recorded(begin, tmp_path):
    process = begin("sleep", "60")
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, complaints
    record = Record(tmp_path / "out")
    assert record.ends[0]["stopped_by"] == "user" and not record.ends[0]["timed_out"]
    assert record.lines[-1]["interrupted"]


def test_a_run_outlives_its_terminal(begin, tmp_path):
    """By nohup; and whoever starts it may care for no children."""
    file = tmp_path / "out/samples.jsonl"
    application = f"until test -e {tmp_path}/enough; do sleep 0.02; done; exit 5"
    process = begin("sh", "-c", application, before=["env", "--ignore-signal=HUP,CHLD"])
    process.send_signal(signal.SIGHUP)
    n_samples = file.read_text().count('"kind":"sample"')
    wait_until(lambda: file.read_text().count('"kind":"sample"') > n_samples + 3, what="more samples")
    (tmp_path / "enough").touch()
    process.communicate(timeout=LIMIT)
    assert process.returncode == 3
    record = Record(tmp_path / "out")
    assert record.ends[0]["stopped_by"] == "itself" and record.ends[0]["exit"] == 5


def test_second_interrupt_does_not_wait(begin, tmp_path):
    application = script(tmp_path / "stubborn.py", STUBBORN)
    process = begin(PYTHON, application, text="profiling: {%s, grace: 1h}" % QUICK)
    wait_until((tmp_path / "out/output/1-1.log").read_text, what="its pids")
    process.send_signal(signal.SIGINT)
    wait_until(lambda: '"stop"' in (tmp_path / "out/samples.jsonl").read_text(), what="the phase")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT)
    assert process.returncode == 130


SERVER = """
    import http.server, os, sys
    sys.path.append(%r)
    from waiting import pace
    print(os.getpid(), flush=True)
    pace(0.3)
    http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
""" % HERE


def test_service_is_up_before_the_application(profile, tmp_path):
    port = free_port()
    server = script(tmp_path / "server.py", SERVER)
    client = script(tmp_path / "client.py", """
        import sys, urllib.request
        print(urllib.request.urlopen("http://127.0.0.1:" + sys.argv[1]).status)
    """)
    record, _ = profile(f"""
        profiling:
          {QUICK}
          command: [{PYTHON}, {client}]
          args: "{port}"
          services: [{{name: playback, command: [{PYTHON}, {server}, "{port}"], ready: {{tcp: {port}}}}}]
        """)
    assert record.output() == "200\n"
    pid = (tmp_path / "out/output/service-playback.log").read_text().split()[0]
    assert not pathlib.Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("command, ready, complaint", [
    (["sleep", "60"], "{tcp: 1, timeout: 300ms}", "service s: not ready after 0.3 s"),
    (["false"], "{file: /nonexistent}", "service s: ended before it was ready"),
    (["/nonexistent/s"], "{delay: 1ms}", "start /nonexistent/s: No such file or directory"),
])
def test_service_that_is_not_there(profile, command, ready, complaint):
    _, complaints = profile(f"""
        profiling: {{{QUICK}, services: [{{name: s, command: {json.dumps(command)}, ready: {ready}}}]}}
        """, "--", "true", code=4)
    assert complaint in complaints


@pytest.mark.parametrize("value", ["models/a.onnx", "../" * 30 + "x", "x" * 400], ids=["path", "above", "long"])
def test_any_value_of_a_knob_has_its_output(profile, value):
    record, _ = profile(f"profiling: {{{QUICK}, services: [{{name: a/b, command: 'true'}}]}}", f"--knob=model={value}",
                        "--", "echo", "hello", code=3)
    assert "knobs" in record.ends[0]["error"] and record.output() == "hello\n"
    assert record.ends[0]["output"].count("/") == 1


def test_interrupt_while_a_service_gets_ready(waap_binary, tmp_path):
    (tmp_path / "sage.yaml").write_text("""
        profiling: {services: [{name: s, command: [sh, -c, 'echo $$; exec sleep 600'], ready: {delay: 1h}}]}
        """)
    log = tmp_path / "out/output/service-s.log"
    process = subprocess.Popen([waap_binary, "run", tmp_path / "sage.yaml", f"--out={tmp_path / 'out'}", "--", "true"],
                               stderr=subprocess.PIPE, text=True)
    try:
        pid = wait_until(lambda: log.exists() and log.read_text(), what="the service").strip()
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    assert process.returncode == 130 and "service s: interrupted" in complaints
    assert lines(tmp_path / "out")[-1]["interrupted"]
    assert not pathlib.Path(f"/proc/{pid}").exists()


def test_progress_on_a_terminal(waap_binary, tmp_path):
    ours, theirs = os.openpty()
    (tmp_path / "sage.yaml").write_text(f"profiling: {{{QUICK}, targets: [{{name: nap}}]}}")
    application = f"until test -e {tmp_path}/enough; do sleep 0.02; done"
    with subprocess.Popen([waap_binary, "run", tmp_path / "sage.yaml", "--out", tmp_path / "out", "--", "sh", "-c", application],
                          stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if b"\r\x1b[Knap 1/1  run  " in shown and b"MiB" in shown:
                (tmp_path / "enough").touch()
    os.close(ours)
    assert process.returncode == 0
    assert shown.endswith(b"\r\x1b[K")


def test_baseline_and_cooldown(profile):
    record, _ = profile("profiling: {sampling: {baseline: 300ms, cooldown: 200ms, interval: 20ms}, repeats: 2}",
                        "--", "true")
    assert record.phases() == ["baseline", "run", "cooldown", "run", "cooldown"]
    times = [line["t"] for line in record.lines if line["kind"] == "phase"]
    assert times == sorted(times) and times[1] - times[0] >= 0.28


@pytest.fixture
def board(tmp_path, waap_binary, source_root):
    """The environment that shows a recorded board to `waap run`."""
    subprocess.run([waap_binary.parent.parent / "tests/fakes/plant",
                    source_root / "tests/fixtures/jetson/xavier_nx_jp5.tree", tmp_path / "board"], check=True)
    return {"WAAP_PATH_SYSFS": str(tmp_path / "board/sys"), "WAAP_PATH_ROOTFS": str(tmp_path / "board"),
            "WAAP_COLLECTOR_JETSON_TEGRASTATS": "off"}


def test_waits_until_the_board_is_cool(profile, board, tmp_path):
    """The application heats it; a service cools it once the run is over, and only then the next begins."""
    zone = tmp_path / "board/sys/class/thermal/thermal_zone0/temp"
    cold = zone.read_text()
    heat = script(tmp_path / "heat.py", f"open({str(zone)!r}, 'w').write('95000')\n")
    cool = script(tmp_path / "cool.py", f"""
        import sys
        sys.path.append({HERE!r})
        from waiting import pace
        while True:
            pace(0.1)
            if open({str(zone)!r}).read() == "95000":
                pace(1)
                open({str(zone)!r}, "w").write({cold!r})
    """)
    record, _ = profile(f"""
        profiling:
          sampling: {{baseline: 100ms, cooldown: 40ms, interval: 20ms}}
          repeats: 2
          services: [{{name: fan, command: [{PYTHON}, {cool}]}}]
        """, "--", PYTHON, heat, environment=board)
    kinds = [line for line in record.lines if line["kind"] in ("phase", "sample")]
    second = [i for i, line in enumerate(kinds) if line.get("phase") == "run"][1]
    temperatures = [max(value for key, value in line["values"].items() if key.startswith("temperature.celsius"))
                    for line in kinds[:second] if "temperature" in str(line.get("values"))]
    assert max(temperatures) == 95
    assert temperatures[-1] <= temperatures[0] + 1


def test_a_sensor_that_hangs(run_waap, board, tmp_path):
    """The run is recorded without it, and says so to the end."""
    zone = tmp_path / "board/sys/class/thermal/thermal_zone0/temp"
    zone.unlink()
    os.mkfifo(zone)
    (tmp_path / "sage.yaml").write_text(f"profiling: {{{QUICK}}}")
    ended = run_waap("run", tmp_path / "sage.yaml", f"--out={tmp_path / 'out'}", "--", "true", timeout=60,
                     env={**os.environ, **board})
    assert ended.returncode == 0 and "see " in ended.stdout
    assert Record(tmp_path / "out").ends[0]["exit"] == 0


def test_any_name_of_a_power_mode(profile, board, tmp_path):
    """What a board calls itself must not make its record unreadable."""
    modes = tmp_path / "board/etc/nvpmodel.conf"
    modes.write_text(modes.read_text().replace("MODE_20W_6CORE", "a\x01\\b"))
    record, _ = profile(f"profiling: {{{QUICK}}}", "--", "true", environment=board)
    assert record.run["environment"]["power_mode"] == {"id": "8", "name": "a\x01\\b"}
    assert record.run["environment"]["gpu"]["gpu"] == "0"


def test_interrupt_while_the_board_is_hot(begin, board, tmp_path, monkeypatch):
    """Nothing is started any more."""
    zone = tmp_path / "board/sys/class/thermal/thermal_zone0/temp"
    text = "profiling: {repeats: 2, sampling: {baseline: 100ms, cooldown: 40ms, cooldown_max: 1h, interval: 20ms}}"
    for name, value in board.items():
        monkeypatch.setenv(name, value)
    process = begin("sh", "-c", f"echo 95000 >{zone}", text=text)
    file = tmp_path / "out/samples.jsonl"
    wait_until(lambda: file.read_text().count('"phase":"cooldown"') == 2, what="the wait")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    record = Record(tmp_path / "out")
    assert len(record.ends) == 1 and record.phases() == ["baseline", "run", "cooldown", "cooldown"]


def test_jetson_as_probe(profile, board):
    """A recorded board: power, temperatures and the GPU are in the samples."""
    record, _ = profile("profiling: {sampling: {baseline: 100ms, cooldown: 0, interval: 20ms}}", "--", "sleep",
                        "0.5", environment=board)
    assert record.last("power.watts") == pytest.approx(6.33888)
    assert record.last("gpu.utilization_ratio") == 0.428
    assert record.last("gpu.temperature_celsius") > 20
    assert any(key.startswith("temperature.celsius{zone=") for key in record.samples[0]["values"])
    measured = [line["values"] for line in record.samples if "energy.joules" in line["values"]]
    before, after = measured[0], measured[-1]
    # Both count the same seconds.
    joules, busy = (after[name] - before[name] for name in ("energy.joules", "gpu.busy_seconds"))
    assert joules / busy == pytest.approx(6.33888 / 0.428, rel=0.05)
    assert record.run["environment"]["board"]["l4t"]


def cards(waap_binary, scenario):
    """The environment that shows the cards of a scenario to `waap run`."""
    library = waap_binary.parent.parent / "tests/fakes/libnvidia-ml.so.1"
    return {"FAKE_NVML": str(scenario), "WAAP_COLLECTOR_NVML_LIBRARY": str(library)}


def test_cards_as_probe(profile, waap_binary, source_root):
    """The second card has a label; where only cards are measured, their power is the total."""
    record, _ = profile("profiling: {sampling: {baseline: 100ms, cooldown: 0, interval: 20ms}}", "--", "sleep", "0.5",
                        environment=cards(waap_binary, source_root / "tests/fixtures/nvml/two-cards.txt"))
    both = record.last("gpu.power_watts") + record.last('gpu.power_watts{gpu="1"}')
    assert record.last("power.watts") == pytest.approx(both)
    assert record.last("gpu.busy_seconds") >= 0
    assert record.run["environment"]["gpu"]["name"]
    record, _ = profile("profiling: {metrics: [system], sampling: {baseline: 100ms, cooldown: 0}}", "--", "true",
                        environment=cards(waap_binary, source_root / "tests/fixtures/nvml/two-cards.txt"))
    assert not any(key.startswith(("gpu.", "power.")) for line in record.samples for key in line["values"])


USED = 5304236032  # on each of the two cards


@pytest.mark.parametrize("named", ["by cgroup", "by process tree", None])
def test_new_gpu_memory(profile, waap_binary, source_root, tmp_path, named):
    """What the application has allocated, if the driver names its processes; else the growth of the machine's memory
    since before its start, and marked so."""
    cards_text = (source_root / "tests/fixtures/nvml/two-cards.txt").read_text()
    scenario = tmp_path / "cards.txt"
    scenario.write_text(f"watch\n{cards_text}")
    program = script(tmp_path / "allocate.py", f"""
        import os, pathlib, time
        scenario = pathlib.Path({str(scenario)!r})
        pid = os.getpid() if {named is not None} else 4001
        text = scenario.read_text().replace("0.compute 4001:1073741824", f"0.compute {{pid}}:700000000")
        pathlib.Path(f"{{scenario}}.new").write_text(text.replace("{USED}", "{USED + 10 ** 9}"))
        os.rename(f"{{scenario}}.new", scenario)
        time.sleep(0.6)
        """)
    where = {"WAAP_PATH_CGROUPFS": "/nonexistent"} if named == "by process tree" else {}
    record, _ = profile(f"""
        profiling:
          {QUICK}
          gates: [{{metric: gpu.memory.new.max, max: {700e6 if named else 2e9}}}]
        """, "--", PYTHON, program, environment={**cards(waap_binary, scenario), **where})
    measures = json.loads((tmp_path / "out/summary.json").read_text())["targets"][0]["measures"]
    new = {name: measure["max"] for name, measure in measures.items() if name.startswith("gpu.memory.new")}
    page = (tmp_path / "out/report.html").read_text()
    if named:
        assert new == {"gpu.memory.new_bytes": 700e6}
        assert "<h3>New GPU memory</h3>" in page
    else:
        assert new == {'gpu.memory.new_bytes{of="machine"}': 2e9}
        assert "<h3>New GPU memory, of the machine</h3>" in page
    assert record.last('gpu.memory.new_bytes{of="machine"}') == 2e9


def test_driver_that_hangs(profile, waap_binary, source_root):
    """It costs its values and nothing else: the timeout is obeyed, and `waap run` ends."""
    record, _ = profile(f"profiling: {{{QUICK}, timeout: 1}}", "--", "sleep", "60",
                        environment=cards(waap_binary, source_root / "tests/fixtures/nvml/block.txt"))
    assert record.ends[0]["timed_out"] and record.ends[0]["stopped_by"] == "SIGINT"
    assert record.last("cpu.seconds") >= 0


@pytest.mark.parametrize("arguments, complaint", [
    ([], "expected a sage.yaml"),
    (["--imaje=x", "--", "a"], "--imaje: unknown flag, did you mean --image?"),
    (["--image=x", "--", "a"], "exclude each other"),
    (["--"], "expected a command after --"),
    (["a.yaml", "b.yaml"], "one file at a time"),
    (["--out"], "--out: expected a text, got nothing"),
    (["--knob=res", "--", "a"], "--knob: expected NAME=VALUE"),
    (["--knob=res=1,,2", "--", "a"], "--knob: expected 1 to 100 values"),
    (["--target=2", "--", "a"], 'there is no target "2"'),
    (["/nonexistent/sage.yaml"], "/nonexistent/sage.yaml"),
    (["/bin/true"], "to run /bin/true itself: waap run -- /bin/true"),
])
def test_usage(run_waap, tmp_path, arguments, complaint):
    ended = run_waap("run", *arguments, cwd=tmp_path)
    assert ended.returncode == 2
    assert complaint in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_record_is_not_replaced_unasked(run_waap, tmp_path):
    """Neither what was measured nor a summary that was kept; what never ran is no loss."""
    file, out = tmp_path / "sage.yaml", tmp_path / "out"
    file.write_text(f"profiling: {{{QUICK}}}\n")

    def run(*arguments):
        done = run_waap("run", file, f"--out={out}", *arguments, timeout=30)
        return done.returncode, done.stderr

    assert run("--", "/nonexistent/program")[0] == 3
    assert run("--", "false")[0] == 3
    first = (out / "samples.jsonl").read_bytes()
    code, complaint = run("--", "true")
    assert code == 2 and f"{out} has the record of a run of 20" in complaint and "--force" in complaint
    assert (out / "samples.jsonl").read_bytes() == first
    assert run("--force", "--", "true") == (0, "")
    assert Record(out).ends[0]["exit"] == 0
    (out / "samples.jsonl").unlink()
    code, complaint = run("--", "true")
    assert code == 2 and f"{out} has the summary of a run" in complaint
    (out / "samples.jsonl").write_text("my own\n")
    code, complaint = run("--", "true")
    assert code == 2 and "samples.jsonl:1: " in complaint and "--force" in complaint
    assert "--force: expected true or false" in run("--force=yes", "--", "true")[1]


def test_reports_of_a_replaced_record_are_gone(begin, tmp_path):
    """Whatever becomes of the run, they do not tell of another one."""
    (tmp_path / "out").mkdir()
    for name in ("junit.xml", "metrics.om", "report.html", "samples.csv", "summary.json"):
        (tmp_path / "out" / name).write_text("old")
    process = begin("sleep", "60")
    process.kill()
    process.wait(10)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["output", "samples.jsonl"]


def test_two_runs_at_once_do_not_share_a_record(begin, run_waap, tmp_path):
    begin("sleep", "60")
    done = run_waap("run", f"--out={tmp_path / 'out'}", "--force", "--", "true", timeout=30)
    assert done.returncode == 4 and "another waap run is writing it" in done.stderr
    assert [line["kind"] for line in lines(tmp_path / "out")][:2] == ["run", "target"]


def test_a_broken_gate_is_named(profile):
    _, complaints = profile("""
        profiling:
          targets: [{name: t, command: ["true"]}]
          gates: [{metric: wall.seconds, min: 3600}, {metric: wall.seconds, max: 3600}]
        """, code=1)
    assert complaints.startswith("gate t: wall.seconds is ") and complaints.endswith(", min is 3600 s\n"), complaints


def test_gate_on_what_is_not_measured(profile):
    _, complaints = profile("""
        profiling:
          targets: [{name: t, command: ["true"]}]
          gates: [{metric: memory.peek, min: 1}, {metric: memory.peak, min: 1}]
        """, code=1)
    assert complaints == "gate t: memory.peek: there is no such measure, did you mean memory.peak?\n"


def test_mistakes_in_the_file(profile, tmp_path):
    _, complaints = profile("profiling:\n  targets: [{timeout: soon}]\n  gates: [{metric: fps}]\n", code=2)
    file = tmp_path / "sage.yaml"
    assert sorted(complaints.splitlines()) == [
        f'{file}:2:23: profiling.targets[0].timeout: expected a duration from 0s to 1d, got "soon"',
        f"{file}:3:11: profiling.gates[0]: expected min, max, max_increase or max_decrease"]
    _, complaints = profile("profiling: {repeats: 2}\n", code=2)
    assert "target 1: nothing to run" in complaints
    _, complaints = profile("name: x\nprofilng: {command: [true]}\n", code=2)
    assert f"nothing to run: {file} has no section profiling" in complaints


def test_example(run_waap, source_root, tmp_path):
    """The file that the tutorial uses is good, and the tutorial shows its section."""
    example = source_root / "plugin/examples/sage.yaml"
    ended = run_waap("run", example, "--target=absent", f"--out={tmp_path}")
    assert ended.returncode == 2 and 'there is no target "absent"' in ended.stderr
    ended = run_waap("run", example.parent / "playback.yaml", "--target=absent", f"--out={tmp_path}")
    assert ended.returncode == 2 and 'there is no target "absent"' in ended.stderr
    section = example.read_text().split("\n\n")[1]
    assert textwrap.indent(section, "    ") in (source_root / "docs/profile.md").read_text()


def test_help(run_waap):
    for arguments in (["run", "--help"], ["help", "run"]):
        assert run_waap(*arguments).stdout.startswith("usage: waap run [FILE]")
