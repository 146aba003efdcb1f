"""waap control: from what is measured to the knobs of plugins, and what it does when it cannot."""

import json
import re
import socket
import threading

import pytest
import yaml

from authority import QUICK_SECRET, Authority
from peers import PROMETHEUS_VERSIONS, Prometheus, find_program, promtool
from plugin import Plugin
from running import Program, Waap
from waiting import wait_until

# Enough for a machine that does ten other things.


class Simulated(threading.Thread):
    """A plugin that looks at pictures: more lines, or a busier machine, and there are fewer of them
    in a second. While it is deaf it takes no value."""

    def __init__(self, path, name="sim"):
        super().__init__(daemon=True)
        self.load = 1.0
        self.lines = 720
        self.deaf = False
        self.over = threading.Event()
        wait_until(path.exists, what="the socket")
        self.plugin = Plugin(path, {"plugin": name}, timeout=0.05)
        self.plugin.say(
            {"param": "res", "type": "int", "default": 720, "min": 240, "max": 1080, "step": 120},
            {"param": "res", "applied": 720},
        )
        self.start()

    @property
    def fps(self):
        return 15 * 720 / self.lines / self.load

    def run(self):
        while not self.over.is_set():
            self.plugin.say({"metric": "fps", "type": "gauge", "set": self.fps})
            try:
                heard = self.plugin.hear()
            except (socket.timeout, TimeoutError):
                continue
            if heard is None:
                return
            if heard.get("param") == "res" and not self.deaf:
                self.lines = heard["value"]
                self.plugin.say({"param": "res", "applied": self.lines})

    def close(self):
        self.over.set()
        self.join()
        self.plugin.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Control(Waap):
    """`waap control` on a port of its own; it ends as the daemon does."""

    def __init__(self, binary, config, *flags):
        flags = ["--web.listen-address=127.0.0.1:0", *flags]
        Program.__init__(self, [binary, "control", config, *flags], None)
        self.wait_listening()


def loop(**changes):
    """A loop for the plugin above; None leaves a key out."""
    keys = {
        "name": "fps",
        "query": 'fps{plugin="sim"}',
        "setpoint": 15,
        "deadband": "10%",
        "knob": {"plugin": "sim", "param": "res"},
        "direction": "down",
        "min": 240,
        "max": 1080,
        "step": 120,
        "interval": "100ms",
        "dwell": "300ms",
        "safe": 360,
        "failures": 6,
        **changes,
    }
    return {key: value for key, value in keys.items() if value is not None}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture
def plant(waap, started, tmp_path):
    """The daemon and the plugin at its socket."""
    path = tmp_path / "push.sock"
    daemon = waap(f"--push.socket={path}")
    simulated = started(Simulated(path))
    wait_until(lambda: any(line.startswith("fps{") for line in daemon.samples()), what="fps")
    return daemon, simulated


@pytest.fixture
def write(tmp_path):
    def write_config(*loops, **others):
        path = tmp_path / "control.yaml"
        path.write_text(yaml.safe_dump({**others, "loops": list(loops)}, sort_keys=False))
        return path

    return write_config


@pytest.fixture
def control(started, waap_binary):
    def start(config, *flags):
        return started(Control(waap_binary, config, *flags))

    return start


def value(program, name, **labels):
    """The one series of that name whose labels include these; None where there is none."""
    found = [
        number
        for (known, pairs), number in program.metrics().items()
        if known == name and set(labels.items()) <= pairs
    ]
    assert len(found) <= 1
    return found[0] if found else None


def knob(daemon, plugin="sim", param="res"):
    answer = daemon.get(f"/api/v1/plugins/{plugin}/params/{param}")
    return json.loads(answer.body)["data"]


def turn(daemon, number):
    body = json.dumps({"value": number}).encode()
    assert daemon.get("/api/v1/plugins/sim/params/res", method="PUT", body=body).status == 200


def in_band(simulated):
    return 13.5 <= simulated.fps <= 16.5


