"""What clients cost the daemon: memory and places, whoever they are and however many."""

import contextlib
import socket

import pytest

from conftest import WAAP
from placing import Place
from running import Waap

HOST = b"Host: waap\r\n"
USERS = "basic_auth_users: {alice: '$2b$04$EtgYl7DGY3FiIiTHIBBX7.fFg3T5E2stdf4vcwfk.aaT6Y0cKPOCS'}\n"

# ---- memory before anybody has logged in ----

# More parameters, or cookies, than libmicrohttpd has memory for: 0.9.75 hangs up without an answer.
MANY_PARAMETERS = b"GET /metrics?" + b"a&" * 7000 + b" HTTP/1.1\r\n" + HOST + b"\r\n"
MANY_COOKIES = (
    b"GET /" + b"x" * 7000 + b" HTTP/1.1\r\n" + HOST + b"Cookie: " + b"a=b; " * 600 + b"\r\n\r\n"
)


def drop(waap, head, n):
    """Sends `head` on `n` connections; none of them may get the page."""
    with contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection(("127.0.0.1", waap.port), 30))
            for _ in range(n)
        ]
        for connection in connections:
            with contextlib.suppress(ConnectionError):
                connection.sendall(head)
        for connection in connections:
            with contextlib.suppress(ConnectionError):
                assert connection.recv(12) in (b"", b"HTTP/1.1 431")


@pytest.mark.parametrize("kind", ["serve", "serve with users", "place"])
@pytest.mark.parametrize("request_head", [MANY_PARAMETERS, MANY_COOKIES], ids=["parameters", "cookies"])
def test_requests_that_are_dropped_cost_no_memory(started, tmp_path, kind, request_head):
    flags = []
    if kind == "serve with users":
        (tmp_path / "web.yaml").write_text(USERS)
        flags = [f"--web.config.file={tmp_path / 'web.yaml'}"]
    waap = started(Place() if kind == "place" else Waap(WAAP, *flags))

    drop(waap, request_head, 200)
    before = waap.rss_kib()
    for _ in range(10):
        drop(waap, request_head, 200)  # of which each would keep its 7 kB or more
    assert waap.rss_kib() < before + 4 * 1024
