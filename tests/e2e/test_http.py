"""Requests as clients send them, good and bad, and the addresses they come in by."""

import concurrent.futures
import contextlib
import grp
import http.client
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest

from running import Program, Waap, connect, free_port, wait_reached
from waiting import LIMIT, pace, wait_until

HOST = b"Host: waap\r\n"
HEALTHY = b"GET /-/healthy HTTP/1.1\r\n" + HOST + b"\r\n"


def flags_for(*names):
    return ["--collector.disable-defaults", *(f"--collector.{name}" for name in names)]


@pytest.fixture(scope="module")
def waap(fake_binary):
    """One daemon for all that leave no trace."""
    flags = flags_for("zoo", "slow")
    flags += ["--collector.slow.delay=400ms", "--web.max-body-size=64KiB"]
    with Waap(fake_binary, *flags) as running:
        yield running
        assert running.process.poll() is None, running.output()


@pytest.fixture
def start(fake_binary):
    """Starts a daemon of one's own: start(flags...). It listens everywhere when it returns."""
    flags = ["--web.listen-address=127.0.0.1:0", *flags_for("zoo")]
    with contextlib.ExitStack() as stack:

        def begin(*more):
            waap = stack.enter_context(Waap(fake_binary, *flags, *more))
            for flag in more:
                if "=unix:" in flag:
                    wait_until(lambda: f"listening on {flag.partition('=')[2]}" in waap.output())
            return waap

        yield begin


def read_all(connection):
    """What comes until the other side closes, and whether it did so."""
    connection.settimeout(LIMIT)
    data = b""
    with contextlib.suppress(ConnectionResetError):
        try:
            while piece := connection.recv(65536):
                data += piece
        except TimeoutError:
            return data, False
    return data, True


def exchange(port, request):
    """For requests after which the daemon closes the connection."""
    with socket.create_connection(("127.0.0.1", port), LIMIT) as connection:
        connection.sendall(request)
        return read_all(connection)


def answers_to(port, request, source="127.0.0.1"):
    """The statuses of all that it answers to a client that sends nothing more."""
    with socket.create_connection(("127.0.0.1", port), LIMIT, (source, 0)) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return statuses(read_all(connection)[0])


def statuses(data):
    return [int(code) for code in re.findall(rb"^HTTP/1\.1 (\d+) .*\r\n[A-Z]", data, re.M)]


# ---- methods and paths ----


@pytest.mark.parametrize(
    "method, path, status, allow",
    [
        ("GET", "/", 200, None),
        ("GET", "/metrics", 200, None),
        ("GET", "/-/healthy", 200, None),
        ("GET", "/-/ready", 200, None),
        ("HEAD", "/", 200, None),
        ("HEAD", "/metrics", 200, None),
        ("HEAD", "/-/ready", 200, None),
        ("GET", "/nothing", 404, None),
        ("HEAD", "/nothing", 404, None),
        ("POST", "/nothing", 404, None),
        ("GET", "/metrics/", 404, None),
        ("GET", "/-/", 404, None),
        ("POST", "/metrics", 405, "GET, HEAD"),
        ("DELETE", "/", 405, "GET, HEAD"),
        ("OPTIONS", "/metrics", 405, "GET, HEAD"),
        ("BREW", "/metrics", 405, "GET, HEAD"),
        ("get", "/metrics", 405, "GET, HEAD"),
        ("GET", "/-/reload", 405, "POST, PUT"),
        ("HEAD", "/-/quit", 405, "POST, PUT"),
        ("POST", "/-/reload", 403, None),
        ("PUT", "/-/reload", 403, None),
        ("POST", "/-/quit", 403, None),
    ],
)
def test_methods_and_paths(waap, method, path, status, allow):
    answer = waap.get(path, method=method)
    assert answer.status == status, answer.text
    assert answer.headers.get("Allow") == allow
    if method == "HEAD":
        assert answer.raw == b""
    else:
        assert answer.text.endswith("\n")


@pytest.mark.parametrize("path", ["/-/healthy", "/nothing", "/metrics?collect[]=zoo&exclude[]=zoo"])
def test_head_announces_what_get_sends(waap, path):
    get = waap.get(path)
    head = waap.get(path, method="HEAD")
    assert head.headers["Content-Length"] == get.headers["Content-Length"] == str(len(get.raw))
    assert head.headers["Content-Type"] == get.headers["Content-Type"]
    assert head.status == get.status