# ---- by Prometheus ----


def need_version(program="prometheus"):
    """A version that is there, whichever."""
    for version in PROMETHEUS_VERSIONS:
        if find_program(program, version) is not None:
            return version
    pytest.skip(f"no {program} on this machine (make deps)")


@pytest.fixture
def prometheus(plant, started, tmp_path):
    jobs = {"waap": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "honor_labels": True}}
    program = find_program("prometheus", need_version())
    (tmp_path / "prometheus").mkdir()
    server = started(Prometheus(program, tmp_path / "prometheus", plant[0].port, jobs))
    wait_until(lambda: server.query("fps"), what="fps in prometheus")
    return server


def test_a_load_step_is_answered_and_a_lost_prometheus_is_safe(
    plant, prometheus, write, control
):
    daemon, simulated = plant
    config = write(
        loop(query='avg(fps{plugin="sim"})', dwell="1s", safe=240),
        prometheus={"url": prometheus.url, "timeout": "2s"},
        exporter={"url": daemon.url},
    )
    program = control(config)
    wait_until(lambda: value(program, "waap_control_measure", loop="fps") == 15)
    assert simulated.lines == 720

    simulated.load = 2
    wait_until(lambda: in_band(simulated), what="fps back on target")
    assert simulated.lines < 720
    wait_until(lambda: value(program, "waap_control_hold", loop="fps") == 0, what="in band")
    assert value(program, "waap_control_actions_total", loop="fps", reason="below") >= 2
    line = program.wait_log("turns res of sim from 720 to 600: below: measure 7.5, wanted 15")
    assert "query avg(fps" in line

    prometheus.stop()
    program.wait_log("holds: failed: POST http://")
    wait_until(lambda: value(program, "waap_control_safe", loop="fps") == 1, what="safe")
    wait_until(lambda: simulated.lines == 240, what="the safe value")
    assert value(program, "waap_control_measure", loop="fps") is None
    wait_until(lambda: knob(daemon)["applied"] == 240, what="the plugin's word for it")
    # The round that turned the knob held nothing; those that come do.
    wait_until(lambda: value(program, "waap_control_hold", loop="fps") == 1, what="a hold")


QUERIES = {
    "fps{": "failed: POST http://[^ ]*/api/v1/query: HTTP 400: bad_data: ",
    "nosuchseries": "empty: the query returned nothing",
    "up or fps": "several: the query returned 2 series instead of one",
    "max(fps) * NaN": "nan: the query returned NaN",
    "max(fps) / 0": "nan: the query returned an infinite number",
    "'text'": "failed: the query returned a string instead of a number",
    "fps[1m]": "failed: the query returned a matrix instead of a number",
    "scalar(max(fps))": "in_band, measure 15, knob at 720",
}


def test_what_is_a_measure(plant, prometheus, write, run_waap):
    daemon, simulated = plant
    peers = {"prometheus": {"url": prometheus.url}, "exporter": {"url": daemon.url}}
    for query, words in QUERIES.items():
        done = run_waap("control", "--once", write(loop(query=query), **peers))
        assert re.match(f"fps: {words}".replace(": ", "[^:]*: ", 2), done.stdout), done.stdout
        assert done.returncode == (0 if "measure 15" in words else 1), query
    old = loop(age_query="vector(61)", query="max(fps)")
    done = run_waap("control", "--once", write(old, **peers))
    assert "stale" in done.stdout and "the measure is 61.0 s old" in done.stdout
    # Of a plain series the age is asked for without being told.
    done = run_waap("control", "--once", write(loop(stale_after="0s"), **peers))
    assert "fps: stale" in done.stdout
    assert simulated.lines == 720


# ---- by the exporter itself ----


def direct(daemon, *loops):
    loops = [{**item, "source": "exporter"} for item in loops or [loop()]]
    return (*loops,), {"exporter": {"url": daemon.url}}


