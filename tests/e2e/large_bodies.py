"""The largest bodies that may be pushed, of which each takes as much memory as its format allows."""

import json

from test_gateway import PROTOBUF_TYPE, double, nested, varint

MAX_BODY = 10 << 20  # the default of web.max-body-size
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


def packed_headers(name):
    """Of a body of that name, once it is compressed."""
    return {"Content-Encoding": "gzip", **(PROTOBUF_TYPE if name.startswith("protobuf") else {})}
