"""The pages before judges that were written elsewhere. Each of them lets something through that
another one catches, so all are asked: promtool, Python's parsers, and real Prometheus servers."""

import contextlib
import re
import socket

import pytest
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client import parser as text_parser

import zoo
from peers import PROMETHEUS_VERSIONS, Prometheus, find_program, promtool
from running import ASK_OPENMETRICS, Waap, wait_until

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
OPENMETRICS_0_0_1 = "application/openmetrics-text; version=0.0.1; charset=utf-8"

# Names that node_exporter took from /proc/meminfo, in the kernel's spelling.
INHERITED = re.compile(
    r"node_memory_\w+ metric names should be written in 'snake_case' not 'camelCase'"
)


@pytest.fixture(scope="module")
def fake(fake_binary):
    """Everything that answers at once, and a collector that breaks rules."""
    flags = ["--collector." + name for name in ("bench", "fail", "garbage", "sampled")]
    with Waap(fake_binary, "--collector.bench.series=50", *flags) as waap:
        waap.get("/metrics")  # so that the self metrics have something to tell
        yield waap


@pytest.fixture(scope="module")
def zoo_alone(fake_binary):
    """A page that never changes."""
    with Waap(fake_binary, "--web.disable-exporter-metrics") as waap:
        yield waap


@pytest.fixture(scope="module")
def real(waap_binary):
    with Waap(waap_binary) as waap:
        waap.get("/metrics")
        yield waap


# ---- promtool ----


def promtool_findings(version, page):
    code, findings = promtool(version, "check", "metrics", page=page.encode())
    assert code in (0, 3), findings  # 1: it could not read the page
    return findings.splitlines()


@pytest.mark.parametrize("version", PROMETHEUS_VERSIONS)
def test_promtool_has_nothing_against_the_fakes(version, fake):
    assert promtool_findings(version, fake.get("/metrics").text) == []


@pytest.mark.parametrize("version", PROMETHEUS_VERSIONS)
def test_promtool_has_nothing_against_the_real_page(version, real):
    findings = promtool_findings(version, real.get("/metrics").text)
    assert [line for line in findings if not INHERITED.fullmatch(line)] == []


@pytest.mark.parametrize("version", PROMETHEUS_VERSIONS)
def test_promtool_would_find_something(version):
    assert promtool_findings(version, "# HELP x_total A.\n# TYPE x_total gauge\nx_total 1\n") != []


# ---- Python's parsers ----


def parse(parser, page):
    found = {}
    for family in parser.text_string_to_metric_families(page):
        for sample in family.samples:
            key = zoo.series(sample.name, **sample.labels)
            assert key not in found
            found[key] = zoo.bits(sample.value)
    return found


def readable(parser, value):
    """The value as that parser can return it: in OpenMetrics it takes -0 for a whole number."""
    minus_zero = zoo.bits(-0.0)
    return zoo.bits(0) if parser is openmetrics_parser and value == minus_zero else value


PARSERS = pytest.mark.parametrize(
    "parser, headers", ((text_parser, {}), (openmetrics_parser, ASK_OPENMETRICS))
)


@PARSERS
def test_python_reads_the_zoo_back(parser, headers, zoo_alone):
    found = parse(parser, zoo_alone.get("/metrics", headers).text)
    assert found == {key: readable(parser, value) for key, value in zoo.expected().items()}


@PARSERS
@pytest.mark.parametrize("which", ("fake", "real"))
def test_python_reads_every_line(which, parser, headers, request):
    page = request.getfixturevalue(which).get("/metrics", headers).text
    lines = [line for line in page.split("\n") if line and not line.startswith("#")]
    values = [readable(parser, zoo.bits(float(line.rsplit(" ", 1)[1]))) for line in lines]
    found = parse(parser, page)
    assert len(found) > 20
    assert sorted(found.values()) == sorted(values)


def test_both_formats_hold_the_same_series(zoo_alone):
    text = zoo_alone.samples()
    assert zoo_alone.samples(ASK_OPENMETRICS) == text
    assert len(text) == len(zoo.expected())