def test_a_fast_loop_without_prometheus(plant, write, control, tmp_path):
    daemon, simulated = plant
    loops, peers = direct(daemon)
    state = tmp_path / "state.json"
    program = control(write(*loops, **peers), f"--state-file={state}")
    simulated.load = 2
    wait_until(lambda: in_band(simulated), what="fps back on target")
    wait_until(lambda: value(program, "waap_control_knob", loop="fps") == simulated.lines)
    assert simulated.lines == 360
    wait_until(lambda: state.exists() and '"position":360' in state.read_text())
    program.stop()

    # Nothing is felt of a restart.
    program = control(write(*loops, **peers), f"--state-file={state}")
    wait_until(lambda: value(program, "waap_control_holds_total", reason="in_band") > 2)
    assert value(program, "waap_control_actions_total", reason="above") == 0
    assert value(program, "waap_control_actions_total", reason="below") == 0
    assert simulated.lines == 360


def test_no_round_begins_while_it_stops(write, control):
    """A client in the midst of a request holds it up for longer than an interval."""
    exporter = {"url": "http://127.0.0.1:1"}
    program = control(write(loop(source="exporter", interval="100ms"), exporter=exporter))
    with socket.create_connection(("127.0.0.1", program.port)) as client:
        client.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: waap\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        client.sendall(b"POST /-/pause HTTP/1.1\r\nHost: waap\r\nContent-Length: 9\r\n\r\n1")
        program.wait_log("no_knob")
        program.stop()
    assert program.process.returncode == 0


def test_hands_off(plant, write, control, tmp_path):
    """By a request, by a file, and after somebody has turned the knob."""
    daemon, simulated = plant
    loops, peers = direct(daemon)
    pause = tmp_path / "pause"
    pause.touch()
    program = control(write(*loops, **peers), f"--pause-file={pause}")
    simulated.load = 2
    program.wait_log("fps: holds: paused")
    assert value(program, "waap_control_paused") == 1
    assert program.get("/-/pause", method="POST").text == "paused\n"
    pause.unlink()
    wait_until(lambda: value(program, "waap_control_holds_total", reason="paused") > 4)
    assert simulated.lines == 720
    assert program.get("/-/resume", method="POST").text == "resumed\n"
    wait_until(lambda: in_band(simulated))
    turn(daemon, 960)
    program.wait_log("holds: manual: somebody else has turned res")
    wait_until(lambda: in_band(simulated))


def test_a_plugin_that_does_not_answer(plant, write, control):
    daemon, simulated = plant
    loops, peers = direct(daemon, loop(ack_timeout="200ms"))
    program = control(write(*loops, **peers))
    simulated.deaf = True
    simulated.load = 2
    program.wait_log("fps: sim did not apply the value within 0.2 s")
    program.wait_log("fps: holds: unconfirmed: sim has not applied the requested value")
    assert value(program, "waap_control_unconfirmed_total", loop="fps") == 1
    # One request, not one more with every round; repeated until it is answered.
    assert knob(daemon)["requested"] == 600
    simulated.deaf = False
    wait_until(lambda: in_band(simulated), what="fps back on target")


def test_a_plugin_that_goes(waap, started, write, control, tmp_path):
    path = tmp_path / "push.sock"
    daemon = waap(f"--push.socket={path}")
    loops, peers = direct(daemon)
    program = control(write(*loops, **peers))
    program.wait_log("holds: no_knob: ")
    assert value(program, "waap_control_measure", loop="fps") is None
    simulated = started(Simulated(path))
    program.wait_log("fps: goes on: in_band")
    simulated.load = 3
    wait_until(lambda: simulated.lines < 720)


def test_bounds_hold_on_both_sides(plant, write, control):
    """The loop may go further than the plugin: no value outside of what that has declared is sent."""
    daemon, simulated = plant
    loops, peers = direct(daemon, loop(min=0, max=5000, safe=None, failures=None))
    program = control(write(*loops, **peers))
    simulated.load = 100
    wait_until(lambda: value(program, "waap_control_saturated", loop="fps") == 1)
    assert simulated.lines == 240
    assert value(program, "waap_control_holds_total", loop="fps", reason="refused") == 0