def test_landing_page_names_what_there_is(waap):
    waap.get("/metrics")
    page = waap.get("/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    for part in ("<title>waap</title>", 'href="metrics"', "-/healthy", ">zoo<", ">ok<", ">off<"):
        assert part in page.text


def test_telemetry_path_can_be_anything_even_the_root(start):
    assert start("--web.telemetry-path=/other").get("/other").text.startswith("# HELP")
    root = start("--web.telemetry-path=/")
    assert root.get("/").text.startswith("# HELP")
    assert root.get("/metrics").status == 404


# ---- what a scrape asks for ----


@pytest.mark.parametrize(
    "query, inside, outside",
    [
        ("collect[]=zoo", "zoo_frames", "slow_calls_total"),
        ("collect%5B%5D=%7aoo", "zoo_frames", "slow_calls_total"),
        ("collect[]=zoo&collect[]=slow", "zoo_frames", None),
        ("collect[]=zoo&collect[]=slow", "slow_calls_total", None),
        ("exclude[]=slow", "zoo_frames", "slow_calls_total"),
        ("exclude[]=slow&exclude[]=zoo", "waap_build_info", "zoo_frames"),
        ("other=1&collect=slow&exclude[]=slow", "zoo_frames", "slow_calls_total"),
    ],
)
def test_filters(waap, query, inside, outside):
    answer = waap.get("/metrics?" + query)
    assert answer.status == 200
    assert f"\n{inside}" in answer.text
    assert outside is None or f"\n{outside}" not in answer.text


@pytest.mark.parametrize(
    "query, words",
    [
        ("collect[]=zoo&exclude[]=slow", "collect[] and exclude[]"),
        ("collect[]=nonsense", '"nonsense"'),
        ("exclude[]=no%0asense", "sense"),
        ("collect[]=zoo&collect[]=Zoo", '"Zoo"'),
        ("collect[]=", '""'),
        ("collect[]=bench", '"bench" is disabled'),
        ("collect[]=%zz", "%-sequence"),
        ("collect[]=zoo%00", "NUL"),
        ("&".join(["a=b"] * 101), "100 parameters"),
    ],
)
def test_bad_filters(waap, query, words):
    answer = waap.get("/metrics?" + query)
    assert answer.status == 400
    assert words in answer.text


@pytest.mark.parametrize("value", ["", "ten", "0", "-1", "NaN", "1s", "1,5", "0x", "--1", "1 1"])
def test_bad_timeouts(waap, value):
    headers = {"X-Prometheus-Scrape-Timeout-Seconds": value}
    answer = waap.get("/metrics?collect[]=zoo", headers)
    assert answer.status == 400
    assert "X-Prometheus-Scrape-Timeout-Seconds" in answer.text


@pytest.mark.parametrize("value", ["10", "0.5", "1e1", "Inf", "1e300", "9.999999999"])
def test_good_timeouts(waap, value):
    headers = {"X-Prometheus-Scrape-Timeout-Seconds": value}
    assert waap.get("/metrics?collect[]=zoo", headers).status == 200


# ---- requests that must not be believed ----

SMUGGLED = b"GET /-/ready HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\ncontent-length: 9\r\n\r\n",
        b"POST /x HTTP/1.1\r\n"
        + HOST
        + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: identity\r\n\r\n",
        b"POST /x HTTP/1.1\r\n"
        + HOST
        + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: +3\r\n\r\nabc",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: -3\r\n\r\nabc",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 3, 3\r\n\r\nabc",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length:\r\n\r\n",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length : 3\r\n\r\nabc",
        b"GET / HTTP/1.1\r\nHost : waap\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"no colon\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"sp ace: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"na\0me: x\r\n\r\n",
        b"GET /\r\n\r\n",
    ],
)
def test_bad_framing_is_refused_and_ends_the_connection(waap, request_bytes):
    """What follows may be the rest of the lie: nothing of it is answered."""
    data, closed = exchange(waap.port, request_bytes + SMUGGLED)
    # libmicrohttpd 0.9.75 answers twice when it refuses; 1.0.10 refuses unknown encodings with 501.
    assert set(statuses(data)) in ({400}, {501})
    assert closed
    assert b"\r\nConnection: close\r\n" in data
    assert b"ready" not in data


