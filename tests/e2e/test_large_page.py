"""Pages of many pieces, and the little room that libmicrohttpd has for the list of them beside a request's head."""

import gzip
import json
import socket

import pytest

N_FAMILIES = 40


def push(daemon, updates):
    for i in range(0, len(updates), 2000):
        body = json.dumps(updates[i:i + 2000]).encode()
        answer = daemon.get("/api/v1/push", method="POST", body=body)
        assert answer.status == 200, answer.text


def gauges(n):
    return [{"plugin": "p", "metric": f"g{i % N_FAMILIES}", "type": "gauge", "set": i, "labels": {"i": str(i)}}
            for i in range(n)]


def histograms(n):
    return [{"plugin": "p", "metric": "h", "type": "histogram", "observe": i, "labels": {"i": str(i)}}
            for i in range(n)]


@pytest.fixture
def daemon(waap):
    return waap("--collector.disable-defaults", "--collector.push", "--web.disable-exporter-metrics")


def ask(daemon, head, behind=b""):
    """Sends a request with that much in its head and behind it; what comes back, up to the end of the page."""
    with socket.create_connection(("127.0.0.1", daemon.port), 30) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n" + behind)
        answer = b""
        while b"\r\n\r\n" not in answer:
            data = client.recv(65536)
            if not data:
                return answer, b""
            answer += data
        top, page = answer.split(b"\r\n\r\n", 1)
        length = int(dict(line.lower().split(b": ", 1) for line in top.split(b"\r\n")[1:])[b"content-length"])
        while len(page) < length:
            data = client.recv(1 << 20)
            assert data, "the page ends early"
            page += data
        return top, page[:length]


@pytest.mark.parametrize("updates", [gauges(5000), histograms(10000)], ids=["gauges", "histograms"])
def test_a_page_is_the_same_however_it_is_sent(daemon, updates):
    push(daemon, updates)
    want = gzip.decompress(ask(daemon, b"Accept-Encoding: gzip\r\n")[1])
    assert want.count(b"\n") > len(updates)
    heads = [b"X-Pad: " + b"a" * n + b"\r\n" for n in (0, 1000, 3000, 5000, 8000, 12000, *range(14000, 15800, 100))]
    heads += [b"".join(b"a%d:b\r\n" % i for i in range(n)) for n in (10, 50, 100, 150, 200)]
    n_pages = 0
    for head in heads:
        top, page = ask(daemon, head)
        if top.startswith(b"HTTP/1.1 200 "):
            assert page == want
            n_pages += 1
        else:
            assert top == b"" or top.startswith(b"HTTP/1.1 431 "), top
    assert n_pages > 10


def test_requests_that_wait_behind_one_take_no_room(daemon):
    push(daemon, gauges(5000))
    want = ask(daemon, b"")[1]
    for n in range(0, 16000, 500):
        top, page = ask(daemon, b"", b"GET /-/healthy HTTP/1.1\r\nHost: x\r\nX-Pad: " + b"a" * n)
        assert top.startswith(b"HTTP/1.1 200 ") and page == want