def test_table_of_a_sweep(plant, write, control, tmp_path):
    daemon, simulated = plant
    sweep = [
        {"knobs": {"res": lines}, "measures": {"fps": 15 * 720 / lines}}
        for lines in (240, 360, 480, 720, 1080)
    ]
    (tmp_path / "summary.json").write_text(json.dumps({"sweep": sweep}))
    table = {"file": "summary.json", "measure": "fps"}
    loops, peers = direct(daemon, loop(law="table", table=table, direction=None))
    program = control(write(*loops, **peers))
    simulated.load = 2
    wait_until(lambda: in_band(simulated))
    # At once, not step by step.
    program.wait_log("turns res of sim from 720 to 360: below")


def test_a_target_out_of_reach_is_told_once(plant, write, control, tmp_path):
    daemon, simulated = plant
    sweep = [{"knobs": {"res": lines}, "measures": {"fps": 15 * 720 / lines}} for lines in (480, 720)]
    (tmp_path / "summary.json").write_text(json.dumps({"sweep": sweep}))
    table = {"file": "summary.json", "measure": "fps"}
    loops, peers = direct(daemon, loop(law="table", table=table, direction=None, step=None))
    program = control(write(*loops, **peers))
    simulated.load = 3
    program.wait_log("turns res of sim from 720 to 480: below")
    program.wait_log("no entry of the table is better, res of sim stays at 480: measure 7.5, wanted 15, off by -7.5")
    rounds = value(program, "waap_control_holds_total", reason="settled")
    wait_until(lambda: value(program, "waap_control_holds_total", reason="settled") > rounds + 3)
    assert program.output().count("no entry of the table") == 1


def test_a_bound_that_is_in_the_way_is_told(plant, write, control):
    daemon, simulated = plant
    simulated.load = 6
    loops, peers = direct(daemon, loop(max_step=840))
    program = control(write(*loops, **peers))
    program.wait_log("the knob is at its bound, res of sim stays at 240: measure 7.5, wanted 15, off by -7.5")


# ---- the command ----


def test_dry_run_turns_nothing(plant, write, control):
    daemon, simulated = plant
    loops, peers = direct(daemon)
    simulated.load = 2
    program = control(write(*loops, **peers), "--dry-run")
    program.wait_log("fps: would turn res of sim from 720 to 600: below")
    assert knob(daemon)["requested"] is None
    assert simulated.lines == 720


def test_check(write, run_waap, source_root):
    good = write(loop(source="exporter"), exporter={"url": "http://127.0.0.1:1"})
    done = run_waap("control", "--check", good)
    assert (done.returncode, done.stderr) == (0, "")
    bad = write(loop(source="exporter"), loop(setpoint="x"), exporter={"url": "http://127.0.0.1:1"})
    done = run_waap("control", "--check", bad)
    assert done.returncode == 2
    assert re.search(r"control.yaml:\d+:\d+: loops\[1\].setpoint: expected a number", done.stderr)
    assert "the loop fps turns the same knob, res of sim" in done.stderr
    assert run_waap("control", "--check", source_root / "deploy/control.yaml").returncode == 0
    assert run_waap("control", "--check", "/nonexistent.yaml").returncode == 2
    assert "expected one configuration file, got 0 (see waap control --help)" in run_waap("control").stderr
    assert run_waap("control").returncode == 2
    assert "CONFIG" in run_waap("control", "--help").stdout


