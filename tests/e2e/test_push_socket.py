"""The plugin channel: lines of JSON over a Unix socket."""

import contextlib
import json
import math
import os
import pathlib
import pytest
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

from peers import Prometheus, need_program
from plugin import Plugin
from running import Waap
from waiting import LIMIT, pace, wait_idle, wait_until

ALONE = ("--collector.disable-defaults", "--collector.push")
CONTAINER = "0123456789abcdef" * 4


@pytest.fixture
def path(tmp_path):
    return tmp_path / "push.sock"


@pytest.fixture
def daemon(waap, path):
    def start(*flags):
        instance = waap(*ALONE, f"--push.socket={path}", *flags)
        instance.wait_log("push: listening on")
        return instance

    return start


def series(daemon, name):
    """{frozenset of labels: value} of one name."""
    return {labels: value for (n, labels), value in daemon.metrics().items() if n == name}


def value(daemon, name, **labels):
    return series(daemon, name)[frozenset(labels.items())]


# ---- frames ----

FRAMES = (
    b'{"hello": {"plugin": "p", "start": "s"}}\n'
    b'{"metric": "n_total", "type": "counter", "inc": 1, "labels": {"a": "\\u00e9\xc3\xa9"}}\n\n'
    b'\r\n{"metric": "n_total", "inc": 2.5, "labels": {"a": "\xc3\xa9\\u00e9"}}\r\n'
    b'{"metric": "h", "type": "histogram", "observe": [1, 3], "buckets": [2]}\n'
    b'{"seq": 7}\n'
)


def check_frames(daemon, times):
    assert value(daemon, "n_total", plugin="p", a="éé") == 3.5 * times
    assert value(daemon, "h_count", plugin="p") == 2 * times
    assert value(daemon, "h_bucket", plugin="p", le="2.0") == times
    assert value(daemon, "h_sum", plugin="p") == 4 * times


def test_frames_split_at_every_byte(daemon, path):
    waap = daemon()
    for cut in range(1, len(FRAMES)):
        with Plugin(path) as plugin:
            plugin.send(FRAMES[:cut])
            pace(0.0005)
            plugin.send(FRAMES[cut:])
            assert plugin.hear() == {"ack": 7}
    check_frames(waap, len(FRAMES) - 1)


def test_frames_byte_by_byte(daemon, path):
    waap = daemon()
    with Plugin(path) as plugin:
        for i in range(len(FRAMES)):
            plugin.send(FRAMES[i : i + 1])
        assert plugin.hear() == {"ack": 7}
    check_frames(waap, 1)


def test_frames_glued(daemon, path):
    waap = daemon()
    with Plugin(path) as plugin:
        thread = threading.Thread(target=plugin.send, args=(FRAMES * 3000,))
        thread.start()
        for _ in range(3000):
            assert plugin.hear() == {"ack": 7}
        thread.join()
    check_frames(waap, 3000)


def test_frames_of_the_predecessor(daemon, path):
    """As SageAppMetricsServer sends them: no hello, an empty line at the end, never reads."""
    waap = daemon()
    factorial = json.dumps({"x": {"value": math.factorial(999), "timestamp": time.time()}})
    with Plugin(path) as plugin:
        for fps in (28.5, 29.7):
            frame = json.dumps({"fps": {"value": fps, "timestamp": time.time()}})
            plugin.send(frame.encode() + b"\n\n" + factorial.encode() + b"\n\n")
        heard = plugin.settle()
    assert len(heard) == 2 and "too large" in heard[0]["error"] and heard[0]["metric"] == "x"
    [(labels, fps)] = series(waap, "fps").items()
    assert fps == 29.7
    assert [name for name, _ in labels] == ["plugin"]
    assert series(waap, "x") == {}


@pytest.mark.parametrize("old_first", [True, False])
def test_the_predecessor_beside_a_rate(daemon, path, old_first):
    """Old applications and new plugins count frames under one name."""
    waap = daemon()
    with Plugin(path) as old, Plugin(path, {"plugin": "new"}) as new:
        turns = [lambda: old.tell({"fps": {"value": 29.7, "timestamp": time.time()}}),
                 lambda: new.tell({"metric": "fps", "type": "rate", "inc": 30})]
        for turn in turns if old_first else turns[::-1]:
            turn()
        wait_until(lambda: len(series(waap, "fps")) == 2, what="the mean")
    assert value(waap, "fps_total", plugin="new") == 30
    assert 29.7 in series(waap, "fps").values()