@pytest.mark.parametrize("garbage", [b"hello", b"\x16\x03\x01\x02\0\x01\0", b"\xff" * 99])
def test_garbage_is_hung_up_on(waap, garbage):
    data, closed = exchange(waap.port, garbage + b"\r\n\r\n" + SMUGGLED)
    assert closed
    assert statuses(data) in ([], [400])
    assert b"ready" not in data


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\0\r\n" + HEALTHY,
        b"GET /-/healthy\0x HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /-/healthy HTTP/1.1\r\nHost: wa\0ap\r\n\r\n",
    ],
)
def test_a_nul_does_no_harm(waap, request_bytes):
    """libmicrohttpd 0.9.75 reads up to it; later ones refuse or hang up."""
    assert answers_to(waap.port, request_bytes) in ([200], [400], [])
    assert waap.get("/-/healthy").status == 200


@pytest.mark.parametrize("target", [b"/%", b"/%4", b"/%zz", b"/x?a=%", b"/%00", b"*", b"x", b"?"])
def test_bad_targets(waap, target):
    assert answers_to(waap.port, b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n") == [400]


def test_absolute_targets_are_understood(waap):
    request = b"GET http://waap:9090/-/healthy?x=y HTTP/1.1\r\n" + HOST + b"\r\n"
    assert answers_to(waap.port, request) == [200]


def test_other_versions(waap):
    assert statuses(exchange(waap.port, b"GET /-/healthy HTTP/1.0\r\n\r\n")[0]) == [200]
    data, closed = exchange(waap.port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert statuses(data) == [505]
    assert closed


# ---- limits ----


def test_too_long_addresses_and_headers(waap):
    data, closed = exchange(
        waap.port, b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED
    )
    assert (statuses(data), closed) == ([414], True)
    data, closed = exchange(
        waap.port, b"GET / HTTP/1.1\r\n" + HOST + b"a: " + b"a" * 20000 + b"\r\n\r\n" + SMUGGLED
    )
    assert (statuses(data), closed) == ([431], True)
    many = b"".join(b"h%d: x\r\n" % i for i in range(3000))
    data, closed = exchange(waap.port, b"GET / HTTP/1.1\r\n" + HOST + many + b"\r\n")
    assert (statuses(data), closed) == ([431], True)


def test_a_long_but_allowed_header(waap):
    request = b"GET /-/ready HTTP/1.1\r\n" + HOST + b"a: " + b"a" * 8000 + b"\r\n\r\n"
    assert answers_to(waap.port, request) == [200]


def test_bodies_beyond_the_limit(waap):
    head = b"POST /-/reload HTTP/1.1\r\n" + HOST
    announced = head + b"Content-Length: 65537\r\n\r\n"
    data, closed = exchange(waap.port, announced)
    assert (statuses(data), closed) == ([413], True)
    assert b"larger than 65536 bytes" in data
    beyond_all = head + b"Content-Length: 99999999999999999999999\r\n\r\n"
    assert set(statuses(exchange(waap.port, beyond_all)[0])) in ({413}, {400})  # 400: libmicrohttpd 1.0.10
    chunk = b"%x\r\n" % 40000 + b"x" * 40000 + b"\r\n"
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 2 + b"0\r\n\r\n"
    assert answers_to(waap.port, chunked) == [413]
    largest = head + b"Content-Length: 65536\r\n\r\n" + b"x" * 65536
    assert answers_to(waap.port, largest) == [403]


def test_an_endless_body_is_cut_off(waap):
    head = b"POST /-/reload HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", waap.port), LIMIT) as connection:
        connection.sendall(head)
        with pytest.raises(OSError):
            for _ in range(10000):
                connection.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")


def test_max_requests(start, hang_file):
    waap = start("--collector.hang", f"--collector.hang.file={hang_file}", "--scrape.timeout=10m", "--web.max-requests=3")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(waap.get, "/metrics") for _ in range(8)]
        wait_until(lambda: sum(answer.done() for answer in answers) == 5, what="those beyond the limit")
        assert waap.get("/-/healthy").status == 200
        refused = next(answer.result() for answer in answers if answer.done())
        hang_file.unlink()
        got = sorted(answer.result().status for answer in answers)
    assert got == [200] * 3 + [503] * 5
    assert "3 concurrent requests" in refused.text
    assert waap.get("/metrics").status == 200
    assert 'waap_http_requests_total{code="503",handler="/metrics"} 5\n' in waap.get("/metrics").text


