"""/api/v1/metrics and /api/v1/plugins tell of everything that was pushed, and hold up nobody."""

import json
import select
import socket
import threading

import pytest

from plugin import Plugin

N_AT_ONCE = 12


@pytest.fixture
def daemon(waap, tmp_path):
    path = tmp_path / "push.sock"
    program = waap("--collector.disable-defaults", "--collector.push", f"--push.socket={path}",
                   "--push.table-size=128MiB", "--push.max-size-per-peer=100MiB")
    program.wait_log("push: listening on")
    program.socket = path
    return program


def fill_groups(daemon):
    for group in range(23):
        lines = (f'm{{path="/api/v1/item/{i:06}"}} {i}\n' for i in range(3900))
        path = f"/metrics/job/g{group}"
        assert daemon.get(path, method="PUT", body="".join(lines).encode()).status == 200


def fill_plugins(daemon):
    values = [f"{i:050}" for i in range(60)]
    with Plugin(daemon.socket) as plugin:
        for i in range(30):
            knobs = (
                {"param": f"k{k}", "type": "enum", "default": values[0], "values": values, "help": "h" * 500}
                for k in range(64)
            )
            plugin.tell({"hello": {"plugin": f"p{i}"}}, {"metric": "x", "type": "gauge", "set": 1}, *knobs)


def ask(daemon, path):
    asker = socket.create_connection(("127.0.0.1", daemon.port))
    asker.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    return asker


def hear(asker):
    with asker, asker.makefile("rb") as answer:
        head, _, body = answer.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    return body


@pytest.mark.parametrize(
    "path, fill, n", [("/api/v1/metrics", fill_groups, 23), ("/api/v1/plugins", fill_plugins, 30)]
)
def test_many_who_ask_at_once(daemon, path, fill, n):
    fill(daemon)
    quick = []
    for _ in range(3):  # a busy machine may let us see late what came early
        askers = [ask(daemon, path) for _ in range(N_AT_ONCE)]
        assert daemon.get("/-/healthy").status == 200
        ready, _, _ = select.select(askers, [], [], 0)
        quick.append(len(ready) < N_AT_ONCE)
        bodies = {hear(asker) for asker in askers}
        for body in bodies:
            assert len(json.loads(body)["data"]) == n
        # Those that were written apart differ in the moments at which plugins were seen.
        assert len(bodies) <= 3
    assert any(quick), "health requests waited for all of them"


def test_groups_that_come_and_go_meanwhile(daemon):
    fill_groups(daemon)
    over = threading.Event()

    def churn():
        i = 0
        while not over.is_set():
            daemon.get(f"/metrics/job/new{i}", method="PUT", body=b"x 1\n")
            daemon.get(f"/metrics/job/new{i - 3}", method="DELETE")
            daemon.get(f"/metrics/job/g{i % 5}", method="DELETE")
            i += 1

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(5):
            groups = json.loads(daemon.get("/api/v1/metrics").body)["data"]
            jobs = [group["labels"]["job"] for group in groups]
            assert len(set(jobs)) == len(jobs)
            assert set(jobs) >= {f"g{i}" for i in range(5, 10)}
            for group in groups:  # one that is deleted while it is written ends there
                kept = group["labels"]["job"] in {f"g{i}" for i in range(5, 10)}
                assert not kept or len(group["m"]["metrics"]) == 3900
    finally:
        over.set()
        thread.join()
    answer = daemon.get("/metrics/job/last", method="PUT", body=b"x 1\n")
    assert answer.status == 200
    groups = json.loads(daemon.get("/api/v1/metrics").body)["data"]
    assert groups[-1]["labels"] == {"job": "last"}  # nothing older than the question


def test_listings_keep_no_scrape_out(daemon):
    fill_groups(daemon)
    for _ in range(3):
        askers = [ask(daemon, "/api/v1/metrics") for _ in range(80)]
        assert daemon.get("/metrics?collect[]=push").status == 200
        for asker in askers:
            asker.close()


def test_who_goes_away_while_waiting(daemon):
    fill_groups(daemon)
    for asker in [ask(daemon, "/api/v1/metrics") for _ in range(N_AT_ONCE)]:
        asker.close()
    assert len(json.loads(daemon.get("/api/v1/metrics").body)["data"]) == 23
    askers = [ask(daemon, "/api/v1/metrics") for _ in range(3)]
    assert daemon.stop()[0] == 0
    for asker in askers:
        asker.close()