def test_what_is_wrong_is_said_and_the_rest_goes_on(daemon, path):
    waap = daemon()
    with Plugin(path, {"plugin": "p"}) as plugin:
        rows = [
            (b'{"metric": "a", "type": "gauge", "set": NaN}', "JSON has no NaN", "a"),
            (b'{"metric": "a", "type": "gauge", "set": 1', "got the end", "a"),
            (b'{"metric": "\xff", "set": 1}', "invalid UTF-8", None),
            (b'{"metric": "a\x00", "set": 1}', "control character 0x00", None),
            (b'{"metric": "a", "set": 1, "set": 2}', "duplicate key set", "a"),
            (b'{"metric": "a", "set": 1}', "must say the type", "a"),
            (b'{"metric": "a-b", "type": "gauge", "set": 1}', "not the name of a metric", "a-b"),
            (b'{"metric": "a", "type": "gauge", "set": 1, "labels": {"__name__": "b"}}', "reserved", "a"),
            (b'{"metric": "a", "type": "gauge", "set": 1, "labels": {"node": "b"}}', "reserved", "a"),
            (b'{"metric": "a", "type": "gauge", "set": 1, "labels": {"plugin": "b"}}', "already", "a"),
            (b'{"metric": "a", "type": "gauge", "set": 1, "labels": {"pod": "b"}}', "where a plugin runs", "a"),
            (b'{"metric": "a", "type": "gauge", "set": 1, "labels": {"b": "1", "b": "2"}}', "duplicate label", "a"),
            (b'{"metric": "waap_a", "type": "gauge", "set": 1}', "waap's own", "waap_a"),
            (b'{"metric": "plugin_param", "type": "gauge", "set": 1}', "waap's own", "plugin_param"),
            (b'{"metric": "c_total", "type": "counter", "total": 1}', "needs a start", "c_total"),
            (b"[" * 100000, "line is longer", None),
            (b'{"metric": "a", "type": "gauge", "set": 1}{}', "unexpected text after the object", "a"),
            (b'{"plugin": "q", "metric": "a", "type": "gauge", "set": 1}', "in a hello", "a"),
            (b'{"param": "p", "applied": 1}', "no such param", None),
        ]
        for number, (line, text, metric) in enumerate(rows):
            plugin.send(line + b"\n")
            heard = plugin.hear()
            assert text in heard["error"]
            assert heard.get("metric") == metric
            assert heard["line"] == number + 2
        plugin.tell({"metric": "b", "type": "gauge", "set": 1e308})
        plugin.tell({"metric": "b", "set": "+Inf"})
    assert series(waap, "a") == {}
    assert value(waap, "b", plugin="p") == math.inf
    refused = {dict(k)["reason"]: v for k, v in series(waap, "waap_push_refused_total").items()}
    assert sum(refused.values()) == len(rows)
    assert (refused["unreadable"], refused["reserved"], refused["limit"]) == (7, 2, 1)


def test_refusals_are_logged_without_a_flood(daemon, path):
    waap = daemon()
    uid = os.getuid()
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.send(b'{"metric": "waap_a", "type": "gauge", "set": 1}\n')
        plugin.hear()
        for _ in range(20):
            plugin.send(b'{"metric": "a\\u001b[2J\\n", "type": "gauge", "set": 1}\n' * 100)
        plugin.settle()
    with Plugin(path) as plugin:
        plugin.send(b"garbage\n")
        plugin.hear()
    for i in range(30):
        with Plugin(path, {"plugin": f"p{i}"}) as plugin:
            plugin.send(b"{}}\n")
            plugin.hear()
    own = "waap_a: is a metric of waap's own"
    assert f"push: plugin p of uid {uid}: refused (reserved): {own}" in waap.wait_log("reserved")
    assert "a\\u001b[2J\\u000a" in waap.wait_log(f"push: plugin p of uid {uid}: refused (invalid): ")
    assert f" of uid {uid}: refused (unreadable): " in waap.wait_log("push: process ")
    assert waap.stop()[0] == 0
    lines = [line for line in waap.output().split("\n") if "level=warn" in line]
    assert len(lines) == 18 and "\x1b" not in waap.output()
    assert f"push: plugin p of uid {uid}: refused (invalid): and 1999 more" in lines[-2]
    assert "push: others: refused: and 17 more" in lines[-1]


def test_an_answer_comes_after_what_came_before(daemon, path):
    daemon()
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.say({"metric": "a", "type": "gauge", "set": 1, "seq": 1}, {"metric": "b", "seq": 2})
        assert plugin.hear() == {"ack": 1}
        assert "error" in plugin.hear()
        assert plugin.hear() == {"ack": 2}


def test_a_quiet_parent_of_many_children_counts_once(daemon, path):
    """Each process counts for itself; nobody's count may be forgotten while it is connected."""
    waap = daemon()

    def total(start, n):
        return {"hello": {"plugin": "p", "start": start}}, {"metric": "n_total", "type": "counter", "total": n}

    with Plugin(path) as parent:
        parent.tell(*total("parent", 1000))
        for i in range(200):
            with Plugin(path) as child:
                child.tell(*total(f"child {i}", 1))
        parent.tell({"metric": "n_total", "total": 1001})
        assert value(waap, "n_total", plugin="p") == 1201


def test_totals_continue_after_a_reconnect(daemon, path):
    waap = daemon()
    metric = {"metric": "n_total", "type": "counter"}
    for total in (5, 7, 7):
        with Plugin(path, {"plugin": "p", "start": "one"}) as plugin:
            plugin.tell({**metric, "total": total})
    assert value(waap, "n_total", plugin="p") == 7
    with Plugin(path, {"plugin": "p", "start": "two"}) as plugin:
        plugin.tell({**metric, "total": 3})
    assert value(waap, "n_total", plugin="p") == 10


def test_half_a_connection_is_answered(daemon, path):
    waap = daemon()
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.send(b'{"metric": "a", "type": "gauge", "set": 4, "seq": 1}')  # and no newline
        plugin.socket.shutdown(socket.SHUT_WR)
        assert plugin.hear() == {"ack": 1}
        assert plugin.hear() is None
    assert value(waap, "a", plugin="p") == 4
    wait_until(lambda: value(waap, "waap_push_connections") == 0)


# ---- who it is ----


def test_without_hello_it_is_called_like_its_program(daemon, path, tmp_path):
    waap = daemon()
    script = tmp_path / "carcounter.py"
    script.write_text(
        "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
        's.sendall(b\'{"fps": {"value": 3}}\\n\\n{"seq": 1}\\n\')\ns.recv(99)\n'
    )
    subprocess.run([sys.executable, script, path], check=True, timeout=LIMIT)
    assert value(waap, "fps", plugin="carcounter") == 3