def test_limit_per_address(start):
    waap = start("--web.max-connections-per-address=2")
    with contextlib.ExitStack() as stack:

        def connect(source):
            address = ("127.0.0.1", waap.port)
            return stack.enter_context(socket.create_connection(address, LIMIT, (source, 0)))

        kept = [connect("127.0.0.7") for _ in range(2)]
        assert read_all(connect("127.0.0.7")) == (b"", True)
        assert waap.get("/-/healthy").status == 200
        for connection in kept:
            connection.sendall(HEALTHY)
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        kept[0].close()
        wait_until(lambda: answers_to(waap.port, HEALTHY, "127.0.0.7") == [200])


# The other timeout is always longer than a client waits, so that only the one under test can end the connection.


def test_header_timeout(start):
    waap = start("--web.header-timeout=1s", "--web.idle-timeout=1d")
    for begun in (b"", b"GET /-/heal", b"GET /-/healthy HTTP/1.1\r\nHost: "):
        begin = time.monotonic()
        assert exchange(waap.port, begun) == (b"", True)
        assert time.monotonic() - begin > 0.9
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", waap.port), LIMIT) as connection:
        with pytest.raises(OSError):
            for byte in HEALTHY * 100:  # a byte at a time is no way round it
                connection.sendall(bytes([byte]))
                pace(0.05)
    assert time.monotonic() - begin > 0.9


def test_idle_timeout(start):
    waap = start("--web.idle-timeout=1s", "--web.header-timeout=10m")
    begin = time.monotonic()
    data, closed = exchange(waap.port, HEALTHY)
    assert statuses(data) == [200]
    assert closed
    assert time.monotonic() - begin > 0.5


@pytest.mark.parametrize("first", [b"", HEALTHY])
def test_a_body_by_drops_is_cut_off(start, first):
    waap = start("--web.idle-timeout=1s", "--web.header-timeout=10m")
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", waap.port), LIMIT) as connection:
        connection.sendall(first + b"POST /-/reload HTTP/1.1\r\n" + HOST)
        connection.sendall(b"Content-Length: 1000\r\n\r\n")
        with pytest.raises(OSError):
            for _ in range(999):
                connection.sendall(b"x")
                pace(0.05)
    assert time.monotonic() - begin > 0.9


@pytest.mark.parametrize("pieces", [0, 1000])
def test_a_body_that_arrives_too_slowly_is_answered_with_408(start, pieces):
    waap = start("--web.header-timeout=1s")
    with socket.create_connection(("127.0.0.1", waap.port), 60) as connection:
        connection.sendall(b"POST /-/reload HTTP/1.1\r\n" + HOST + b"Content-Length: 9999\r\n\r\n")
        for _ in range(pieces):
            connection.sendall(b"x")
            if select.select([connection], [], [], 0.1)[0]:
                break
        answer, closed = read_all(connection)
    assert statuses(answer) == [408] and b"too slowly" in answer and closed
    assert float(waap.samples()["waap_http_connections_evicted_total"]) == 1


LENGTH = b"POST /-/reload HTTP/1.1\r\n" + HOST + b"Content-Length: 50000\r\n\r\n"
CHUNKS = b"POST /-/reload HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n9\r\n"


@pytest.mark.parametrize("begun", [LENGTH + b"x", CHUNKS + b"x", b"GET /-/healthy HT", HEALTHY])
def test_who_leaves_is_noticed(start, begun):
    """Also where the last words and the farewell come as one, so that one event tells of both."""
    waap = start()
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", waap.port), LIMIT) as connection:
            connection.sendall(begun)
    wait_until(lambda: float(waap.samples()["waap_http_connections"]) == 1)
    assert waap.samples()["waap_http_connections_evicted_total"] == "0"


def test_who_only_listens_gets_an_answer(waap):
    with socket.create_connection(("127.0.0.1", waap.port), LIMIT) as connection:
        connection.sendall(b"GET /metrics?collect[]=slow HTTP/1.1\r\n" + HOST + b"\r\n" + HEALTHY)
        connection.shutdown(socket.SHUT_WR)
        assert statuses(read_all(connection)[0]) == [200, 200]


# ---- connections ----


def test_keep_alive(waap):
    connection = http.client.HTTPConnection("127.0.0.1", waap.port, timeout=LIMIT)
    paths = ["/metrics?collect[]=zoo", "/nothing", "/", "/metrics?collect[]=x", "/-/healthy"]
    with contextlib.closing(connection):
        connection.connect()
        sock = connection.sock
        for path in paths * 3:
            connection.request("GET", path)
            connection.getresponse().read()
            assert connection.sock is sock
        connection.request("POST", "/-/reload", body="x" * 100)
        assert connection.getresponse().read()
        assert connection.sock is sock
        connection.request("GET", "/-/healthy", headers={"Connection": "close"})
        answer = connection.getresponse()
        assert answer.headers["Connection"].lower() == "close"