def test_metrics_are_clean_and_explained(plant, write, control, source_root):
    loops, peers = direct(plant[0])
    program = control(write(*loops, **peers))
    wait_until(lambda: value(program, "waap_control_measure", loop="fps"))
    page = program.get("/metrics").body
    code, said = promtool(need_version("promtool"), "check", "metrics", page=page)
    assert code == 0, said
    assert program.metrics(openmetrics=True)
    chapter = (source_root / "placement/README.md").read_text()
    section = chapter.split("\n## Turning knobs by what is measured\n")[1].split("\n## ")[0]
    explained = re.findall(r"`(?:waap_control)?(_[a-z_]+)[`{]", section)
    exported = re.findall(r"^# TYPE waap_control(_[a-z_]+) ", page.decode(), re.M)
    assert set(exported) == set(explained)


def test_an_exporter_behind_tls_and_a_password(
    waap_binary, started, authority, write, run_waap, tmp_path
):
    crt, key = authority.sign("server")
    own_crt, own_key = authority.sign("control")
    web = tmp_path / "web.yaml"
    web.write_text(
        f"tls_server_config: {{cert_file: {crt}, key_file: {key}, client_ca_file: {authority.crt}, "
        "client_auth_type: RequireAndVerifyClientCert}\n"
        f"basic_auth_users: {{alice: '{QUICK_SECRET}'}}\n"
    )
    path = tmp_path / "push.sock"
    flags = (f"--push.socket={path}", f"--web.config.file={web}", "--push.user=alice")
    daemon = started(Waap(waap_binary, *flags))
    started(Simulated(path))
    (tmp_path / "password").write_text("secret\n")
    (tmp_path / "wrong").write_text("guess\n")
    url = daemon.url.replace("http:", "https:")

    def once(word, tls):
        login = {"username": "alice", "password_file": word}
        endpoint = {"url": url, "basic_auth": login, "tls": tls}
        return run_waap("control", "--once", write(loop(source="exporter"), exporter=endpoint))

    own = {"cert_file": str(own_crt), "key_file": str(own_key)}
    trusted = {"ca_file": str(authority.crt), **own}
    wait_until(lambda: "knob at 720" in once("password", trusted).stdout)
    assert "HTTP 401" in once("wrong", trusted).stdout
    assert "certificate" in once("password", own).stdout
    assert "knob at 720" in once("password", {"insecure_skip_verify": True, **own}).stdout
    # Without a certificate of its own it is turned away.
    assert "fps: no_knob: GET https://" in once("password", {"ca_file": str(authority.crt)}).stdout


# ---- messages ----


def picked_up(directory):
    """What wes-metrics-agent would publish: every file two folders down that has no dot in front."""
    messages = []
    for path in directory.glob("*/*"):
        if not path.name.startswith("."):
            messages.append(json.loads(path.read_text()))
            path.unlink()
    return messages


def test_waggle_messages(waap, write, control, tmp_path):
    daemon = waap("--demo")
    directory = tmp_path / "metrics"
    directory.mkdir()
    waggle = {"directory": str(directory), "interval": "300ms"}
    program = control(write(exporter={"url": daemon.url}, waggle=waggle))
    seen = {}

    def all_seen():
        for message in picked_up(directory):
            assert set(message) == {"name", "ts", "meta", "val"}
            assert isinstance(message["ts"], int) and message["ts"] > 946706400000000000
            assert all(isinstance(text, str) for text in message["meta"].values())
            seen[message["name"], message["meta"]["task"]] = message["val"]
        return len(seen) >= 5

    wait_until(all_seen, what="messages")
    names = ("sys.plugin.perf.cpu", "sys.plugin.perf.mem")
    tasks = ("object-detector", "uploader")
    assert set(seen) == {(name, task) for name in names for task in tasks} | {
        ("sys.plugin.perf.gpu", "object-detector")
    }
    assert 0 < seen["sys.plugin.perf.cpu", "object-detector"] < 600
    assert seen["sys.plugin.perf.mem", "object-detector"] > 1e8
    assert 0 <= seen["sys.plugin.perf.gpu", "object-detector"] <= 100

    # A lost exporter is said.
    daemon.stop()
    program.wait_log("control: waggle: GET http://")