def test_hello_names_plugin_job_and_labels(daemon, path):
    waap = daemon()
    hello = {"plugin": "p", "job": "j", "labels": {"cam": "top"}, "pod": "fake", "version": [1]}
    with Plugin(path, hello) as plugin:
        plugin.tell({"metric": "a", "type": "gauge", "set": 1, "labels": {"x": "y"}})
    # What the kernel can tell is not for the plugin to say.
    assert value(waap, "a", plugin="p", job="j", cam="top", x="y") == 1


def container_tree(root, pid, cgroup, annotations, container=CONTAINER):
    """A /proc for one process, and what containerd keeps of its container."""
    process = root / "proc" / str(pid)
    process.mkdir(parents=True)
    (process / "cgroup").write_text(f"0::{cgroup}\n")
    (process / "cmdline").write_bytes(b"python3\0x.py\0")
    task = root / "run/containerd/io.containerd.runtime.v2.task/k8s.io" / container
    task.mkdir(parents=True)
    (task / "config.json").write_text(json.dumps({"annotations": annotations}))
    return f"--path.procfs={root / 'proc'}", f"--path.rootfs={root}"


def test_a_container_is_known_by_the_kernel(daemon, path, tmp_path):
    annotations = {
        "io.kubernetes.cri.container-name": "detector",
        "io.kubernetes.cri.sandbox-name": "cam-0",
        "io.kubernetes.cri.sandbox-namespace": "edge",
    }
    cgroup = f"/kubepods.slice/cri-containerd-{CONTAINER}.scope"
    waap = daemon(*container_tree(tmp_path, os.getpid(), cgroup, annotations))
    with Plugin(path, {"plugin": "p", "container": "liar", "pod": "liar"}) as plugin:
        plugin.tell({"metric": "a", "type": "gauge", "set": 1})
        [listed] = json.loads(waap.get("/api/v1/plugins").text)["data"]
    labels = {"plugin": "p", "container": "detector", "pod": "cam-0", "namespace": "edge"}
    assert value(waap, "a", **labels) == 1
    assert listed["labels"] == labels
    assert (listed["verified"], listed["peer"]) == (True, "container")


CONNECTOR = """
import socket, sys
parent = socket.socket(fileno=0)
parent.recv(1)
with socket.socket(socket.AF_UNIX) as plugin:
    plugin.connect(sys.argv[1])
    socket.send_fds(parent, [b"."], [plugin.fileno()])
parent.recv(1)
"""


@pytest.fixture
def contained(path, tmp_path):
    """contained(hello, id, annotations): a plugin in a container, by a process that the kernel vouches for."""
    with contextlib.ExitStack() as stack:

        def start(hello, container, annotations):
            ours, theirs = (stack.enter_context(end) for end in socket.socketpair())
            ours.settimeout(30)
            command = [sys.executable, "-c", CONNECTOR, path]
            process = stack.enter_context(subprocess.Popen(command, stdin=theirs))
            stack.callback(process.kill)
            cgroup = f"/kubepods.slice/cri-containerd-{container}.scope"
            container_tree(tmp_path, process.pid, cgroup, annotations, container)
            ours.send(b".")
            _, [fd], *_ = socket.recv_fds(ours, 1, 1)
            return stack.enter_context(Plugin(path, hello, connected=socket.socket(fileno=fd)))

        yield start


def test_a_knob_without_type_and_default(daemon, path):
    waap = daemon()

    def turn(value):
        answer = waap.get("/api/v1/plugins/p/params/res", method="PUT", body=json.dumps({"value": value}).encode())
        return answer.status, json.loads(answer.text)

    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.tell({"param": "res", "type": "any"}, {"param": "res", "applied": None})
        shown = json.loads(waap.get("/api/v1/plugins/p/params/res").text)["data"]
        assert (shown["type"], shown["default"], shown["requested"], shown["applied"]) == ("any", None, None, None)
        for asked in (480, 0.5, True, "auto", None):
            assert turn(asked)[0] == 200
            assert plugin.hear() == {"param": "res", "value": asked}
            plugin.tell({"param": "res", "applied": asked})
        assert turn([480])[0] == 400
        turn(480)
        assert plugin.hear() == {"param": "res", "value": 480}
        plugin.tell({"param": "res", "applied": 480})
        assert value(waap, "plugin_param", plugin="p", param="res") == 480
        plugin.tell({"param": "res", "type": "int", "default": 720, "min": 240, "max": 1080})
        assert turn(2000) == (400, {"status": "error", "error": "res: 2000 is above its maximum, 1080"})
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.say({"param": "res", "type": "any"})
        assert plugin.hear() == {"param": "res", "value": 480}


def test_knobs_of_two_containers_are_turned_apart(daemon, path, tmp_path, contained):
    (tmp_path / "proc").mkdir()
    waap = daemon(f"--path.procfs={tmp_path / 'proc'}", f"--path.rootfs={tmp_path}")
    plugins = {}
    for name, digit in (("left", "a"), ("right", "b")):
        plugins[name] = contained({"plugin": "p"}, 64 * digit, {"io.kubernetes.cri.container-name": name})
        plugins[name].tell({"param": "res", "type": "int", "default": 720})

    def ask(method="GET", body=None, query=""):
        answer = waap.get(f"/api/v1/plugins/p/params/res{query}", method=method, body=body)
        return answer.status, json.loads(answer.text)

    status, answer = ask("PUT", b'{"value": 480}')
    assert status == 409
    assert answer["error"].endswith("choose one by ?container=left or ?container=right")
    assert ask("PUT", b'{"value": 480}', "?container=right")[0] == 200
    assert plugins["right"].hear() == {"param": "res", "value": 480}
    plugins["right"].tell({"param": "res", "applied": 480})
    assert plugins["left"].settle() == []
    for name, requested, applied in (("left", None, 720), ("right", 480, 480)):
        shown = ask(query=f"?container={name}")[1]["data"]
        assert (shown["requested"], shown["applied"]) == (requested, applied)
        assert value(waap, "plugin_param", plugin="p", param="res", container=name) == applied
    waap.wait_log("knobs: plugin p, container right: res: from the default to 480, requested by 127.0.0.1")