def test_connections_that_are_announced_late(fake_binary, started):
    """As libmicrohttpd 1.0 does, several at once and each with its own request."""
    late = fake_binary.parent / "late_microhttpd.so"
    env = {"LD_PRELOAD": str(late), "ASAN_OPTIONS": "verify_asan_link_order=0"}
    running = started(Waap(fake_binary, *flags_for("zoo"), env=env))
    paths = ["/-/healthy", "/metrics", "/nothing"] * 20
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = pool.map(running.get, paths)
        assert [answer.status for answer in answers] == [200, 200, 404] * 20


def test_pipelined_requests_are_answered_in_order(waap):
    """Those behind one that waits for its collectors, too."""
    slow = b"GET /metrics?collect[]=slow HTTP/1.1\r\n" + HOST + b"\r\n"
    last = b"GET /nothing HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    data, closed = exchange(waap.port, HEALTHY + slow + HEALTHY + last)
    assert closed
    assert statuses(data) == [200, 200, 200, 404]
    parts = [data.index(b"waap is healthy"), data.index(b"slow_calls_total"), data.index(b"404:")]
    assert parts == sorted(parts)


def test_a_body_nobody_wants_is_not_the_next_request(waap):
    hidden = b"POST /nothing HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(SMUGGLED)
    assert answers_to(waap.port, hidden + SMUGGLED) == [404]
    hidden = b"GET /-/healthy HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(SMUGGLED)
    assert answers_to(waap.port, hidden + SMUGGLED) == [200]


def test_expect_continue(waap):
    head = b"POST /-/reload HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    with socket.create_connection(("127.0.0.1", waap.port), LIMIT) as connection:
        connection.sendall(head)
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"abc")
        assert statuses(connection.recv(1000)) == [403]


def test_who_leaves_while_waiting_is_not_missed(waap):
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", waap.port), LIMIT) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\n" + HOST + b"\r\n")
    assert waap.get("/metrics").status == 200

    def in_flight():
        return waap.samples(path="/metrics?collect[]=zoo")["waap_scrapes_in_flight"]

    wait_until(lambda: in_flight() == "1")


def test_requests_are_counted(start):
    waap = start()
    for path in ("/", "/metrics", "/nowhere", "/elsewhere"):
        waap.get(path)
    samples = waap.samples()
    count = "waap_http_requests_total"
    assert samples[f'{count}{{code="200",handler="/"}}'] == "1"
    assert samples[f'{count}{{code="200",handler="/metrics"}}'] == "1"
    assert samples[f'{count}{{code="404",handler="other"}}'] == "2"
    assert samples['waap_http_request_duration_seconds_count{handler="other"}'] == "2"
    assert samples["waap_scrapes_in_flight"] == "1"
    assert samples["waap_http_connections"] == "1"


# ---- lifecycle ----


def test_quit_and_reload_where_allowed(start):
    waap = start("--web.enable-lifecycle")
    for method in ("POST", "PUT"):
        answer = waap.get("/-/reload", method=method)
        assert (answer.status, answer.text) == (200, "configuration applied\n")
    assert waap.get("/-/quit", method="PUT").status == 200
    assert waap.wait_exit() == 0


def test_quit_and_reload_only_from_here(start):
    waap = start("--web.enable-lifecycle")
    for headers in ({"X-Forwarded-For": "10.1.2.3"}, {"Origin": "http://elsewhere.example"}):
        for path in ("/-/quit", "/-/reload"):
            answer = waap.get(path, headers, method="POST")
            assert answer.status == 403
    assert "may not write here" in answer.text
    headers = {"X-Forwarded-For": "10.1.2.3"}
    for network, status in (("127.0.0.0/8", 403), ("127.0.0.1", 200)):
        trusting = start("--web.enable-lifecycle", f"--push.allow={network}")
        assert trusting.get("/-/reload", headers, method="POST").status == status


