"""What clients cost the daemon: memory and places, whoever they are and however many."""

import contextlib
import pathlib
import signal

import pytest

from conftest import WAAP
from hostile import MANY_COOKIES, MANY_PARAMETERS, SlowReader, drop, write_page
from placing import Place
from running import Waap, wait_until

USERS = "basic_auth_users: {alice: '$2b$04$EtgYl7DGY3FiIiTHIBBX7.fFg3T5E2stdf4vcwfk.aaT6Y0cKPOCS'}\n"

# ---- memory before anybody has logged in ----

@pytest.mark.parametrize("kind", ["serve", "serve with users", "place"])
@pytest.mark.parametrize("request_head", [MANY_PARAMETERS, MANY_COOKIES], ids=["parameters", "cookies"])
def test_requests_that_are_dropped_cost_no_memory(started, tmp_path, kind, request_head):
    flags = []
    if kind == "serve with users":
        (tmp_path / "web.yaml").write_text(USERS)
        flags = [f"--web.config.file={tmp_path / 'web.yaml'}"]
    waap = started(Place() if kind == "place" else Waap(WAAP, *flags))

    drop(waap.port, request_head, 200)
    before = waap.rss_kib()
    for _ in range(10):
        drop(waap.port, request_head, 200)  # of which each would keep its 7 kB or more
    assert waap.rss_kib() < before + 4 * 1024


# ---- memory of answers ----

PAGE_MIB = 12


@pytest.fixture
def pages(started, tmp_path):
    """pages("--web.max-requests=1", …): the daemon; write_page(tmp_path, …) makes its page."""
    flags = ("--collector.disable-defaults", "--collector.textfile")
    return lambda *more: started(Waap(WAAP, *flags, f"--collector.textfile.directory={tmp_path}", *more))


def test_pages_that_were_sent_leave_their_memory(pages, tmp_path):
    waap = pages()
    waap.get("/metrics")
    before = waap.rss_kib()
    for i in range(3):
        write_page(tmp_path, i, PAGE_MIB)
        for headers in ({}, {"Accept-Encoding": "gzip"}):
            assert waap.get("/metrics", headers).status == 200
    assert waap.rss_kib() < before + 5 * PAGE_MIB * 1024


def test_slow_readers_have_one_limit(pages, tmp_path):
    waap = pages(f"--web.max-sending-size={2 * PAGE_MIB + 2}MiB")
    with contextlib.ExitStack() as stack:
        readers, rss = [], []
        for i in range(24):
            write_page(tmp_path, i, PAGE_MIB)
            readers.append(SlowReader(waap.port, f"127.0.0.{10 + i}"))
            stack.callback(readers[-1].close)
            rss.append(waap.rss_kib())
        assert max(rss[8:]) < max(rss[:8]) + 4 * PAGE_MIB * 1024  # the limit is reached before
        assert waap.get("/-/healthy").status == 200
        assert [reader.read_rest() for reader in readers] == [False] * 22 + [True] * 2
    assert waap.samples()["waap_http_readers_cut_total"] == "22"
    wait_until(lambda: waap.samples()["waap_http_sending_bytes"] == "0")


def unread_bytes(port, client_port):
    """That the kernel keeps for a client because it does not read."""
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        local, remote, _, queues = line.split()[1:5]
        if (local.endswith(f":{port:04X}"), remote.endswith(f":{client_port:04X}")) == (True, True):
            return int(queues.split(":")[0], 16)
    raise AssertionError("no such connection")


def test_slow_readers_take_little_memory_of_the_kernel(pages, tmp_path):
    write_page(tmp_path, 0, PAGE_MIB)
    waap = pages()
    with contextlib.closing(SlowReader(waap.port, "127.0.0.10")) as reader:
        for _ in range(2):  # what was sent at once has been sent by then
            assert waap.get("/-/healthy").status == 200
        assert 64 << 10 < unread_bytes(waap.port, reader.socket.getsockname()[1]) < 1 << 20


# ---- places ----


def test_requests_that_come_with_their_connections_are_answered(started):
    """However many connect at once while all places are taken: none makes way before it was read."""
    waap = started(Waap(WAAP))
    with contextlib.ExitStack() as stack:
        for _ in range(96):
            idle = stack.enter_context(contextlib.closing(waap.connect()))
            idle.request("GET", "/-/healthy")
            assert idle.getresponse().read()
        waap.process.send_signal(signal.SIGSTOP)
        stack.callback(waap.process.send_signal, signal.SIGCONT)
        newcomers = [stack.enter_context(contextlib.closing(waap.connect())) for _ in range(60)]
        for newcomer in newcomers:
            newcomer.request("GET", "/-/healthy")
        waap.process.send_signal(signal.SIGCONT)
        assert [newcomer.getresponse().status for newcomer in newcomers] == [200] * 60