def test_a_container_that_nobody_knows_has_its_id(daemon, path, tmp_path):
    flags = container_tree(tmp_path, os.getpid(), f"/docker/{CONTAINER}", {})
    waap = daemon(*flags)
    with Plugin(path) as plugin:
        plugin.tell({"metric": "a", "type": "gauge", "set": 1})
    assert value(waap, "a", plugin=CONTAINER[:12], container=CONTAINER[:12]) == 1


def test_a_busy_docker_is_waited_for(daemon, path, tmp_path, runtime):
    """It tells of a container seconds after it has started it; what the plugin says can wait."""
    waap = daemon(*container_tree(tmp_path, os.getpid(), f"/docker/{CONTAINER}", {}))
    docker = runtime(tmp_path / "run/docker.sock", [])
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.say({"metric": "a", "type": "gauge", "set": 1})
        wait_until(lambda: docker.listeners, what="the question")
        for _ in range(20):
            assert series(waap, "a") == {}
        docker.tell("start", CONTAINER, name="cam", image="cam:2")
        wait_until(lambda: series(waap, "a"), what="the series")
    assert value(waap, "a", plugin="p", container="cam") == 1


def test_a_container_takes_its_name_back(daemon, path, tmp_path):
    waap = daemon(*container_tree(tmp_path, os.getpid(), f"/docker/{CONTAINER}", {}))
    pushes = [
        {"hello": {"plugin": "p", "container": CONTAINER[:12]}},
        {"metric": "a", "type": "gauge", "set": 1},
        {"metric": "forged", "type": "gauge", "set": 1, "ttl": 0},
    ]
    body = json.dumps(pushes).encode()
    assert waap.get("/api/v1/push", method="POST", body=body).status == 200
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "a", "type": "gauge", "set": 2})
    answer = waap.get("/api/v1/push", method="POST", body=body)
    assert (answer.status, "is owned by container; you are http" in answer.text) == (403, True)
    assert value(waap, "a", plugin="p", container=CONTAINER[:12]) == 2
    assert series(waap, "forged") == {}


@pytest.mark.parametrize("unit, owner, proven", [
    ("/user.slice/user-1000.slice/user@1000.service", 1000, False),
    ("/system.slice/app.service", 65534, False),
    ("/system.slice/app.service", 0, True),
    ("/system.slice/app.service", None, False),
    ("/../app.service", None, False),
    ("/system.slice", None, True),
], ids=["user", "service", "service of root", "no cgroupfs", "namespace", "slice"])
def test_a_cgroup_is_a_container_only_if_root_made_it(daemon, path, tmp_path, unit, owner, proven):
    """systemd lets users and services (Delegate=yes) make cgroups, and call them like anybody's container."""
    if owner is not None:
        if os.getuid() != 0:
            pytest.skip("only root can give cgroups away")
        (tmp_path / f"cgroup{unit}").mkdir(parents=True)
        os.chown(tmp_path / f"cgroup{unit}", owner, owner)
    annotations = {"io.kubernetes.cri.container-name": "detector"}
    cgroup = f"{unit}/cri-containerd-{CONTAINER}.scope"
    waap = daemon(*container_tree(tmp_path, os.getpid(), cgroup, annotations), f"--path.cgroupfs={tmp_path / 'cgroup'}")
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "a", "type": "gauge", "set": 1})
        [listed] = json.loads(waap.get("/api/v1/plugins").text)["data"]
    assert listed["labels"] == {"plugin": "p", "container": "detector" if proven else CONTAINER[:12]}
    assert listed["peer"] == ("container" if proven else f"uid {os.getuid()}")


@pytest.mark.skipif(os.getuid() != 0, reason="only root may take what is another's")
def test_root_in_a_container_is_not_root_on_the_machine(daemon, path, tmp_path):
    """Not even where the daemon cannot see which container it is."""
    waap = daemon(*container_tree(tmp_path, os.getpid(), f"/docker/{CONTAINER}", {}))
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "a", "type": "gauge", "set": 1})
    (tmp_path / f"proc/{os.getpid()}/cgroup").write_text(f"0::/../app.service/docker-{CONTAINER}.scope\n")
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.say({"metric": "a", "type": "gauge", "set": 2})
        assert [item for item in plugin.settle() if "error" in item] != []
    assert value(waap, "a", plugin="p", container=CONTAINER[:12]) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="must be root to make a process namespace")
def test_the_hidden_are_believed_but_marked(started, waap_binary, path, tmp_path):
    """A daemon that does not see the processes of its plugins, like one in a container."""
    wrapper = tmp_path / "waap"
    wrapper.write_text(f'#!/bin/sh\nexec unshare --pid --fork --kill-child {waap_binary} "$@"\n')
    wrapper.chmod(0o755)
    waap = started(Waap(wrapper, *ALONE, f"--push.socket={path}"))
    waap.wait_log("push: listening on")
    with Plugin(path, {"plugin": "p", "container": "c", "pod": "o", "namespace": "n"}) as plugin:
        plugin.tell({"metric": "a", "type": "gauge", "set": 1})
        [listed] = json.loads(waap.get("/api/v1/plugins").text)["data"]
    assert value(waap, "a", plugin="p", container="c", pod="o", namespace="n") == 1
    assert (listed["verified"], listed["peer"]) == (False, "unverified")
    waap.stop(signal=signal.SIGKILL)  # ends the wrapper, which takes the daemon with it


