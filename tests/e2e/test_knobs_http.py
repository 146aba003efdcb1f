"""Knobs of plugins that speak HTTP only: declared and confirmed by pushes, turned while the plugin waits."""

import contextlib
import json
import select
import socket
import threading
import time

import pytest

from plugin import Plugin
from running import own_address
from waiting import wait_until

ALONE = ("--collector.disable-defaults", "--collector.push")
RES = {"plugin": "cars", "param": "res", "type": "int", "default": 720, "min": 240, "max": 1080}
KNOBS = "/api/v1/plugins/cars/params"


@pytest.fixture
def daemon(waap, tmp_path):
    instance = waap(*ALONE, f"--push.socket={tmp_path / 'push.sock'}", "--web.listen-address=127.0.0.1:0")
    instance.wait_log("push: listening on")
    return instance


def push(daemon, *objects):
    answer = daemon.get("/api/v1/push", method="POST", body=json.dumps(objects).encode())
    return answer.status, json.loads(answer.text)


def knobs(daemon, query=""):
    answer = daemon.get(KNOBS + query)
    assert answer.status == 200, answer.text
    return json.loads(answer.text)["data"]


def turn(daemon, value, param="res"):
    body = json.dumps({"value": value}).encode()
    return daemon.get(f"{KNOBS}/{param}", method="PUT", body=body).status


def shown(daemon, name, param="res"):
    return {labels: value for (metric, labels), value in daemon.metrics().items()
            if metric == name and ("param", param) in labels}


def test_a_plugin_without_a_socket(daemon):
    """The loop of a plugin: declare, wait, apply, confirm."""
    assert push(daemon, RES, {"plugin": "cars", "metric": "fps", "type": "gauge", "set": 20}) == (
        200, {"status": "success", "data": {"applied": 1}})
    first = knobs(daemon)
    assert not first["params"][0]["connected"]
    assert [knob["param"] for knob in first["params"]] == ["res"] and first["params"][0]["applied"] == 720
    seen = []
    waiting = threading.Thread(target=lambda: seen.append(knobs(daemon, f"?wait=30s&version={first['version']}")))
    waiting.start()
    time.sleep(0.3)
    assert waiting.is_alive()
    assert turn(daemon, 480) == 200
    waiting.join(10)
    (second,) = seen
    assert second["version"] > first["version"] and second["params"][0]["requested"] == 480
    assert push(daemon, {"plugin": "cars", "param": "res", "applied": 480})[0] == 200
    assert list(shown(daemon, "plugin_param").values()) == [480]
    assert list(shown(daemon, "plugin_param_requested").values()) == [480]
    assert knobs(daemon)["params"][0]["connected"]
    # What changed since the last look is there at once; the same confirmed again is no change.
    changed = knobs(daemon)["version"]
    assert push(daemon, {"plugin": "cars", "param": "res", "applied": 480})[0] == 200
    assert knobs(daemon)["version"] == changed
    assert knobs(daemon, f"?wait=30s&version={second['version']}")["params"][0]["applied"] == 480


def test_a_wait_ends_in_time(daemon):
    push(daemon, RES)
    version = knobs(daemon)["version"]
    begin = time.monotonic()
    assert knobs(daemon, f"?version={version}&wait=300ms")["version"] == version
    assert time.monotonic() - begin >= 0.3


def test_a_namesake_does_not_end_a_wait(daemon):
    push(daemon, RES)
    version = knobs(daemon)["version"]
    seen = []
    waiting = threading.Thread(target=lambda: seen.append(daemon.get(f"{KNOBS}?version={version}&wait=500ms")))
    waiting.start()
    time.sleep(0.2)
    push(daemon, {"hello": {"plugin": "cars", "job": "b"}}, {"param": "res", "type": "int", "default": 1})
    waiting.join(10)
    assert seen[0].status == 200 and json.loads(seen[0].text)["data"]["version"] == version, seen[0].text


def test_a_plugin_that_has_declared_nothing_yet(daemon):
    push(daemon, {"plugin": "cars", "metric": "fps", "type": "gauge", "set": 20})
    assert knobs(daemon) == {"version": 0, "params": []}
    seen = []
    waiting = threading.Thread(target=lambda: seen.append(knobs(daemon, "?wait=30s&version=0")))
    waiting.start()
    time.sleep(0.2)
    push(daemon, RES)
    waiting.join(10)
    assert seen[0]["params"][0]["param"] == "res"


