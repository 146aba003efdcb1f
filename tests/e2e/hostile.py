"""Clients that mean harm: what they send, and what they neither send nor read."""

import base64
import contextlib
import http.client
import re
import socket

from waiting import LIMIT

HOST = b"Host: waap\r\n"

# More parameters, or cookies, than libmicrohttpd has memory for: 0.9.75 hangs up without an answer.
MANY_PARAMETERS = b"GET /metrics?" + b"a&" * 7000 + b" HTTP/1.1\r\n" + HOST + b"\r\n"
MANY_COOKIES = (
    b"GET /" + b"x" * 7000 + b" HTTP/1.1\r\n" + HOST + b"Cookie: " + b"a=b; " * 600 + b"\r\n\r\n"
)
FOREIGN_PAGE = {"Host": "evil.example", "Origin": "http://evil.example"}


def basic(name, password):
    pair = base64.b64encode(f"{name}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def get_from(port, source, headers, path="/-/ready"):
    """The status that a client with that address gets."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10 * LIMIT, source_address=(source, 0))
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status


def drop(port, head, n):
    """Sends `head` on `n` connections; none of them may get the page."""
    with contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))
            for _ in range(n)
        ]
        for connection in connections:
            with contextlib.suppress(ConnectionError):
                connection.sendall(head)
        for connection in connections:
            with contextlib.suppress(ConnectionError):
                assert connection.recv(12) in (b"", b"HTTP/1.1 431")


def write_page(directory, value, mebibytes):
    """A page of which every line changes with `value`."""
    line = f"}} {value}\n"
    series = (f'page_line{{n="{i:060}"' + line for i in range(mebibytes * 2**20 // 80))
    (directory / "page.prom.new").write_text("".join(series))
    (directory / "page.prom.new").rename(directory / "page.prom")


class SlowReader:
    """Asks for the page from an address of its own and reads no more than its beginning."""

    def __init__(self, port, address, headers={}, path="/metrics"):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(30)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
        try:
            self.socket.bind((address, 0))
            self.socket.connect(("127.0.0.1", port))
            self.socket.sendall(
                b"GET %s HTTP/1.1\r\n" % path.encode() + HOST + lines + b"Connection: close\r\n\r\n"
            )
            self.begin = self.socket.recv(2000)
        except OSError:
            self.close()
            raise

    def read_rest(self):
        """Whether the whole page comes."""
        head, _, body = self.begin.partition(b"\r\n\r\n")
        length = int(re.search(rb"Content-Length: (\d+)", head)[1])
        n = len(body)
        with contextlib.suppress(ConnectionError):
            while data := self.socket.recv(1 << 20):
                n += len(data)
        return n == length

    def close(self):
        self.socket.close()


def begin_upload(connection, path, headers={}):
    """Announces a body of 10 MiB and sends its first byte."""
    connection.putrequest("POST", path)
    for name, value in {"Content-Length": str(10 << 20), **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(b" ")