TAKER = """
import os, socket, sys
os.setgid(65534)
os.setuid(65534)
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b'{"hello": {"plugin": "p"}}\\n{"metric": "a", "type": "gauge", "set": 66, "seq": 1}\\n')
text = b""
while b"ack" not in text:
    text += s.recv(999)
print(text.decode())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="must be root to be two users")
def test_another_user_cannot_take_over_a_plugin(daemon, path, tmp_path):
    for place in [tmp_path, *tmp_path.parents]:
        if place == pathlib.Path(tempfile.gettempdir()):
            break
        place.chmod(0o755)
    waap = daemon()
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "a", "type": "gauge", "set": 1})
    command = [sys.executable, "-c", TAKER, path]
    said = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT).stdout
    assert "plugin p is owned by uid 0; you are uid 65534" in said
    # It goes on under the name of its own program: that is nobody's.
    assert 66 not in [v for labels, v in series(waap, "a").items() if ("plugin", "p") in labels]
    # Nor can anybody on the network.
    body = b'{"plugin": "p", "metric": "a", "set": 2}'
    answer = waap.get("/api/v1/push", method="POST", body=body)
    assert answer.status == 403 and "is owned by" in answer.text
    assert value(waap, "a", plugin="p") == 1


SHOTS = """
import os, socket, sys
os.setuid(1234)
for i in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        s = socket.socket(socket.AF_UNIX)
        s.connect(sys.argv[1])
        s.sendall(b'{"hello": {"plugin": "cron"}}\\n'
                  b'{"metric": "runs", "type": "counter", "inc": 1, "seq": 1}\\n')
        if sys.argv[3] == "waits":
            s.recv(99)
        os._exit(0)
    os.waitpid(child, 0)
"""


def shoot(waap, path, n, *before, waits=False):
    """That many processes that push one increment each and end; before waap can look, unless they wait."""
    command = [*before, sys.executable, "-c", SHOTS, path.name, str(n), "waits" if waits else "ends"]
    if not waits:
        os.kill(waap.process.pid, signal.SIGSTOP)
    try:
        subprocess.run(command, check=True, timeout=LIMIT, cwd=path.parent)
    finally:
        os.kill(waap.process.pid, signal.SIGCONT)


def knows_networks():
    with socket.socket(socket.AF_UNIX) as one:
        try:
            return len(one.getsockopt(socket.SOL_SOCKET, 71, 8)) == 8  # SO_NETNS_COOKIE
        except OSError:
            return False


@pytest.mark.skipif(os.getuid() != 0, reason="must be root to be another user")
@pytest.mark.skipif(not knows_networks(), reason="the kernel is older than 5.14")
def test_processes_that_have_ended_count(daemon, path, tmp_path):
    """A shell script's one line: whether waap looks before its end is chance."""
    tmp_path.chmod(0o755)  # directories above it do not matter to this process
    waap = daemon()
    total = 0
    for waits in (False, True, False, True):
        shoot(waap, path, 5, waits=waits)
        total += 5
        wait_until(lambda: series(waap, "runs_total").get(frozenset({("plugin", "cron")})) == total)
    # A process that ended in another network, as containers have, could have been any in it.
    shoot(waap, path, 5, "unshare", "--net")
    wait_until(lambda: value(waap, "waap_push_refused_total", reason="forbidden") >= 5)
    assert value(waap, "runs_total", plugin="cron") == total


# ---- limits ----


def test_long_lines(daemon, path):
    waap = daemon("--push.max-line-size=1KiB")
    with Plugin(path, {"plugin": "p"}) as plugin:
        def metric(length):
            line = b'{"metric": "a", "type": "gauge", "set": 1, "labels": {"x": "y"}}'
            return line[:-1] + b" " * (length - len(line)) + b"}"

        plugin.send(metric(1024) + b"\n" + metric(1025) + b"\n")
        assert "line is longer than 1024 bytes" in plugin.hear()["error"]
        for _ in range(100):  # no end for a long time
            plugin.send(b"x" * 65536)
        assert "line is longer than 1024 bytes" in plugin.hear()["error"]
        plugin.send(b'\n{"metric": "b", "type": "gauge", "set": 1}\n')
        assert plugin.settle() == []
    assert value(waap, "b", plugin="p") == 1


