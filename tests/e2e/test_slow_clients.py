"""A thousand clients that connect and dawdle: whoever scrapes must not notice."""

import contextlib
import http.client
import resource
import selectors
import socket
import threading
import time

import pytest

from running import Waap
from waiting import LIMIT, wait_until

N_CLIENTS = 1000
TURN_SECONDS = 0.3

HOST = b"Host: waap\r\n"
POST = b"POST /-/reload HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def silent(_turn):
    return b""


def half_a_line(turn):
    return b"GET /metr" if turn == 0 else b""


def byte_by_byte(turn):
    return (b"GET /metrics HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 1000)[turn : turn + 1]


def endless_body(turn):
    return CHUNKED if turn == 0 else b"1000\r\n" + b"x" * 4096 + b"\r\n"


def promised_body(turn):
    return POST + b"Content-Length: 60000\r\n\r\n" if turn == 0 else b"x"


def asks_and_stays(turn):
    return b"GET /-/healthy HTTP/1.1\r\n" + HOST + b"\r\n" if turn == 0 else b""


class Horde:
    """Clients from a thousand addresses; each says what `speech` has for its turn."""

    def __init__(self, port, speech, redial=False, n_clients=N_CLIENTS):
        self.address = ("127.0.0.1", port)
        self.n_clients = n_clients
        self.speech = speech
        self.redial = redial
        self.n_dialled = 0
        self.n_closed = 0
        self.n_turns = 0
        self.sockets = {}
        self.selector = selectors.DefaultSelector()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def dial(self):
        self.n_dialled += 1
        client = socket.socket()
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # no TIME_WAIT
        client.bind((f"127.1.{self.n_dialled % 1000 // 250}.{self.n_dialled % 250 + 1}", 0))
        client.connect_ex(self.address)
        self.sockets[client] = 0
        self.selector.register(client, selectors.EVENT_READ)

    def drop(self, client):
        self.n_closed += 1
        self.selector.unregister(client)
        del self.sockets[client]
        client.close()

    def speak(self):
        for client, turn in list(self.sockets.items()):
            with contextlib.suppress(OSError):
                if words := self.speech(turn):
                    client.send(words)
                self.sockets[client] = turn + 1

    def listen(self, seconds):
        for key, _ in self.selector.select(seconds):
            gone = True
            with contextlib.suppress(OSError):
                gone = not key.fileobj.recv(65536)
            if gone:
                self.drop(key.fileobj)
                if self.redial and self.n_dialled < 20 * N_CLIENTS:
                    self.dial()

    def run(self):
        for _ in range(self.n_clients):
            self.dial()
        next_turn = time.monotonic() + TURN_SECONDS
        while not self.stopping.is_set():
            self.listen(0.05)
            if time.monotonic() >= next_turn:
                self.speak()
                self.n_turns += 1
                next_turn = time.monotonic() + TURN_SECONDS

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        for client in self.sockets:
            client.close()


@pytest.fixture(scope="module", autouse=True)
def enough_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * N_CLIENTS:
        pytest.skip(f"needs {2 * N_CLIENTS} descriptors, may have {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * N_CLIENTS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def waap(fake_binary):
    # None of them leaves by itself within a client's patience: a scrape that is answered did not wait for it.
    with Waap(fake_binary, "--web.header-timeout=10m", "--web.idle-timeout=1d") as running:
        yield running
        assert running.process.poll() is None, running.output()


def scrape_with(connection):
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert answer.status == 200
    assert b"zoo_frames" in answer.read()


@pytest.mark.parametrize(
    "speech, redial",
    [
        (silent, False),
        (half_a_line, False),
        (byte_by_byte, False),
        (endless_body, False),
        (promised_body, False),
        (asks_and_stays, False),
        (silent, True),
    ],
)
def test_a_thousand_of_a_kind(waap, speech, redial):
    rss_before = waap.rss_kib()
    regular = http.client.HTTPConnection("127.0.0.1", waap.port, timeout=LIMIT)
    scrape_with(regular)
    regular_socket = regular.sock
    with contextlib.closing(regular), Horde(waap.port, speech, redial) as horde:
        for turn in range(4):
            wait_until(lambda: horde.n_turns > turn, what="the next turn")
            assert waap.get("/metrics", timeout=LIMIT).status == 200
            assert waap.get("/-/healthy", timeout=LIMIT).status == 200
            if speech is not asks_and_stays:  # these are worth as much, and were there later
                scrape_with(regular)
                assert regular.sock is regular_socket
        assert horde.n_dialled >= N_CLIENTS
        wait_until(lambda: horde.n_closed >= N_CLIENTS - 140, what="most of them to be sent away")
        samples = waap.samples()
        assert float(samples["waap_http_connections"]) <= 140
        assert float(samples["process_open_fds"]) < 230
    assert float(samples["waap_http_connections_evicted_total"]) >= N_CLIENTS - 140
    assert waap.rss_kib() < rss_before + 8 * 1024


def test_fewer_descriptors_than_connections_wanted(fake_binary):
    """The gate is as narrow as the process's limit, so that descriptors never run out."""

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 150))

    flags = ["--web.max-connections=1000", "--web.header-timeout=10m"]
    with Waap(fake_binary, *flags, preexec_fn=limit) as waap:
        assert "room for 75 connections only" in waap.output()
        with Horde(waap.port, silent, n_clients=300) as horde:
            wait_until(lambda: horde.n_closed >= 200, what="most of them to be sent away")
            samples = waap.samples()
        assert samples["process_max_fds"] == "150"
        assert float(samples["waap_http_connections"]) <= 75
        assert "Too many open files" not in waap.output()