def test_types_as_python_reads_them(zoo_alone):
    types = {
        "zoo_frames": "gauge",
        "zoo_frames_total": "unknown",
        "zoo_keeper": "info",
        "zoo_meal_seconds": "summary",
        "zoo_nothing_bytes": "gauge",
        "zoo_odd": "unknown",
        "zoo_sign": "gauge",
        "zoo_steps": "counter",
        "zoo_wait_seconds": "histogram",
        "zoo_weight_grams": "gauge",
    }
    page = zoo_alone.get("/metrics", ASK_OPENMETRICS).text
    families = list(openmetrics_parser.text_string_to_metric_families(page))
    assert {family.name: family.type for family in families} == types
    units = {family.name: family.unit for family in families if family.unit}
    assert units == {
        "zoo_meal_seconds": "seconds",
        "zoo_nothing_bytes": "bytes",
        "zoo_wait_seconds": "seconds",
        "zoo_weight_grams": "grams",
    }
    keeper = next(family for family in families if family.name == "zoo_keeper")
    assert keeper.documentation == 'Who keeps the "zoo".\nSecond line, with a back\\slash.'


# ---- Prometheus ----

# The jobs per version: with what it sends by itself, and forced to each format it knows.
FORCED = {
    "default": {},
    "text": {"scrape_protocols": ["PrometheusText0.0.4"]},
    "openmetrics": {"scrape_protocols": ["OpenMetricsText1.0.0"]},
    "openmetrics-0.0.1": {"scrape_protocols": ["OpenMetricsText0.0.1"]},
    "protobuf-first": {"scrape_protocols": ["PrometheusProto", "PrometheusText0.0.4"]},
}
JOBS = {
    "2.42": {"default": {}},
    "2.42 native": {"default": {}},
    "2.53": FORCED,
    "3": FORCED
    | {
        "text-1.0.0": {"scrape_protocols": ["PrometheusText1.0.0"]},
        "dots": {"metric_name_escaping_scheme": "dots"},
        "underscores": {"metric_name_escaping_scheme": "underscores"},
        "plain": {"enable_compression": False},
    },
}


@pytest.fixture(scope="module")
def servers(zoo_alone, tmp_path_factory):
    """All servers at once, as each needs a second or two to come up and scrape."""
    running = {}
    with contextlib.ExitStack() as stack:
        for name, jobs in JOBS.items():
            program = find_program("prometheus", name.split()[0])
            if program is None:
                continue
            flags = ["--enable-feature=native-histograms"] if "native" in name else []
            directory = tmp_path_factory.mktemp("prometheus")
            server = Prometheus(program, directory, zoo_alone.port, jobs, *flags)
            running[name] = stack.enter_context(server)
        yield running


@pytest.fixture(params=[(name, job) for name, jobs in JOBS.items() for job in jobs], ids=" ".join)
def judge(request, servers):
    """One server and one of its jobs, after the first scrape."""
    name, job = request.param
    if name not in servers:
        pytest.skip(f"prometheus {name} is not unpacked here (make deps)")
    targets = wait_until(servers[name].targets, what=f"prometheus {name} scrapes")
    return servers[name], job, targets[job]


def test_prometheus_scrapes_without_fault(judge):
    server, job, target = judge
    assert target["lastError"] == ""
    assert target["health"] == "up"
    up = server.query(f'up{{job="{job}"}}')
    assert [sample["value"][1] for sample in up] == ["1"]
    scraped = server.query(f'scrape_samples_scraped{{job="{job}"}}')
    assert [int(sample["value"][1]) for sample in scraped] == [len(zoo.expected())]


def canonical(labels):
    """Versions differ in how they spell the bounds of buckets: 1 or 1.0."""
    return {
        name: str(float(value)) if name in ("le", "quantile") else value
        for name, value in labels.items()
    }


def test_prometheus_returns_equal_values(judge):
    server, job, _ = judge
    found = {}
    for sample in server.query(f'{{job="{job}", __name__=~"zoo_.*"}}'):
        labels = canonical(sample["metric"])
        name = labels.pop("__name__")
        del labels["job"], labels["instance"]
        found[zoo.series(name, **labels)] = zoo.bits(float(sample["value"][1]))
    expected = {
        zoo.series(name, **canonical(dict(labels))): value
        for (name, labels), value in zoo.expected().items()
    }
    assert found == expected