def test_lines_that_take_several_turns(daemon, path):
    """Lines that a turn has no time for are taken on the next ones, in order."""
    waap = daemon()
    n_connections, n_lines = 4, 3000
    with contextlib.ExitStack() as stack:
        plugins = [stack.enter_context(Plugin(path)) for _ in range(n_connections)]
        for number, plugin in enumerate(plugins):
            lines = ({"hello": {"plugin": f"p{number}-{i % 2}"}} for i in range(n_lines))
            counter = b'{"metric": "n_total", "type": "counter", "inc": 1}\n'
            plugin.send(b"".join(json.dumps(line).encode() + b"\n" + counter for line in lines))
        for plugin in plugins:
            assert plugin.settle() == []
        counts = [value for (name, _), value in waap.metrics().items() if name == "n_total"]
    assert counts == [n_lines // 2] * 2 * n_connections


def test_rate_of_lines(daemon, path):
    """Lines beyond it wait, and so does their sender."""
    waap = daemon("--push.max-line-rate=100")
    with Plugin(path, {"plugin": "p"}) as plugin, Plugin(path, {"plugin": "other"}) as other:
        begin = time.monotonic()
        plugin.say(*[{"metric": "a", "type": "counter", "inc": 1}] * 250)
        other.tell({"metric": "b", "type": "gauge", "set": 1})
        so_far = value(waap, "a_total", plugin="p")
        assert so_far <= 100 * (1 + time.monotonic() - begin)
        assert plugin.settle() == []
        assert time.monotonic() - begin > 1.4
    assert value(waap, "a_total", plugin="p") == 250
    assert value(waap, "waap_push_refused_total", reason="rate") == 0


def test_rate_of_lines_on_many_connections(daemon, path):
    waap = daemon("--push.max-line-rate=100")
    with contextlib.ExitStack() as stack:
        plugins = [stack.enter_context(Plugin(path, {"plugin": "p"})) for _ in range(5)]
        begin = time.monotonic()
        waap.process.send_signal(signal.SIGSTOP)  # so that all come at once
        for i, plugin in enumerate(plugins):
            plugin.send(b'{"metric": "n", "type": "counter", "inc": 1, "labels": {"i": "%d"}}\n' % i * 90)
        waap.process.send_signal(signal.SIGCONT)
        wait_until(lambda: sum(series(waap, "n_total").values()) > 200, what="two seconds' worth")
        shares = series(waap, "n_total").values()
        assert len(shares) == 5 and min(shares) > 15  # each has its turn
        assert sum(shares) <= 100 * (1 + time.monotonic() - begin)
        for plugin in plugins:
            assert plugin.settle() == []
    assert set(series(waap, "n_total").values()) == {90}


def test_who_leaves_while_it_waits_has_said_it(daemon, path):
    waap = daemon("--push.max-line-rate=100")
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.send(b'{"metric": "n", "type": "counter", "inc": 1}\n' * 200 + b'{"metric": "n", "inc": 1}')
    wait_idle(waap.cpu_seconds)  # while it waits for what nobody will send
    wait_until(lambda: series(waap, "n_total") == {frozenset({("plugin", "p")}): 201})
    wait_until(lambda: value(waap, "waap_push_connections") == 0)


def test_who_leaves_before_it_is_answered_has_said_it(daemon, path):
    waap = daemon("--push.max-line-rate=20")
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.send(b'nonsense\n' + b'{"metric": "n", "type": "counter", "inc": 1}\n' * 50 + b'nonsense\n')
    wait_until(lambda: series(waap, "n_total") == {frozenset({("plugin", "p")}): 50})
    wait_until(lambda: value(waap, "waap_push_connections") == 0)


def test_who_floods_its_rate_waits_in_its_own_memory(daemon, path):
    waap = daemon("--push.max-line-rate=10")
    with Plugin(path, {"plugin": "p"}, timeout=1) as plugin:
        with pytest.raises(TimeoutError):
            plugin.send(b'{"metric": "n", "type": "counter", "inc": 1}\n' * 1000000)
    assert waap.rss_kib() < 50 * 1024
    with Plugin(path, {"plugin": "other"}) as other:
        other.tell({"metric": "b", "type": "gauge", "set": 1})


def test_number_of_connections(daemon, path):
    waap = daemon("--push.max-connections=5")
    with contextlib.ExitStack() as stack:
        plugins = [stack.enter_context(Plugin(path)) for _ in range(5)]
        for plugin in plugins:
            plugin.settle()
        late = stack.enter_context(Plugin(path))
        assert "push.max-connections" in late.hear()["error"]
        assert late.hear() is None
        plugins[0].close()
        wait_until(lambda: value(waap, "waap_push_connections") == 4)
        stack.enter_context(Plugin(path)).settle()
    assert value(waap, "waap_push_connections_refused_total") == 1


def test_connections_of_one_peer(daemon, path):
    daemon("--push.max-connections-per-peer=3")
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(Plugin(path)).settle()
        assert "push.max-connections-per-peer" in stack.enter_context(Plugin(path)).hear()["error"]


AS_MANY = """
import os, socket, sys
ends, uids = sys.argv[2] == "ends", map(int, sys.argv[3:])
sockets = []
end, life = os.pipe()
for uid in uids:
    s = socket.socket(socket.AF_UNIX)
    sockets.append(s)
    up, down = os.pipe()
    if os.fork() == 0:
        os.setuid(uid)
        s.connect(sys.argv[1])
        os.close(down)
        os.close(life)
        if not ends:
            os.read(end, 1)
        os._exit(0)
    os.close(down)
    os.read(up, 1) if not ends else os.wait()
print("there", flush=True)
sys.stdin.readline()
n = 0
for i, s in enumerate(sockets):
    s.settimeout(20)
    try:
        s.sendall(b'{"hello": {"plugin": "p%d"}}\\n' % i)
        s.sendall(b'{"metric": "m%d", "type": "gauge", "set": 1, "labels": {"a": "1"}}\\n' % i)
        s.sendall(b'{"metric": "m%d", "type": "gauge", "set": 1, "labels": {"a": "2"}, "seq": 1}\\n' % i)
        n += b"ack" in s.recv(9999)
    except OSError:
        pass
print(n, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def many_users(waap, path, uids, *before, ends=False):
    """A process that is connected as each of these users, by children that end before waap can look;
    gives how many of them push."""
    command = [*before, sys.executable, "-c", AS_MANY, path.name, "ends" if ends else "stays", *map(str, uids)]
    os.kill(waap.process.pid, signal.SIGSTOP)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=path.parent)
    try:
        assert process.stdout.readline() == "there\n"
        os.kill(waap.process.pid, signal.SIGCONT)
        process.stdin.write("\n")
        process.stdin.flush()
        yield int(process.stdout.readline())
    finally:
        os.kill(waap.process.pid, signal.SIGCONT)
        process.stdin.close()
        process.wait(LIMIT)
        process.stdout.close()


@pytest.mark.skipif(os.getuid() != 0, reason="must be root to be many users")
@pytest.mark.parametrize(
    "uids, before, ends",
    [
        pytest.param(range(100000, 100008), (), False, id="subordinate"),
        pytest.param(range(1, 9), ("unshare", "--net"), True, id="ended"),
    ],
)
def test_one_peer_as_many_users(daemon, path, tmp_path, uids, before, ends):
    """A user has 65,536 subordinate ones, and root in a container can be any user."""
    tmp_path.chmod(0o755)
    waap = daemon("--push.max-connections=8", "--push.max-connections-per-peer=3")
    with many_users(waap, path, uids, *before, ends=ends) as n_pushing, Plugin(path, {"plugin": "other"}) as other:
        assert n_pushing == 3
        other.tell({"metric": "a", "type": "gauge", "set": 1})
    waap.stop()
    waap = daemon("--push.max-size-per-peer=5KiB")
    with many_users(waap, path, uids, *before, ends=ends), Plugin(path, {"plugin": "other"}) as other:
        assert 1 < value(waap, "waap_push_series") < 10
        other.tell({"metric": "a", "type": "gauge", "set": 1})


def test_who_does_not_take_answers_is_cut(daemon, path):
    """Again and again, with one line in the log."""
    waap = daemon()
    with Plugin(path, {"plugin": "other"}) as other:
        for _ in range(5):
            with Plugin(path, {"plugin": "deaf"}) as plugin:
                with pytest.raises((BrokenPipeError, ConnectionResetError)):
                    end = time.monotonic() + LIMIT
                    while time.monotonic() < end:
                        plugin.send(b'{"seq": 1}\n' * 1000)
            other.tell({"metric": "a", "type": "gauge", "set": 1})
    waap.wait_log("not reading its replies")
    assert waap.output().count("not reading its replies") == 1
    assert value(waap, "waap_push_connections_cut_total") == 5
    assert waap.rss_kib() < 100 * 1024


def test_who_only_does_not_hear_complaints_goes_on(daemon, path):
    waap = daemon()
    with Plugin(path, {"plugin": "p"}) as plugin:
        for _ in range(20):
            plugin.send(b'{"x": {"value": 1e999}}\n\n' * 5000)
        plugin.say({"metric": "a", "type": "gauge", "set": 1})
        wait_until(lambda: series(waap, "a"))
        assert value(waap, "waap_push_connections_cut_total") == 0


def test_descriptors_are_left_for_scrapes(waap, path):
    """With room for 292 descriptors in all, plugins leave HTTP its own."""
    few = dict(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (292, 292)))
    instance = waap(*ALONE, f"--push.socket={path}", "--push.max-connections-per-peer=1000", **few)
    assert "room for 36 connections only" in instance.wait_log("push: room for")
    with contextlib.ExitStack() as stack:
        answers = []
        for _ in range(60):
            plugin = stack.enter_context(Plugin(path))
            try:
                answers.append(plugin.settle())
            except (AssertionError, OSError):
                answers.append(None)
        assert [answer == [] for answer in answers] == [True] * 36 + [False] * 24
        assert instance.get("/metrics").status == 200


def test_unfinished_lines_cost_little(daemon, path):
    waap = daemon("--push.max-connections-per-peer=200")
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(Plugin(path)).send(b"x" * 65000)
        wait_until(lambda: value(waap, "waap_push_connections") == 200)
        assert waap.rss_kib() < 100 * 1024
    wait_until(lambda: value(waap, "waap_push_connections") == 0)


def test_long_labels_cost_little(daemon, path):
    """Each bucket has all labels of its series, and a quote takes two bytes."""
    waap = daemon()
    histogram = {"metric": "h", "type": "histogram", "observe": 1, "buckets": list(range(1, 101))}
    labels = {"a": '"' * 1000, "b": '"' * 1000}
    with Plugin(path, {"plugin": "p"}) as plugin:
        heard = []
        for i in range(0, 400, 10):
            plugin.say(*({**histogram, "labels": {**labels, "i": str(k)}} for k in range(i, i + 10)))
            heard += plugin.settle()
        assert 300 < len(heard) < 400
        assert "push.max-size-per-peer" in heard[0]["error"]
    assert waap.rss_kib() < 60 * 1024
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "h", "observe": 1, "labels": {**labels, "i": "0"}})


def test_a_flood_of_hellos(daemon, path):
    waap = daemon("--push.max-size-per-peer=32KiB")
    with Plugin(path) as plugin:
        hellos = b"".join(b'{"hello": {"plugin": "p%d"}}\n{"metric": "a", "type": "gauge", "set": 1}\n' % i
                          for i in range(3000))
        plugin.send(hellos)
        assert "push.max-size-per-peer" in plugin.hear()["error"]
        assert waap.get("/-/healthy").status == 200
        plugin.settle()
    # What follows a name that it may not have is nobody's.
    n = len(series(waap, "a"))
    assert 15 < n < 30
    assert value(waap, "a", plugin=f"p{n - 1}") == 1


def test_a_busy_writer_keeps_nobody_waiting(daemon, path):
    waap = daemon()
    over = threading.Event()
    block = b'{"metric": "a_total", "type": "counter", "inc": 1}\n' * 2000

    def write():
        with Plugin(path, {"plugin": "busy"}) as plugin:
            while not over.is_set():
                plugin.send(block)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        with Plugin(path, {"plugin": "quiet"}) as plugin:
            for _ in range(20):
                plugin.tell({"metric": "b", "type": "gauge", "set": 1})
                assert waap.get("/-/healthy").status == 200
    finally:
        over.set()
        for thread in threads:
            thread.join()


# ---- the socket ----


def test_permissions(daemon, path):
    daemon("--push.socket-mode=0620")
    assert stat.S_IMODE(path.stat().st_mode) == 0o620


def test_a_live_instance_keeps_its_socket(daemon, waap, path):
    first = daemon()
    second = waap(*ALONE, f"--push.socket={path}", f"--push.socket={path}2")
    assert "another process listens there" in second.wait_log("push: listen on")
    second.wait_log(f"push: listening on unix:{path}2")
    assert second.get("/-/ready").status == 200
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "a", "type": "gauge", "set": 1})
    assert value(first, "a", plugin="p") == 1
    first.stop()
    second.process.send_signal(signal.SIGHUP)
    second.wait_log(f'push: listening on unix:{path}"')


def test_a_socket_that_was_removed_is_there_again(daemon, path):
    waap = daemon()
    path.unlink()
    waap.process.send_signal(signal.SIGHUP)  # at once
    wait_until(path.exists)
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "a", "type": "gauge", "set": 1})
        path.unlink()
        waap.wait_log("has been removed")
        wait_until(path.exists)
        plugin.tell({"metric": "a", "set": 2})  # an open connection stays
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "a", "set": 3})
    assert value(waap, "a", plugin="p") == 3


def test_a_socket_that_another_has_left_is_taken(waap, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as first:
        first.settimeout(LIMIT)
        first.bind(str(path))
        first.listen()
        second = waap(*ALONE, f"--push.socket={path}")
        for _ in range(2):  # it looks again and again, and says so once
            first.accept()[0].close()
            second.wait_log("another process listens there")
        assert second.output().count("another process listens there") == 1
    second.wait_log("push: listening on")
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "a", "type": "gauge", "set": 1})


@pytest.mark.parametrize("kind", ["regular file", "directory"])
def test_what_is_no_socket_is_a_warning(waap, path, kind):
    if kind == "directory":
        path.mkdir(parents=True)
    else:
        path.write_text("precious")
    daemon = waap(*ALONE, f"--push.socket={path}")
    line = daemon.wait_log("push: listen on")
    assert f"unix:{path}: a {kind} is there and is left alone: remove it, or choose another path" in line
    assert "plugins cannot connect there (see --push.socket)" in line and "level=warn" in line
    assert daemon.get("/-/ready").status == 200
    path.rename(f"{path}.away")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_log(f"push: listening on unix:{path}")
    assert daemon.stop()[0] == 0
    assert not path.exists()


def test_a_dead_instance_leaves_its_socket(daemon, path):
    first = daemon()
    first.stop(signal=signal.SIGKILL)
    assert path.exists()
    second = daemon()
    with Plugin(path, {"plugin": "p"}) as plugin:
        plugin.tell({"metric": "a", "type": "gauge", "set": 1})
    assert value(second, "a", plugin="p") == 1
    second.stop()
    assert not path.exists()


def test_an_unusable_path_is_a_warning(waap, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    instance = waap(*ALONE, f"--push.socket={file}", f"--push.socket={file}/below")
    instance.wait_log("plugins cannot connect there")
    assert instance.get("/-/ready").status == 200
    assert file.read_text() == "mine"


def test_the_directory_is_made(waap, tmp_path):
    path = tmp_path / "run" / "push.sock"
    waap(*ALONE, f"--push.socket={path}").wait_log("push: listening on")
    with Plugin(path) as plugin:
        plugin.settle()


# ---- those who look ----


def test_prometheus_sees_fps(daemon, path, tmp_path):
    binary = need_program("prometheus", "2.42")
    waap = daemon()
    over = threading.Event()

    def count():
        with Plugin(path, {"plugin": "objcounter", "job": "cars"}) as plugin:
            while not over.wait(0.04):
                plugin.say({"metric": "fps", "type": "rate", "inc": 1, "help": "Pictures looked at"})

    thread = threading.Thread(target=count)
    thread.start()
    try:
        with Prometheus(binary, tmp_path, waap.port, {"waap": {"honor_labels": True}}) as server:

            def seen():
                found = server.query('fps{plugin="objcounter",job="cars"}')
                return found and float(found[0]["value"][1]) > 5

            wait_until(seen, what="fps in Prometheus")
            wait_until(lambda: server.query("rate(fps_total[5s])"), what="its rate")
    finally:
        over.set()
        thread.join()


# In its first minute the daemon waits for all starts to come back: some hundred bytes for each of 4000.
@pytest.mark.parametrize("turns", [8000, pytest.param(1000000, marks=pytest.mark.long)])
def test_plugins_come_and_go(turns, daemon, path, tmp_path, monkeypatch):
    """Memory stays flat."""
    monkeypatch.setenv("ASAN_OPTIONS", "quarantine_size_mb=1:malloc_context_size=0")
    waap = daemon("--push.ttl=1s", f"--push.table={tmp_path / 'table'}")

    def live(begin, end):
        for turn in range(begin, end):
            with Plugin(path, {"plugin": f"p{turn % 50}", "start": str(turn)}) as plugin:
                plugin.say({"param": "res", "type": "int", "default": 1})
                labels = {"turn": str(turn % 200)}
                plugin.tell({"metric": "a_total", "type": "counter", "total": turn, "labels": labels})
            if turn % 100 == 0:
                waap.samples()
        return waap.rss_kib("RssAnon")  # without the table, which grows until it is copied

    before = live(0, turns // 2)
    after = live(turns // 2, turns)
    assert after - before < 2048, f"grew from {before} to {after} KiB"