def test_reload_under_load(start, tmp_path):
    file = tmp_path / "waap.yaml"
    file.write_text("collector: {bench: {enabled: true}}\n")
    waap = start("--web.enable-lifecycle", f"--config.file={file}", "--collector.sampled")
    answers, done = [], threading.Event()

    def scrape():
        while not done.is_set():
            answers.append(waap.get("/metrics").status)

    threads = [threading.Thread(target=scrape) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(12):
        series = turn % 3 * 10
        file.write_text(f"collector: {{bench: {{enabled: true, series: {series}}}}}\n")
        if turn % 4 == 3:
            file.write_text("nonsense: 1\n")
        good = turn % 4 != 3
        assert waap.get("/-/reload", method="POST").status == (200 if good else 500)
        scraped = len(answers)
        wait_until(lambda: len(answers) > scraped, what="a scrape")
    done.set()
    for thread in threads:
        thread.join()
    assert set(answers) == {200}
    assert waap.stop()[0] == 0


def test_hangup_and_terminate_at_once(start, tmp_path):
    """A reload that ends while the daemon stops has nothing to apply itself to any more."""
    file = tmp_path / "waap.yaml"
    file.write_text("")
    for _ in range(5):
        waap = start(f"--config.file={file}")
        waap.process.send_signal(signal.SIGHUP)
        waap.process.send_signal(signal.SIGTERM)
        assert waap.wait_exit() == 0


def test_who_asks_while_it_stops_is_refused(start, hang_file):
    """Between the last answer and the end there are connections, but no collectors any more."""

    def ask_between():
        hang_file.touch()
        waap = start(*flags_for("hang"), f"--collector.hang.file={hang_file}", "--scrape.timeout=10m")
        with socket.create_connection(("127.0.0.1", waap.port), LIMIT) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: waap\r\n\r\n")
            wait_until(lambda: connection.recv(65536).endswith(b"</html>\n"), what="the page")
            scrape = threading.Thread(target=waap.get, args=("/metrics",))
            scrape.start()
            wait_reached(hang_file)
            waap.process.send_signal(signal.SIGTERM)
            scrape.join()
            pace(0.05)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: waap\r\n\r\n")
            hang_file.unlink()
            got = statuses(read_all(connection)[0])
        assert waap.wait_exit() == 0
        assert got in ([], [200], [503])  # too late, too early
        return got == [503]

    wait_until(ask_between, what="a request between the last answer and the end")


# ---- addresses ----


def get_over(connection, path="/-/healthy"):
    connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    return read_all(connection)[0]


def unix_get(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        return statuses(get_over(connection))


def tcp_get(host, port):
    with socket.create_connection((host, port), LIMIT) as connection:
        return statuses(get_over(connection))


def fails(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, **options)


def test_several_addresses(start, tmp_path):
    ports = free_port(), free_port()
    waap = start(
        f"--web.listen-address=127.0.0.2:{ports[0]}",
        f"--web.listen-address=[::1]:{ports[1]}",
        f"--web.listen-address=unix:{tmp_path}/http.sock",
        "--web.listen-address=localhost:0",
    )
    assert waap.get("/-/healthy").status == 200
    assert tcp_get("127.0.0.2", ports[0]) == [200]
    assert tcp_get("::1", ports[1]) == [200]
    assert unix_get(tmp_path / "http.sock") == [200]
    port = int(wait_until(lambda: waap.addresses()[4:])[0].rsplit(":", 1)[1])
    assert port not in (0, waap.port)
    assert tcp_get("localhost", port) == [200]


def test_the_first_scrape_of_each_client_is_logged(start, tmp_path):
    waap = start("--web.listen-address=127.0.0.1:0", f"--web.listen-address=unix:{tmp_path}/http.sock")
    assert waap.get("/metrics?collect[]=nonsense").status == 400
    assert waap.get("/metrics", {"Referer": f"{waap.url}/"}).status == 200
    assert "first scrape" not in waap.output()
    for _ in range(2):
        assert waap.get("/metrics", {"User-Agent": "Prometheus/2.53.0"}).status == 200
        with contextlib.closing(connect(f"unix:{tmp_path}/http.sock")) as connection:
            connection.request("GET", "/metrics")
            assert connection.getresponse().status == 200
    logged = re.findall(r'metrics: first scrape by ([^"]*)', waap.output())
    assert logged == ["127.0.0.1 (Prometheus/2.53.0)", "a Unix socket's client (no User-Agent)"]


def test_the_default_is_all_addresses_of_both_families(fake_binary):
    port = free_port()
    with Waap(fake_binary, f"--web.listen-address=:{port}") as waap:
        assert waap.addresses() == [f"[::]:{port}"]
        assert tcp_get("127.0.0.1", port) == [200]
        assert tcp_get("127.9.9.9", port) == [200]
        assert tcp_get("::1", port) == [200]


def test_unix_socket_with_mode_and_group(start, tmp_path):
    path = tmp_path / "http.sock"
    group = grp.getgrgid(os.getgroups()[-1] if os.getgroups() else os.getgid()).gr_name
    waap = start(
        f"--web.listen-address=unix:{path}", "--web.listen-mode=0606", f"--web.listen-group={group}"
    )
    status = path.stat()
    assert stat.S_ISSOCK(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o606
    assert grp.getgrgid(status.st_gid).gr_name == group
    assert unix_get(path) == [200]
    waap.stop()
    assert not path.exists()


def test_reload_changes_the_mode_of_a_kept_socket(start, tmp_path):
    path, config = tmp_path / "http.sock", tmp_path / "waap.yaml"
    config.write_text("web: {listen_mode: '0600'}\n")
    waap = start(f"--web.listen-address=unix:{path}", f"--config.file={config}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config.write_text("web: {listen_mode: '0666'}\n")
    waap.process.send_signal(signal.SIGHUP)
    wait_until(lambda: stat.S_IMODE(path.stat().st_mode) == 0o666, what="the other mode")
    assert unix_get(path) == [200]


def test_stale_unix_socket_is_replaced(start, tmp_path):
    path = tmp_path / "http.sock"
    first = start(f"--web.listen-address=unix:{path}")
    first.stop(signal=signal.SIGKILL)
    assert path.exists()
    start(f"--web.listen-address=unix:{path}")
    assert unix_get(path) == [200]


@pytest.mark.parametrize(
    "address, words",
    [
        ("unix:{path}", "unix:{path}: another process listens there"),
        ("127.0.0.1:{port}", "127.0.0.1:{port}: Address already in use"),
        ("192.0.2.1:9090", "192.0.2.1:9090: Cannot assign requested address"),
        ("no-such-host.invalid:9090", "no-such-host.invalid:9090: "),
        ("unix:{file}", "unix:{file}: a regular file is there and is left alone: "),
        ("unix:{folder}", "unix:{folder}: a directory is there and is left alone: "),
        ("unix:/no/such/folder/sock", "unix:/no/such/folder/sock: No such file or directory"),
    ],
)
def test_an_address_that_cannot_be_had_is_an_error(start, fake_binary, tmp_path, address, words):
    path = tmp_path / "http.sock"
    waap = start(f"--web.listen-address=unix:{path}")
    file = tmp_path / "file"
    file.write_text("precious")
    names = {"path": path, "port": waap.port, "file": file, "folder": tmp_path}
    done = fails(fake_binary, "serve", "--push.table=", f"--web.listen-address={address.format(**names)}")
    assert done.returncode == 1
    assert "listen on " + words.format(**names) in done.stderr
    assert "(see --web.listen-address)" in done.stderr
    assert unix_get(path) == [200]
    assert file.read_text() == "precious"


def test_an_unknown_group_is_an_error(fake_binary, tmp_path):
    path = tmp_path / "http.sock"
    done = fails(
        fake_binary, "serve", "--push.table=", f"--web.listen-address=unix:{path}", "--web.listen-group=nobodys-own"
    )
    assert done.returncode == 1
    assert "nobodys-own" in done.stderr
    assert not path.exists()


def systemd_command(binary, *flags):
    """Hands descriptor 3 over as systemd does: the same process, then another program."""
    code = (
        "import os, sys; os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1');"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    return [sys.executable, "-c", code, str(binary), "serve", "--push.table=", *flags]


@contextlib.contextmanager
def ended(process):
    """Whatever becomes of the test, the program does not outlive it."""
    with process:
        try:
            yield
        finally:
            process.kill()


@pytest.mark.parametrize("flags", [["--web.systemd-socket"], ["--web.listen-address=127.0.0.1:1"]])
def test_systemd_socket_activation(fake_binary, flags):
    """Whoever hands sockets over need not say so, and other addresses give way."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        # It waits in the backlog, as whatever came before the daemon was up does.
        early = socket.create_connection(("127.0.0.1", port), LIMIT)
        command = systemd_command(fake_binary, *flags, "--web.enable-lifecycle")
        script = 'exec 3<&"$0"; exec "$@"'
        process = subprocess.Popen(
            ["bash", "-c", script, str(listener.fileno()), *command],
            pass_fds=[listener.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        )
    with ended(process):
        with early:
            assert statuses(get_over(early)) == [200]
        assert tcp_get("127.0.0.1", port) == [200]
        with socket.create_connection(("127.0.0.1", port), LIMIT) as connection:
            connection.sendall(b"POST /-/reload HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            assert statuses(read_all(connection)[0]) == [200]
        assert tcp_get("127.0.0.1", port) == [200]
        process.terminate()
        assert "listening on 127.0.0.1:" in process.communicate(timeout=LIMIT)[1]
        assert process.returncode == 0


def test_systemd_sockets_that_are_none(fake_binary):
    done = fails(fake_binary, "serve", "--push.table=", "--web.systemd-socket")
    assert done.returncode == 1
    assert "LISTEN_FDS" in done.stderr
    with open(os.devnull) as file:
        command = systemd_command(fake_binary, "--web.systemd-socket")
        script = 'exec 3<&"$0"; exec "$@"'
        done = fails("bash", "-c", script, str(file.fileno()), *command, pass_fds=[file.fileno()])
    assert done.returncode == 1
    assert "descriptor 3 of systemd is not a listening socket" in done.stderr


def test_reload_changes_addresses_as_a_whole(fake_binary, tmp_path):
    ports = [free_port() for _ in range(3)]
    file = tmp_path / "waap.yaml"
    sock = tmp_path / "http.sock"

    def listen(*addresses):
        lines = "".join(f"    - {address}\n" for address in addresses)
        file.write_text(f"web:\n  enable_lifecycle: true\n  listen_address:\n{lines}")

    listen(f"127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]}")
    command = [fake_binary, "serve", "--push.table=", f"--config.file={file}"]
    url = f"http://127.0.0.1:{ports[0]}"
    with Program(command, url).wait_ready() as waap, socket.socket() as taken:
        kept = http.client.HTTPConnection("127.0.0.1", ports[1], timeout=LIMIT)
        kept.request("GET", "/-/healthy")
        kept.getresponse().read()
        kept_socket = kept.sock

        listen(f"127.0.0.1:{ports[0]}", f"unix:{sock}", f"127.0.0.1:{ports[2]}")
        assert waap.get("/-/reload", method="POST").status == 200
        assert unix_get(sock) == [200]
        assert tcp_get("127.0.0.1", ports[2]) == [200]
        with pytest.raises(ConnectionRefusedError):
            tcp_get("127.0.0.1", ports[1])
        kept.request("GET", "/-/healthy")  # a connection that is open stays
        assert kept.getresponse().read() and kept.sock is kept_socket
        kept.close()

        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bad = f"127.0.0.1:{taken.getsockname()[1]}"
        listen(f"127.0.0.1:{ports[1]}", bad)
        answer = waap.get("/-/reload", method="POST")
        assert answer.status == 500
        assert f"listen on {bad}: Address already in use" in answer.text
        assert waap.get("/-/ready").status == 200
        assert unix_get(sock) == [200]
        with pytest.raises(ConnectionRefusedError):
            tcp_get("127.0.0.1", ports[1])
        assert "\nwaap_config_last_reload_successful 0\n" in waap.get("/metrics").text

        listen(f"127.0.0.1:{ports[0]}")
        waap.process.send_signal(signal.SIGHUP)
        wait_until(lambda: not sock.exists())
        assert "\nwaap_config_last_reload_successful 1\n" in waap.get("/metrics").text


# ---- process metrics ----


def test_process_metrics_are_those_of_the_clients(waap):
    client = pytest.importorskip("prometheus_client")
    from prometheus_client.parser import text_string_to_metric_families

    registry = client.CollectorRegistry()
    client.ProcessCollector(registry=registry)
    theirs = {family.name: family.type for family in registry.collect()}
    text = waap.get("/metrics?collect[]=zoo").text
    ours = {family.name: family.type for family in text_string_to_metric_families(text)}
    assert len(theirs) >= 6
    assert {name: ours.get(name) for name in theirs} == theirs


def test_process_metrics_are_of_this_process(waap):
    samples = waap.samples(path="/metrics?collect[]=zoo")
    proc = f"/proc/{waap.process.pid}"
    assert float(samples["process_open_fds"]) == pytest.approx(len(os.listdir(f"{proc}/fd")), abs=2)
    assert float(samples["process_threads"]) == len(os.listdir(f"{proc}/task"))
    rss = waap.rss_kib() * 1024
    assert float(samples["process_resident_memory_bytes"]) == pytest.approx(rss, rel=0.2)
    assert abs(float(samples["process_start_time_seconds"]) - time.time()) < 600


def test_without_metrics_about_itself(start):
    page = start("--web.disable-exporter-metrics").get("/metrics").text
    assert "zoo_frames" in page
    assert "waap_" not in page
    assert "process_" not in page
