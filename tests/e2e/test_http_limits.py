"""What clients cost the daemon: memory and places, whoever they are and however many."""

import contextlib
import re
import socket

import pytest

from conftest import WAAP
from placing import Place
from running import Waap, wait_until

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


# ---- memory of answers that nobody reads ----

PAGE_MIB = 12


def write_page(directory, value):
    """A page of which every line changes with `value`."""
    line = f"}} {value}\n"
    series = (f'page_line{{n="{i:060}"' + line for i in range(PAGE_MIB * 2**20 // 80))
    (directory / "page.prom.new").write_text("".join(series))
    (directory / "page.prom.new").rename(directory / "page.prom")


class SlowReader:
    """Asks for the page from an address of its own and reads no more than its beginning."""

    def __init__(self, port, address):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(30)
        self.socket.bind((address, 0))
        self.socket.connect(("127.0.0.1", port))
        self.socket.sendall(b"GET /metrics HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        self.begin = self.socket.recv(2000)

    def read_rest(self):
        """Whether the whole page comes."""
        head, _, body = self.begin.partition(b"\r\n\r\n")
        length = int(re.search(rb"Content-Length: (\d+)", head)[1])
        n = len(body)
        with contextlib.suppress(ConnectionError):
            while data := self.socket.recv(1 << 20):
                n += len(data)
        return n == length


def test_slow_readers_have_one_limit(started, tmp_path):
    waap = started(
        Waap(
            WAAP,
            "--collector.disable-defaults",
            "--collector.textfile",
            f"--collector.textfile.directory={tmp_path}",
            f"--web.max-sending-size={2 * PAGE_MIB + 2}MiB",
        )
    )
    with contextlib.ExitStack() as stack:
        readers, rss = [], []
        for i in range(24):
            write_page(tmp_path, i)
            readers.append(SlowReader(waap.port, f"127.0.0.{10 + i}"))
            stack.callback(readers[-1].socket.close)
            rss.append(waap.rss_kib())
        assert max(rss[8:]) < max(rss[:8]) + 4 * PAGE_MIB * 1024  # the limit is reached before
        assert waap.get("/-/healthy").status == 200
        assert [reader.read_rest() for reader in readers] == [False] * 22 + [True] * 2
    assert waap.samples()["waap_http_readers_cut_total"] == "22"
    wait_until(lambda: waap.samples()["waap_http_sending_bytes"] == "0")