def test_a_request_waits_for_the_declaration(daemon):
    """What was turned while the plugin was away is there when it declares the knob again."""
    push(daemon, RES)
    assert turn(daemon, 480) == 200
    push(daemon, RES)
    (knob,) = knobs(daemon)["params"]
    assert (knob["requested"], knob["applied"]) == (480, 720)


def test_knobs_of_several_requests_add_up(daemon):
    push(daemon, RES)
    push(daemon, {"plugin": "cars", "param": "mode", "type": "enum", "values": ["day", "night"], "default": "day"})
    assert [knob["param"] for knob in knobs(daemon)["params"]] == ["mode", "res"]


def test_one_plugin(daemon):
    push(daemon, RES, {"metric": "fps", "type": "gauge", "set": 20})
    push(daemon, {"plugin": "other", "metric": "fps", "type": "gauge", "set": 20})
    answer = json.loads(daemon.get("/api/v1/plugins/cars").text)["data"]
    assert answer["plugin"] == "cars" and answer["params"][0]["param"] == "res" and answer["series"] == 1
    (listed,) = [one for one in json.loads(daemon.get("/api/v1/plugins").text)["data"] if one["plugin"] == "cars"]
    assert {**listed, "seen_at": 0} == {**answer, "seen_at": 0}


def test_several_of_one_name(daemon):
    for job in ("a", "b"):
        push(daemon, {"hello": {"plugin": "cars", "job": job}}, {"param": "res", "type": "int", "default": 1})
    for path in ("/api/v1/plugins/cars", KNOBS):
        answer = daemon.get(path)
        assert answer.status == 409 and "choose one by ?job=a or ?job=b" in answer.text
    assert json.loads(daemon.get("/api/v1/plugins/cars?job=b").text)["data"]["labels"]["job"] == "b"
    assert knobs(daemon, "?job=a&wait=0s")["params"]


def test_the_choice_among_many_is_short(daemon):
    """Anybody may ask, and a peer may have thousands of plugins of one name."""
    labels = {f"l{i:02}" + "x" * 100: "v" for i in range(20)}
    for i in range(60):
        push(daemon, {"hello": {"plugin": "cars", "job": str(i), "labels": {} if i else labels}},
             {"metric": "fps", "type": "gauge", "set": 1})
    answer = daemon.get("/api/v1/plugins/cars")
    assert answer.status == 409 and answer.text.count("job=") == 16 and "or …" in answer.text, answer.text


@pytest.mark.parametrize("objects, status, error", [
    ([{**RES, "min": 2000}], 400, "res"),
    ([{"plugin": "cars", "param": "res", "applied": 5}], 404, "no such param was declared"),
    ([{"group": {"job": "a"}, "metric": "m", "type": "gauge", "set": 1}, {"param": "res", "type": "int", "default": 1}],
     400, "a group has no knobs"),
])
def test_what_is_rejected(daemon, objects, status, error):
    code, answer = push(daemon, {"plugin": "cars", "metric": "fps", "type": "gauge", "set": 1}, *objects)
    assert code == status and error in answer["error"], answer
    assert answer["index"] == 1 + len(objects) and "fps" not in daemon.get("/metrics").text


def test_metrics_that_are_rejected_reject_knobs(daemon):
    """All of a body is applied, or nothing."""
    fps = {"plugin": "cars", "metric": "fps", "type": "gauge", "set": 1}
    push(daemon, fps)
    before = knobs(daemon)
    assert push(daemon, RES, {"plugin": "cars", "metric": "fps", "type": "counter", "inc": 1})[0] == 409
    assert knobs(daemon) == before
    push(daemon, RES)
    code, answer = push(daemon, {"plugin": "cars", "param": "res", "applied": 480},
                        {"plugin": "cars", "metric": "fps", "type": "counter", "inc": 1})
    assert code == 409 and answer["index"] == 2 and answer["metric"] == "fps"
    assert knobs(daemon)["params"][0]["applied"] == 720
    assert [push(daemon, RES, *n * [fps])[0] for n in (2000, 2001)] == [200, 413]


