"""Clients of a Pushgateway push to us: the same requests to Debian's and to ours, then a look at
both pages."""

import gzip
import json
import os
import shutil
import string
import struct
import subprocess
import urllib.parse

import prometheus_client
import pytest

from peers import Pushgateway
from running import ROOT, wait_until

PAGE = "/metrics?collect[]=push"

BODY = """\
# TYPE a_total counter
a_total{x="1"} 3
# HELP b hello \\\\ "world"
# TYPE b gauge
b 1.5
# TYPE h histogram
h_bucket{le="0.5"} 1
h_bucket{le="1"} 2
h_bucket{le="+Inf"} 3
h_sum 4
h_count 3
# TYPE s summary
s{quantile="0.5"} 7
s_sum 3
s_count 9
u NaN
"""


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def nested(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def double(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def family(name, kind, metric):
    message = nested(1, name) + varint(3 << 3) + varint(kind) + nested(4, metric)
    return varint(len(message)) + message


PROTOBUF = family(b"p_total", 0, nested(3, double(1, 2.5))) + family(
    b"p_seconds",
    4,
    nested(1, nested(1, b"x") + nested(2, b"1"))
    + nested(
        7,
        varint(8)
        + varint(3)
        + double(2, 4.5)
        + nested(3, varint(8) + varint(2) + double(2, 1.0))
        + nested(3, varint(8) + varint(3) + double(2, float("inf"))),
    ),
)
PROTOBUF_TYPE = {
    "Content-Type": "application/vnd.google.protobuf; "
    "proto=io.prometheus.client.MetricFamily; encoding=delimited"
}
PROTOBUF_QUOTED = {
    "Content-Type": 'application/vnd.google.protobuf; encoding="delimited"; proto="io.prometheus.client.MetricFamily"'
}
TWO_LABELS = nested(1, nested(1, b"x") + nested(2, b"1")) + nested(1, nested(1, b"x") + nested(2, b"2"))

# Each on top of what the ones before it left behind.
REQUESTS = [
    ("PUT", "job/j1/instance/i1", BODY, {}),
    ("PUT", "job/j2", BODY, {}),
    ("POST", "job/j2", "# TYPE b gauge\nb 2\n", {}),  # the rest of the group stays
    ("PUT", "job/j3", "c 1\n", {}),
    ("PUT", "job/j3", "d 1\n", {}),  # c goes
    ("POST", "job/j3", 'd{x="1"} 2\n', {}),  # d without labels goes
    ("POST", "job/j4", "a_total 3\n", {}),  # untyped here, a counter there
    ("POST", "job/j5", "# TYPE a_total gauge\na_total 3\n", {}),
    ("POST", "job/j6", "c 3 1000\n", {}),  # a timestamp
    ("POST", "job/j7", "c 3", {}),  # no newline
    ("POST", "job/j9", 'e{job="other",instance="q"} 3\n', {}),  # the group's job counts
    ("POST", "job/a/b", "c 3\n", {}),
    ("POST", "job/a/__x/b", "c 3\n", {}),
    ("POST", "job/a/1x/b", "c 3\n", {}),
    ("POST", "job@base64/YS9i/x@base64/L3Zhcg", "c 3\n", {}),
    ("POST", "job/j10/x@base64/*", "c 3\n", {}),
    ("POST", "job/j10/", "c 3\n", {}),
    ("POST", "job/j10/x/y/", "c 3\n", {}),
    ("POST", "job/j10/x/y/z", "c 3\n", {}),
    ("POST", "job/j10/y/", "c 3\n", {}),
    ("POST", "job/j18/y@base64/", "c 3\n", {}),
    ("POST", "job/j19/y@base64/=", "c 3\n", {}),
    ("POST", "job/j20/y/a%2Fb", "c 3\n", {}),
    ("POST", "job/j11", "", {}),  # refreshes the time
    ("POST", "job/j%20%C3%BC", "c 3\n", {}),
    ("POST", "job/j12", gzip.compress(b"z 1\n"), {"Content-Encoding": "gzip"}),
    ("POST", "job/j12", b"not gzip", {"Content-Encoding": "gzip"}),
    ("POST", "job/j13", PROTOBUF, PROTOBUF_TYPE),
    ("POST", "job/j13", PROTOBUF[:-1], PROTOBUF_TYPE),
    ("PUT", "job/j14", "c 1\n", {}),
    ("DELETE", "job/j14", None, {}),
    ("DELETE", "job/nobody", None, {}),
    ("GET", "job/j1", None, {}),
    ("POST", "job/j15", "1a 1\n", {}),
    ("POST", "job/j15", "", {}),
    ("PUT", "job/j16", 'f{x=""} 1\n', {}),
    ("POST", "job/j22", 'c{x="1"} 3\nc{x="1"} 4\n', {}),  # readable, but at odds with itself
    ("POST", "job/j23", family(b"p", 1, TWO_LABELS + nested(2, double(1, 2.5))), PROTOBUF_TYPE),
    ("POST", "job/j24", family(b"p", 0, nested(2, double(1, 2.5))), PROTOBUF_TYPE),
    ("POST", "job/j25", 'c{x="1",x="2"} 3\n', {}),  # not even readable
    ("POST", "job/j26", PROTOBUF.replace(b"p_", b"q_"), PROTOBUF_QUOTED),
    ("PUT", "job/j21?token=x&via", "f 1\n", {}),
    ("POST", "job/j18/le/5/quantile/6", "k 1\n", {}),
    ("POST", "job/j18/quantile/5", '# TYPE s summary\ns{quantile="0.5"} 1\ns_sum 3\ns_count 2\n', {}),
    ("PUT", "job/j17", "g 1e308\ni -Inf\nj 123456789012345678901234567890\n", {}),
]

OWN = ("go_", "process_", "promhttp_", "pushgateway_", "waap_", "plugin_param")
MOMENTS = ("push_time_seconds", "push_failure_time_seconds")


@pytest.fixture
def ours(waap):
    return waap("--collector.disable-defaults", "--collector.push", "--web.enable-admin-api")


def comparable(labels):
    """Bounds as numbers; an empty label means none, but an empty instance must be said."""
    return frozenset(
        (name, str(float(value)) if name in ("le", "quantile") else value)
        for name, value in labels
        if value or name == "instance"
    )


def pushed(program, page):
    """What was pushed, as the Python client reads it; moments as whether there was one."""
    return {
        (name, comparable(labels)): value > 0 if name in MOMENTS else repr(value)
        for (name, labels), value in program.metrics(page).items()
        if not name.startswith(OWN)
    }


def send(program, method, path, body, headers):
    if isinstance(body, str):
        body = body.encode()
    return program.get(f"/metrics/{path}", headers, method, body=body)


def test_same_as_the_pushgateway(started, ours):
    theirs = started(Pushgateway("--persistence.file="))
    for method, path, body, headers in REQUESTS:
        answers = [send(program, method, path, body, headers) for program in (ours, theirs)]
        assert answers[0].status == answers[1].status, (path, body, [a.text for a in answers])
    got, want = pushed(ours, PAGE), pushed(theirs, "/metrics")
    assert got == want
    assert len(got) > 40


FIGURES = """\
# TYPE c counter
c 12345678901
# TYPE h histogram
h_bucket{le="2e+06"} 12345678
h_bucket{le="+Inf"} 22345678
h_sum 1e9
h_count 22345678
# TYPE s summary
s{quantile="0.99"} 1234567
s_sum 0.00001
s_count 9000000
i{instance="q"} 100000
n{x="1"} -1e+06
n{x="2"} -0
n{x="3"} +Inf
n{x="4"} 0.0001
"""


def listed(program):
    """The groups that a program lists, without their moments."""
    answer = program.get("/api/v1/metrics")
    assert answer.headers["Content-Type"] == "application/json"
    groups = json.loads(answer.body)["data"]
    for group in groups:
        for entry in group.values():
            if isinstance(entry, dict) and "time_stamp" in entry:
                entry.pop("time_stamp")
                entry["metrics"].sort(key=str)
        for name in MOMENTS:
            assert group[name].pop("help")
            for metric in group[name]["metrics"]:
                metric["value"] = float(metric["value"]) > 0
    return sorted(groups, key=lambda group: sorted(group["labels"].items()))


def test_lists_groups_as_the_pushgateway(started, ours):
    theirs = started(Pushgateway("--persistence.file="))
    for program in (ours, theirs):
        send(program, "PUT", "job/j1/instance/i1", BODY, {})
        send(program, "POST", "job/j1/instance/i1", "c 3 1000\n", {})
        send(program, "PUT", "job/j2", FIGURES, {})
    got = listed(ours)
    assert got == listed(theirs)
    assert [group["last_push_successful"] for group in got] == [False, True]


def test_python_client(ours):
    gateway = ours.url.removeprefix("http://")
    registry = prometheus_client.CollectorRegistry()
    frames = prometheus_client.Counter("frames", "Frames seen", ["cam"], registry=registry)
    took = prometheus_client.Histogram("took_seconds", "Time", registry=registry)
    frames.labels("top").inc(3)
    took.observe(0.3)
    key = {"instance": "a/b"}
    prometheus_client.push_to_gateway(gateway, "cars", registry, key)
    labels = {"job": "cars", "instance": "a/b"}
    page = ours.metrics(PAGE)
    assert page["frames_total", frozenset({**labels, "cam": "top"}.items())] == 3
    assert page["took_seconds_count", frozenset(labels.items())] == 1
    assert page["took_seconds_bucket", frozenset({**labels, "le": "0.25"}.items())] == 0

    more = prometheus_client.CollectorRegistry()
    prometheus_client.Gauge("speed", "", registry=more).set(7)
    prometheus_client.pushadd_to_gateway(gateway, "cars", more, key)
    page = ours.metrics(PAGE)
    assert page["speed", frozenset(labels.items())] == 7
    assert page["frames_total", frozenset({**labels, "cam": "top"}.items())] == 3

    prometheus_client.delete_from_gateway(gateway, "cars", key)
    assert not [name for name, _ in ours.metrics(PAGE) if name == "frames_total"]


JAVASCRIPT = """
const client = require("prom-client");
const [url] = process.argv.slice(1);
async function main() {
  const registry = new client.Registry();
  const frames = new client.Counter({name: "js_frames_total", help: "Frames", registers: [registry]});
  frames.inc(3);
  const gateway = new client.Pushgateway(url, {}, registry);
  const group = {jobName: "js", groupings: {instance: "a b"}};
  await gateway.push(group);
  frames.inc(4);
  await gateway.pushAdd(group);
  await gateway.push({jobName: "gone"});
  await gateway.delete({jobName: "gone"});
}
main().catch((error) => { console.error(error); process.exit(1); });
"""


def test_javascript_client(ours):
    modules = ROOT / "build/deps/prom-client/node_modules"
    node = shutil.which("node")
    if node is None or not modules.exists():
        pytest.skip("no node with prom-client on this machine (make deps)")
    done = subprocess.run(
        [node, "-e", JAVASCRIPT, ours.url],
        env={**os.environ, "NODE_PATH": str(modules)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    page = ours.samples(path=PAGE)
    frames = {name: value for name, value in page.items() if name.startswith("js_frames_total")}
    assert frames == {'js_frames_total{instance="a b",job="js"}': "7"}


def test_counters_add_on_request(ours):
    for _ in range(3):
        body = "# TYPE n_total counter\nn_total 2\n# TYPE g gauge\ng 2\n"
        assert send(ours, "POST", "job/j?mode=add", body, {}).status == 200
        body = '# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 5\nh_count 2\n'
        assert send(ours, "POST", "job/j?mode=add", body, {}).status == 200
    page = ours.samples(path=PAGE)
    assert page['n_total{instance="",job="j"}'] == "6"
    assert page['g{instance="",job="j"}'] == "2"
    assert page['h_bucket{instance="",job="j",le="1.0"}'] == "3"
    assert page['h_count{instance="",job="j"}'] == "6"
    assert page['h_sum{instance="",job="j"}'] == "15"


@pytest.mark.parametrize(
    "body, words",
    [
        ("n_total 2\n", "n_total: is untyped: "),
        ("# TYPE s summary\ns_sum 2\ns_count 1\n", "s: is a summary: "),
    ],
)
def test_what_cannot_be_added_is_refused(ours, body, words):
    """It would replace what is there, and nobody would notice."""
    assert send(ours, "POST", "job/j", body, {}).status == 200
    good = "# TYPE a_total counter\na_total 1\n"
    answer = send(ours, "POST", "job/j?mode=add", good + body.replace("2", "3"), {})
    assert (answer.status, answer.text.startswith(words)) == (400, True)
    values = {name: value for name, value in ours.samples(path=PAGE).items() if name[0] in "nsa"}
    assert "2" in values.values() and "3" not in values.values() and not any("a_total" in name for name in values)


def test_time_to_live_on_request(ours):
    assert send(ours, "POST", "job/j", "short 1\n", {}).status == 200
    assert 'short{instance="",job="j"}' in ours.samples(path=PAGE)
    assert send(ours, "POST", "job/j?ttl=1s", "short 1\n", {}).status == 200
    assert send(ours, "POST", "job/j", "long 1\n", {}).status == 200
    for method, job in (("PUT", "put"), ("POST", "post")):  # what is not said means never
        send(ours, "PUT", f"job/{job}?ttl=1s", "long 1\n", {})
        send(ours, method, f"job/{job}", "long 2\n", {})
    send(ours, "PUT", "job/last?ttl=1s", "short 1\n", {})
    wait_until(lambda: not any("short{" in name for name in ours.samples(path=PAGE)), what="the end of the short ones")
    page = ours.samples(path=PAGE)
    assert all(f'long{{instance="",job="{job}"}}' in page for job in ("j", "put", "post"))


def test_groups_go_with_their_last_series(waap):
    ours = waap("--collector.disable-defaults", "--collector.push", "--push.max-size-per-peer=32KiB")
    n = 0
    while (answer := send(ours, "PUT", f"job/ci/instance/{n}", "took 1\n", {})).status == 200:
        n += 1
    assert 10 < n < 30
    assert (answer.status, "push.max-size-per-peer" in answer.text) == (413, True)
    assert send(ours, "DELETE", f"job/ci/instance/{n}", None, {}).status == 202  # its failure is shown
    for i in range(n):
        assert send(ours, "PUT", f"job/ci/instance/{i}?ttl=1s", "took 1\n", {}).status == 200
    wait_until(lambda: not any('job="ci"' in name for name in ours.samples(path=PAGE)), what="the end of the groups")
    assert json.loads(ours.get("/api/v1/metrics").body)["data"] == []
    assert send(ours, "PUT", "job/one_more", "took 1\n", {}).status == 200


@pytest.mark.parametrize(
    "path, words",
    [
        ("job/j?mode=plus", 'mode: expected "add" or "replace", got "plus"'),
        ("job/j?ttl=soon", "ttl: expected a duration"),
        ("job/j?tll=1s", 'unknown parameter "tll", did you mean ttl?'),
        ("job/j?TTL=1s", 'unknown parameter "TTL", did you mean ttl?'),
        ("job/j?modes=add", 'unknown parameter "modes", did you mean mode?'),
    ],
)
def test_query_mistakes(ours, path, words):
    answer = send(ours, "POST", path, "a 1\n", {})
    assert answer.status == 400
    assert words in answer.text


@pytest.mark.parametrize(
    "path", ["job/j/path/%2Fvar%2Ftmp", "job/j/x/a%2fb%2Fc", "job/j/x//y/z", "job/j/x@base64//y/z"]
)
def test_slashes_in_values_are_refused(ours, path):
    """The Pushgateway redirects some (a client then loses its body) and files others under labels nobody named."""
    answer = send(ours, "POST", path, "a 1\n", {})
    assert (answer.status, "@base64/" in answer.text) == (400, True)
    assert not [name for name in ours.samples(path=PAGE) if name.startswith("a{")]


def test_names_of_collectors_are_refused(ours):
    answer = send(ours, "POST", "job/j", "ok 1\nnode_load1 99\n", {})
    assert answer.status == 400
    assert "node_load1" in answer.text
    assert not [name for name in ours.samples(path=PAGE) if name.startswith(("ok", "node_load1"))]


def test_a_series_given_twice_is_refused(ours):
    answer = send(ours, "POST", "job/j", 'c{x="1"} 3\nc{x="1"} 4\n', {})
    assert answer.status == 400
    assert "line 2" in answer.text
    labels_win = 'c{job="a"} 3\nc{job="b"} 4\n'  # the same once the group's job is put there
    assert send(ours, "POST", "job/j", labels_win, {}).status == 400


def test_a_group_without_room_for_buckets(ours):
    """A Pushgateway takes it, and no Prometheus can read its page from then on."""
    histogram = '# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 5\nh_count 2\n'
    answer = send(ours, "POST", "job/j/le/5", histogram, {})
    assert answer.status == 400
    assert "a histogram cannot be pushed by group job=j le=5" in answer.text
    assert send(ours, "POST", "job/j/quantile/5", histogram, {}).status == 200
    assert ours.samples(path=PAGE)['h_bucket{instance="",job="j",quantile="5",le="1.0"}'] == "1"


def test_unknown_encoding(ours):
    answer = send(ours, "POST", "job/j", "a 1\n", {"Content-Encoding": "br"})
    assert (answer.status, '"br" is not understood' in answer.text) == (400, True)


@pytest.mark.parametrize(
    "path, body, headers, words",
    [
        ("job/j/x", "a 1\n", {}, "client from 127.0.0.1: refused (unreadable): "),
        ("job/j", "a 1\na{\n", {}, "client from 127.0.0.1: refused (unreadable): line 2"),
        ("job/j", "a 1\n", {"Content-Encoding": "br"}, "client from 127.0.0.1: refused (unreadable): "),
        ("job/j", "a 1 5\n", {}, "group job=j from 127.0.0.1: refused (invalid): "),
        ("job/j", "waap_a 1\n", {}, "group job=j from 127.0.0.1: refused (reserved): waap_a: "),
    ],
)
def test_refusals_are_logged(ours, path, body, headers, words):
    assert send(ours, "POST", path, body, headers).status == 400
    assert f'level=warn msg="push: {words}' in ours.wait_log("refused")


def test_packed_bombs_are_refused(ours):
    bomb = gzip.compress(b"# " + b"x" * (64 << 20) + b"\n")
    assert len(bomb) < 100000
    answer = send(ours, "POST", "job/j", bomb, {"Content-Encoding": "gzip"})
    assert answer.status == 413
    assert ours.rss_kib() < 40 << 10


def test_large_bodies(ours):
    """Read on a worker and applied as a whole or not at all."""
    lines = [f'large{{path="/api/v1/item/{i:060}"}} {i}\n' for i in range(3999)]
    body = "".join(lines)
    assert len(body) > 256 << 10
    answer = send(ours, "PUT", "job/large", body + "b 1\nc 1\n", {})
    assert (answer.status, "more than 4000 metrics at once" in answer.text) == (413, True)
    assert send(ours, "PUT", "job/large", body, {}).status == 200
    key = 'large{instance="",job="large",path="/api/v1/item/%060d"}' % 3998
    assert ours.samples(path=PAGE)[key] == "3998"
    answer = send(ours, "PUT", "job/large", body.replace(" 3998", " 1") + "large{} x\n", {})
    assert (answer.status, "line 4000" in answer.text) == (400, True)
    answer = send(ours, "PUT", "job/large", body.replace(" 3998", " 1") + "b 1 1600000000000\n", {})
    assert (answer.status, "timestamps" in answer.text) == (400, True)
    assert ours.samples(path=PAGE)[key] == "3998"
    assert send(ours, "PUT", "job/large", "".join(lines[:2500]), {}).status == 200
    assert sum(name.startswith("large{") for name in ours.samples(path=PAGE)) == 2500


def test_wipe(waap, ours):
    send(ours, "POST", "job/j", "a 1\n", {})
    assert ours.get("/api/v1/admin/wipe", method="PUT").status == 202
    assert 'a{instance="",job="j"}' not in ours.samples(path=PAGE)
    closed = waap("--collector.disable-defaults")
    answer = closed.get("/api/v1/admin/wipe", method="PUT")
    assert (answer.status, "--web.enable-admin-api" in answer.text) == (403, True)


def test_delete_by_selector(ours):
    for job in ("a", "b"):
        send(ours, "POST", f"job/{job}", 'x{k="1"} 1\nx{k="2"} 1\ny 1\n', {})

    def delete(*selectors):
        query = urllib.parse.urlencode([("match[]", selector) for selector in selectors])
        return ours.get(f"/api/v1/series?{query}", method="DELETE")

    def left():
        return {name for name in ours.samples(path=PAGE) if name[0] in "xy"}

    answer = delete('x{k="1",job="a"}', "y")
    assert (answer.status, json.loads(answer.body)["data"]) == (200, {"deleted": 3})
    others = {f'x{{instance="",job="{job}",k="{k}"}}' for job, k in ("a2", "b1", "b2")}
    assert left() == others
    for selectors, words in (
        ((), "no selector"),
        (('{job=~".*"}',), "must not match the empty string"),
        (("x", "x{"), "column 3"),  # all are read before anything goes
        (('x{job=~"a**"}',), "column 13"),
    ):
        answer = delete(*selectors)
        assert (answer.status, words in json.loads(answer.body)["error"]) == (400, True)
    assert left() == others
    send(ours, "POST", "job/b", "bad 1 5\n", {})
    send(ours, "POST", "job/c", "bad 1 5\n", {})  # a group that has push times only
    answer = delete('{job="b"}', 'push_failure_time_seconds{job="c"}')
    assert json.loads(answer.body)["data"] == {"deleted": 3}
    assert {name for name in ours.samples(path=PAGE) if "job=" in name and 'job="a"' not in name} == set()
    send(ours, "PUT", "job/b", 'x{k="1"} 1\n', {})
    costly = "(" * 60 + "a" + "+)" * 60  # two to the power of sixty when unfolded
    answer = delete(f'{{job=~"{costly}",k=~"1|3"}}')
    assert (answer.status, json.loads(answer.body)["data"]) == (200, {"deleted": 0})
    assert json.loads(delete(f'{{job=~"{costly}|b",k=~"1|3"}}').body)["data"] == {"deleted": 1}
    assert ours.rss_kib() < 60 * 1024


def test_regular_expressions_of_a_deletion_are_limited(ours):
    """All of them are tried on one series before other requests have their turn."""
    ours.get("/metrics/job/regexes", method="POST", body=b"kept 1\n")

    def delete(*selectors):
        query = urllib.parse.urlencode([("match[]", selector) for selector in selectors])
        return ours.get(f"/api/v1/series?{query}", method="DELETE")

    eight = ",".join(['x!~"a*a*[bc]"'] * 8)
    assert delete(f'absent{{y="z",{eight}}}').status == 200
    for selectors in ([f'absent{{y="z",{eight},x=~"a"}}'], [f'absent{{y="z",{eight}}}', 'kept{x=~"a"}']):
        answer = delete(*selectors)
        assert answer.status == 400 and "at most 8 regular expressions" in answer.text
    large = delete(r'kept{x=~"([\\pLx]){999}"}')
    assert large.status == 400 and "too large when compiled" in large.text



def test_a_selector_that_takes_too_long_deletes_nothing(ours):
    value = "a" * 900
    body = "".join(f'long{{a="{value}{i}"}} 1\n' for i in range(2000))
    send(ours, "PUT", "job/long", body, {})
    costly = "(a|aa)+[bc]"
    answer = ours.get("/api/v1/series?" + urllib.parse.urlencode({"match[]": f'long{{a=~"{costly}"}}'}), method="DELETE")
    assert answer.status == 400 and "take too long" in json.loads(answer.body)["error"]
    answer = ours.get("/api/v1/series?" + urllib.parse.urlencode({"match[]": 'long{a=~"a+1?[0-9]*"}'}), method="DELETE")
    assert json.loads(answer.body)["data"] == {"deleted": 2000}


def test_conditions_that_take_too_long_delete_nothing(ours):
    body = "".join(f'm{{i="{i}",a="b",c="d",e="f"}} 1\n' for i in range(4000))
    for job in "abcdef":
        assert send(ours, "PUT", f"job/{job}", body, {}).status == 200
    conditions = ",".join(f'{label}!="q"' for label in string.ascii_lowercase)
    selectors = [("match[]", f'{{{conditions},__name__="m",i="none"}}')] * 28
    answer = ours.get("/api/v1/series?" + urllib.parse.urlencode(selectors, safe='{}=!,~_"'), method="DELETE")
    assert answer.status == 400 and "take too long" in json.loads(answer.body)["error"]
    selector = [("match[]", f'{{{conditions},__name__="m"}}')]
    answer = ours.get("/api/v1/series?" + urllib.parse.urlencode(selector), method="DELETE")
    assert json.loads(answer.body)["data"] == {"deleted": 24000}


def test_histograms_that_contradict_themselves(ours):
    """As plugin/README.md says; a Pushgateway takes them all."""

    def push_histogram(text):
        return ours.get("/metrics/job/h", method="PUT", body=f"# TYPE h histogram\n{text}".encode()).status

    assert push_histogram('h_bucket{le="1"} 2\nh_sum 3\nh_count 1\n') == 400
    assert push_histogram('h_bucket{le="1"} 2\nh_sum 3\n') == 400
    assert push_histogram('h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 5\nh_sum 3\nh_count 7\n') == 200
    page = ours.samples(path=PAGE)
    assert page['h_bucket{instance="",job="h",le="1.0"}'] == "2"
    assert page['h_bucket{instance="",job="h",le="+Inf"}'] == page['h_count{instance="",job="h"}'] == "7"


def test_status(ours):
    data = json.loads(ours.get("/api/v1/status").body)["data"]
    assert data["build_information"]["version"]
    assert data["flags"]["web.enable-admin-api"] == "true"
    assert data["start_time"].endswith("Z")
