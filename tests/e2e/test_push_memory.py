"""What one push may take of memory while it is read and applied, whatever it says."""

import gzip
import json
import pathlib

import pytest

from test_gateway import PROTOBUF_TYPE, double, nested, varint

ALONE = ("--collector.disable-defaults", "--collector.push")
MAX_BODY = 10 << 20  # the default of web.max-body-size
PACKED = {"Content-Encoding": "gzip"}
JSON = "/api/v1/push?plugin=p"
GROUP = "/metrics/job/j"


def filled(piece, start=b"", end=b"", between=b"", size=MAX_BODY):
    """The largest body that is allowed, of one piece again and again."""
    n = (size - len(start) - len(end)) // (len(piece) + len(between))
    return start + between.join([piece] * n) + end


def numbered(pattern, start="", end=""):
    """The same with a number in each piece, which is text."""
    pieces, size = [start], len(start) + len(end)
    while size < MAX_BODY:
        pieces.append(pattern.replace("#", str(len(pieces))))
        size += len(pieces[-1])
    size -= len(pieces.pop())
    return "".join([*pieces, end]).encode()


def delimited(message):
    return varint(len(message)) + message


def family(name, kind, metrics):
    return delimited(nested(1, name) + varint(3 << 3) + varint(kind) + metrics)


def label(name, value):
    return nested(1, nested(1, name) + nested(2, value))


UNTYPED, HISTOGRAM = 3, 4
LONG = "v" * 560
INNER = MAX_BODY - 100  # what messages around it leave

BODIES = {
    "json: plain metrics": (JSON, lambda: filled(b'"a":{"value":1}', b"{", b"}", b",")),
    "json: lines": (JSON, lambda: filled(b'{"metric":"a","inc":1}\n')),
    "json: array": (JSON, lambda: filled(b'{"metric":"a","inc":1}', b"[", b"]", b",")),
    "json: observations": (
        JSON,
        lambda: filled(b"1", b'{"metric":"a","type":"histogram","observe":[', b"]}", b","),
    ),
    "json: buckets": (
        JSON,
        lambda: filled(b"1", b'{"metric":"a","observe":1,"buckets":[', b"]}", b","),
    ),
    "json: many short arrays": (JSON, lambda: filled(b'{"metric":"a","observe":[1,1,1,1]}')),
    "json: labels": (
        JSON,
        lambda: filled(
            json.dumps(
                {"metric": "a", "inc": 1, "labels": {f"l{i}": "1" for i in range(64)}}
            ).encode()
        ),
    ),
    "json: two plugins in turn": (
        JSON,
        lambda: filled(
            b'{"plugin":"a","metric":"a","inc":1}{"plugin":"b","metric":"b","inc":1}'
        ),
    ),
    "text: series": (GROUP, lambda: numbered('a{b="#"} 1\n')),
    "text: families": (GROUP, lambda: numbered("a# 1\n")),
    "text: one histogram": (
        GROUP,
        lambda: numbered('h_bucket{le="#"} 1\n', "# TYPE h histogram\n"),
    ),
    "text: histograms": (
        GROUP,
        lambda: numbered('h_bucket{a="#",le="1"} 1\n', "# TYPE h histogram\n"),
    ),
    "text: summary": (GROUP, lambda: numbered('s{quantile="#"} 1\n', "# TYPE s summary\n")),
    "text: labels": (
        GROUP,
        lambda: numbered("a{" + ",".join(f'l{i}="#"' for i in range(32)) + "} 1\n"),
    ),
    "protobuf: empty values": (
        GROUP,
        lambda: family(b"a", UNTYPED, filled(nested(4, nested(5, b"")), size=INNER)),
    ),
    "protobuf: families": (
        GROUP,
        lambda: filled(family(b"a", UNTYPED, nested(4, nested(5, b"")))),
    ),
    "protobuf: labels": (
        GROUP,
        lambda: family(
            b"a",
            UNTYPED,
            filled(
                nested(
                    4,
                    b"".join(label(b"l%d" % i, b"1") for i in range(32)) + nested(5, double(1, 1)),
                ),
                size=INNER,
            ),
        ),
    ),
    "protobuf: empty buckets": (
        GROUP,
        lambda: family(b"h", HISTOGRAM, nested(4, nested(7, filled(nested(3, b""), size=INNER)))),
    ),
    "protobuf: the same value again": (
        GROUP,
        lambda: family(b"a", UNTYPED, nested(4, filled(nested(5, b""), size=INNER))),
    ),
}

ACCEPTED = {
    "json: updates with a long help": (
        JSON,
        lambda: filled(b'{"metric":"a","type":"counter","inc":1,"help":"%s"}\n' % (b"h" * 100)),
    ),
    "json: 9,000 series": (
        JSON,
        lambda: numbered(
            '{"metric":"a","type":"gauge","set":1,"labels":{"b":"%s","c":"%s#"}}\n' % (LONG, LONG)
        ),
    ),
    "text: 9,000 series": (GROUP, lambda: numbered('a#{b="%s",c="%s"} 1\n' % (LONG, LONG))),
}


def status_kib(program, key):
    for line in pathlib.Path(f"/proc/{program.process.pid}/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1])
    raise AssertionError(key)


def peak_of(program, path, body, headers):
    """Answer, and bytes that the push took at most beyond those that were in use before it."""
    pathlib.Path(f"/proc/{program.process.pid}/clear_refs").write_text("5")
    before = status_kib(program, "VmRSS")
    answer = program.get(path, headers, method="POST", body=gzip.compress(body))
    return answer, (status_kib(program, "VmHWM") - before) * 1024


def check_peak(daemon, name, path, body):
    assert 0.99 * MAX_BODY < len(body) <= MAX_BODY
    headers = {**PACKED, **(PROTOBUF_TYPE if name.startswith("protobuf") else {})}
    answer, peak = peak_of(daemon, path, body, headers)
    print(f"{name}: {answer.status}, {peak / len(body):.1f} x: {answer.text.strip()[:150]}")
    assert peak < 3 * len(body)
    return answer


@pytest.mark.parametrize("name", BODIES)
def test_the_largest_push_takes_less_than_three_times_its_size(waap, name):
    path, make = BODIES[name]
    daemon = waap(*ALONE)
    check_peak(daemon, name, path, make())
    assert daemon.get("/-/healthy").status == 200


@pytest.mark.parametrize("name", ACCEPTED)
def test_so_does_one_that_is_accepted_beside_the_series_it_makes(waap, name):
    path, make = ACCEPTED[name]
    daemon = waap(*ALONE)
    body = make()
    lines = body.splitlines(keepends=True)
    for i in range(20):
        part = b"".join(lines[i::20])
        assert daemon.get(path, method="POST", body=part).status == 200
    assert check_peak(daemon, name, path, body).status == 200