def test_knobs_count_for_the_rate(waap):
    """As their lines do on the socket."""
    daemon = waap(*ALONE, "--push.socket=", "--push.max-line-rate=10")
    assert push(daemon, *50 * [RES])[0] == 200
    assert push(daemon, RES)[0] == 429


def test_many_at_once(daemon):
    """One body cannot hold the loop: each declaration looks through all plugins with knobs."""
    def timed(*objects):
        begin = time.monotonic()
        status, _ = push(daemon, *objects)
        return status, time.monotonic() - begin

    names = [f"p{i:05}" for i in range(5000)]
    n = 0
    while n < len(names) and push(daemon, *({**RES, "plugin": name} for name in names[n:n + 99]))[0] == 200:
        n += 99
    assert n >= 4000
    status, seconds = timed(*20000 * [{**RES, "plugin": names[n - 99]}])
    assert status == 413 and seconds < 1
    assert push(daemon, *100 * [RES])[0] == 200


def waiting_for(daemon, duration):
    connection = socket.create_connection(("127.0.0.1", daemon.port), 10)
    connection.sendall(f"GET {KNOBS}?wait={duration} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


def test_who_has_left_keeps_nobody_from_waiting(daemon):
    """One that fails again and again leaves requests behind, which the daemon cannot see."""
    push(daemon, RES)
    for _ in range(40):
        waiting_for(daemon, "60s").close()
    with waiting_for(daemon, "60s") as waiting:
        assert not select.select([waiting], [], [], 0.5)[0]
        assert turn(daemon, 480) == 200
        answer = waiting.recv(4096)
        assert b" 200 " in answer and b'"requested":480' in answer, answer


def test_waiting_requests_take_no_place_of_others(daemon):
    push(daemon, RES)
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(waiting_for(daemon, "30s")) for _ in range(40)]
        wait_until(lambda: len(select.select(waiting, [], [], 0)[0]) == 16)
        deleted = daemon.get("/api/v1/series?match[]=nosuch", method="DELETE")
        assert deleted.status == 200, deleted.text


@pytest.mark.parametrize("query, error", [("?wait=2h", "wait"), ("?wait=soon", "duration"), ("?version=x", "version")])
def test_bad_parameters(daemon, query, error):
    push(daemon, RES)
    answer = daemon.get(KNOBS + query)
    assert answer.status == 400 and error in json.loads(answer.text)["error"], answer.text


def test_a_plugin_on_the_socket_is_not_spoken_for(daemon, tmp_path):
    """Rights are those of pushes: a name that a verified peer holds is not HTTP's."""
    with Plugin(tmp_path / "push.sock", {"plugin": "cars"}) as plugin:
        plugin.tell({key: RES[key] for key in RES if key != "plugin"})
        code, answer = push(daemon, {**RES, "default": 240})
        assert code == 403, answer
        assert knobs(daemon)["params"][0]["applied"] == 720


def test_a_plugin_that_was_on_the_socket_is_not_spoken_for(daemon, tmp_path):
    """Nor while it is away: its knobs are its own as long as its series would be."""
    with Plugin(tmp_path / "push.sock", {"plugin": "cars"}) as plugin:
        plugin.tell({key: RES[key] for key in RES if key != "plugin"})
    wait_until(lambda: json.loads(daemon.get("/api/v1/plugins").text)["data"][0]["connections"] == 0)
    code, answer = push(daemon, {**RES, "default": 240}, {"plugin": "cars", "param": "res", "applied": 240})
    assert code == 403, answer
    assert knobs(daemon)["params"][0]["applied"] == 720


def test_strangers_declare_nothing(waap):
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    stranger = waap(*ALONE, f"--web.listen-address={address}:0", "--push.socket=")
    assert push(stranger, RES)[0] == 403
    assert stranger.get(KNOBS).status == 404


def test_the_end_of_the_daemon_ends_a_wait(daemon):
    push(daemon, RES)
    codes = []
    waiting = threading.Thread(target=lambda: codes.append(daemon.get(KNOBS + "?wait=30s").status))
    waiting.start()
    wait_until(lambda: "waap_http" in daemon.get("/metrics").text)
    time.sleep(0.2)
    code, seconds = daemon.stop()
    waiting.join(10)
    assert code == 0 and codes == [503] and seconds < 5