@pytest.mark.parametrize(
    "judge",
    [("2.42", "default"), ("2.53", "text"), ("2.53", "default"), ("3", "text"), ("3", "default")],
    indirect=True,
    ids=" ".join,
)
def test_prometheus_knows_the_types(judge):
    server, job, _ = judge
    metadata = server.api("targets/metadata", match_target=f'{{job="{job}"}}')
    types = {item["metric"]: item["type"] for item in metadata}
    counter = "zoo_steps_total" if job == "text" else "zoo_steps"
    assert types[counter] == "counter"
    assert types["zoo_wait_seconds"] == "histogram"
    assert types["zoo_meal_seconds"] == "summary"
    assert types["zoo_frames"] == "gauge"


# ---- headers ----


@pytest.mark.parametrize(
    "accept, content_type",
    (
        (None, TEXT),
        ("*/*", TEXT),
        ("text/html,application/xhtml+xml,*/*;q=0.8", TEXT),
        ("application/json", TEXT),
        ("text/plain;version=0.0.4;escaping=underscores", TEXT + "; escaping=underscores"),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.4", OPENMETRICS),
        ("application/openmetrics-text;version=1.0.0;q=0.4,text/plain;q=0.5", TEXT),
        ("application/openmetrics-text", OPENMETRICS_0_0_1),
        (
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
            "encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,"
            "application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,"
            "*/*;q=0.1",
            OPENMETRICS,
        ),
        (
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
            "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;"
            "escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            OPENMETRICS + "; escaping=allow-utf-8",
        ),
    ),
)
def test_content_type_follows_accept(accept, content_type, zoo_alone):
    answer = zoo_alone.get("/metrics", {} if accept is None else {"Accept": accept})
    assert answer.headers["Content-Type"] == content_type
    assert answer.text.endswith("# EOF\n") == ("openmetrics" in content_type)


@pytest.mark.parametrize(
    "encoding, packed",
    (
        (None, False),
        ("identity", False),
        ("br, deflate", False),
        ("gzip;q=0", False),
        ("gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("*", True),
    ),
)
def test_gzip_only_when_asked_for(encoding, packed, zoo_alone):
    plain = zoo_alone.get("/metrics").raw
    answer = zoo_alone.get("/metrics", {} if encoding is None else {"Accept-Encoding": encoding})
    assert answer.headers.get("Content-Encoding") == ("gzip" if packed else None)
    assert answer.body == plain
    assert (len(answer.raw) < len(plain)) == packed
    vary = {name.strip().lower() for name in answer.headers["Vary"].split(",")}
    assert vary == {"accept", "accept-encoding"}


@pytest.mark.parametrize("headers", ({}, ASK_OPENMETRICS, {"Accept-Encoding": "gzip"}))
def test_head_is_get_without_the_body(headers, zoo_alone):
    get = zoo_alone.get("/metrics", headers)
    head = zoo_alone.get("/metrics", headers, "HEAD")
    assert head.raw == b""

    def lasting(answer):
        return {name: value for name, value in answer.headers.items() if name != "Date"}

    assert lasting(head) == lasting(get)
    assert int(get.headers["Content-Length"]) == len(get.raw)


def test_head_sends_nothing_behind_the_header(zoo_alone):
    with socket.create_connection(("127.0.0.1", zoo_alone.port), 10) as client:
        client.sendall(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received = b""
        while piece := client.recv(65536):
            received += piece
    assert received.startswith(b"HTTP/1.1 200 ")
    assert received.index(b"\r\n\r\n") == len(received) - 4


def test_the_golden_page_is_what_is_served(zoo_alone, source_root):
    """Change the zoo, and take both files from waap-fake serve --web.disable-exporter-metrics."""
    golden = source_root / "tests/fixtures/golden"
    assert zoo_alone.get("/metrics").body == (golden / "zoo.prom").read_bytes()
    assert zoo_alone.get("/metrics", ASK_OPENMETRICS).body == (golden / "zoo.om").read_bytes()
