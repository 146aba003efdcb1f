"""`waap report`: what is made of a record, against the same figures reckoned in Python."""

import csv
import json
import re
import statistics
import xml.etree.ElementTree as ET

import pytest
from prometheus_client.openmetrics import parser

from peers import PROMETHEUS_VERSIONS, need_program, promtool
from record import MIB, SERIES, Model, Record, make_record, record_run
from running import Program, free_port

GATES = [
    {"metric": "fps.p50", "min": 15},
    {"metric": "memory.peak", "max": 300 * MIB},
    {"metric": "temperature.max", "max": 90},
    {"metric": "no.such", "max": 1},
    {"metric": "energy_per_frame", "max_increase": 0.05},
    {"metric": "fps", "min": 1, "target": "other"},
]


@pytest.fixture
def report(run_waap):
    """report(directory): runs it; the exit code and the summary."""

    def run(directory, **options):
        done = run_waap("report", directory, **options)
        assert done.stderr == "" and done.stdout == f"{directory}/report.html\n"
        return done.returncode, json.loads((directory / "summary.json").read_text())

    return run


def lines_of(directory):
    return [json.loads(line) for line in (directory / "samples.jsonl").read_text().splitlines()]


def measured(directory, target, key):
    """The samples of the measured phase, by run."""
    runs, phase = {}, None
    for line in lines_of(directory):
        if line["kind"] == "phase":
            phase = line["phase"]
        elif line["kind"] == "end":
            phase = None
        elif line["kind"] == "sample" and line["target"] == target and phase == "run":
            if key in line["values"]:
                runs.setdefault(line["run"], []).append((line["t"], line["values"][key]))
    return runs


def test_gauges_are_what_python_says(report, tmp_path):
    directory = make_record(tmp_path / "r", repeats=4, warmup=1, seconds=12, noise=0.1)
    code, summary = report(directory)
    assert code == 0 and summary["complete"] is True
    for key in ("memory.bytes", "power.watts"):
        runs = measured(directory, "cpu", key)
        assert sorted(runs) == [2, 3, 4, 5]
        values = [value for run in runs.values() for _, value in run]
        got = summary["targets"][0]["measures"][key]
        cuts = statistics.quantiles(values, n=100, method="inclusive")
        expected = {
            "n": len(values), "mean": statistics.mean(values), "sd": statistics.stdev(values),
            "min": min(values), "p50": cuts[49], "p90": cuts[89], "p95": cuts[94], "p99": cuts[98], "max": max(values),
        }
        assert {name: got[name] for name in expected} == pytest.approx(expected)
        means = [statistics.mean(value for _, value in run) for run in runs.values()]
        assert got["runs"] == pytest.approx(means)
        half = 3.182446 * statistics.stdev(means) / 2  # Student's t for 3 degrees of freedom
        mean = statistics.mean(means)
        assert got["ci95"] == pytest.approx([mean - half, mean + half])
        assert got["cv"] == pytest.approx(statistics.stdev(means) / mean)


def test_rates_energy_and_frames(report, tmp_path):
    directory = make_record(tmp_path / "r", repeats=2, seconds=20, fps=25.0, watts=9.0, cpu=1.5, noise=0.0)
    _, summary = report(directory)
    measures = summary["targets"][0]["measures"]
    mean = {name: measure["mean"] for name, measure in measures.items()}
    assert mean["cpu.percent"] == pytest.approx(150, rel=1e-3)
    assert mean["fps"] == pytest.approx(25, rel=0.01)
    assert "app.fps" not in measures and "fps_per_second" not in measures
    assert mean["energy.joules"] == pytest.approx(9 * 20, rel=1e-3)
    assert mean["power.idle_watts"] == pytest.approx(4, rel=1e-3)
    assert mean["energy.net_joules"] == pytest.approx(5 * 20, rel=1e-3)
    assert mean["energy_per_frame.joules"] == pytest.approx(5 / 25, rel=1e-2)
    assert mean["frames"] == 500
    assert mean["wall.seconds"] == 20
    assert summary["targets"][0]["runs"][1]["measures"]["energy.joules"] == pytest.approx(180, rel=1e-3)


def test_watts_are_integrated_where_nobody_counts_joules(report, tmp_path):
    record = Record(tmp_path / "r")
    record.target("cpu")
    record.phase("cpu", 1, "run")
    for i in range(101):
        record.sample("cpu", 1, {"power.watts": 5 + i / 10})  # from 5 to 15 W in 10 s
    record.end("cpu", 1, 10.1)
    _, summary = report(record.finish())
    assert summary["targets"][0]["measures"]["energy.joules"]["mean"] == pytest.approx(101, rel=1e-3)


def test_histograms(report, tmp_path):
    record = Record(tmp_path / "r")
    record.target("cpu")
    record.phase("cpu", 1, "run")
    for n in (0, 50, 100):
        observed = {"0.02": 0, "0.04": n // 2, "0.08": n, "+Inf": n}
        values = {f'app.inference_seconds{{le="{le}"}}': count for le, count in observed.items()}
        record.sample("cpu", 1, {**values, "app.inference_seconds_sum": n * 0.045, "app.inference_seconds_count": n})
    record.end("cpu", 1, 1)
    _, summary = report(record.finish())
    got = summary["targets"][0]["measures"]["inference_seconds"]
    expected = {"n": 100, "mean": 0.045, "p50": 0.04, "p90": 0.072, "p99": 0.0792, "max": 0.08}
    assert {name: got[name] for name in expected} == pytest.approx(expected)


def test_histogram_of_a_short_name(report, tmp_path):
    record = Record(tmp_path / "r")
    record.target("cpu")
    for key, kind in (('b{le="+Inf"}', "histogram_bucket"), ("b_sum", "histogram_sum"), ("b_count", "histogram_count")):
        record.write("series", key=key, type=kind, unit="s", help="")
    record.phase("cpu", 1, "run")
    for n in range(30):
        record.sample("cpu", 1, {'b{le="+Inf"}': 2 * n, "b_sum": n, "b_count": 2 * n})
    record.end("cpu", 1, 3)
    report(record.finish())
    assert "<figcaption>b, mean</figcaption>" in (tmp_path / "r/report.html").read_text()


def test_counters_of_the_application_begin_at_zero(report, tmp_path):
    """What it counted before it was first seen is of the run too, but none of the rate; unless there was a warm-up."""
    record = Record(tmp_path / "r", interval=1)
    record.write("series", key="app.jobs_total", type="counter", unit="", help="")
    record.target("cpu")
    for run, warmup in ((1, []), (2, [100])):
        record.phase("cpu", run, "warmup")
        record.sample("cpu", run, {"energy.joules": 1000})
        for value in warmup:
            record.sample("cpu", run, {"energy.joules": 1000, "app.jobs_total": value})
        record.phase("cpu", run, "run")
        record.sample("cpu", run, {"energy.joules": 1000})
        for value in (100, 110, 120):
            record.sample("cpu", run, {"energy.joules": 1000 + value, "app.jobs_total": value})
        record.end("cpu", run, 5)
    _, summary = report(record.finish())
    measures = summary["targets"][0]["measures"]
    assert measures["jobs_total"]["runs"] == [120, 20]
    assert measures["jobs_per_second"]["runs"] == pytest.approx([10, 10])


def test_gates(report, tmp_path):
    directory = make_record(tmp_path / "r", gates=GATES)
    code, summary = report(directory)
    assert code == 1
    verdicts = {gate["metric"]: gate["ok"] for gate in summary["targets"][0]["gates"]}
    assert verdicts == {"fps.p50": True, "memory.peak": False, "temperature.max": True, "no.such": False,
                        "energy_per_frame": None}
    suite = ET.parse(directory / "junit.xml").getroot().find("testsuite")
    assert dict(suite.attrib, time="") == {"name": "cpu", "tests": "6", "failures": "2", "errors": "0",
                                           "skipped": "1", "time": ""}
    cases = {case.get("name"): case for case in suite}
    assert cases["memory.peak max 314572800"].find("failure").get("message") == "memory.peak is 440 MiB, max is 300 MiB"
    assert cases["no.such max 1"].find("failure").get("message") == "no.such: there is no such measure"
    assert cases["runs"].find("error") is None


@pytest.mark.parametrize("end, failed", [
    ({"exit": 1}, True),
    ({"exit": 0, "signal": 11}, True),
    ({"error": "exec /app: No such file <or> directory"}, True),
    ({"exit": 130, "timed_out": True, "stopped_by": "SIGINT"}, False),
    ({"signal": 9, "timed_out": True, "stopped_by": "SIGKILL"}, False),
    ({"exit": 130, "stopped_by": "user"}, False),
])
def test_an_application_that_fails(report, tmp_path, end, failed):
    record = Record(tmp_path / "r", gates=GATES)
    record.target("cpu")
    record_run(record, "cpu", 1, Model(), 2, **end)
    code, summary = report(record.finish())
    assert code == (3 if failed else 1)
    assert summary["targets"][0]["runs"][0]["failed"] is failed
    errors = ET.parse(tmp_path / "r/junit.xml").getroot().findall(".//error")
    assert len(errors) == failed


def test_runs_that_do_not_agree(report, tmp_path):
    _, steady = report(make_record(tmp_path / "steady", repeats=5))
    assert steady["targets"][0]["unstable"] == []
    record = Record(tmp_path / "shaky")
    record.target("cpu")
    for run, fps in enumerate((10, 15, 12, 20), 1):
        record_run(record, "cpu", run, Model(fps=fps, seed=run), 5)
    _, shaky = report(record.finish())
    assert "fps" in shaky["targets"][0]["unstable"]
    assert shaky["targets"][0]["measures"]["fps"]["unstable"] is True


def test_sweep(report, tmp_path):
    fps = {"res=240": 40.0, "res=480": 22.0, "res=720": 11.0}
    knobs = {name: {"res": int(name[4:])} for name in fps}
    _, summary = report(make_record(tmp_path / "r", targets=list(fps), fps=fps, knobs=knobs, repeats=2))
    rows = [(row["knobs"]["res"], row["measures"]["fps"]) for row in summary["sweep"]]
    assert rows == [(240, pytest.approx(40, rel=0.02)), (480, pytest.approx(22, rel=0.02)),
                    (720, pytest.approx(11, rel=0.02))]


def test_csv(report, tmp_path):
    directory = make_record(tmp_path / "r", targets=('=1+1, "x"',), repeats=1, seconds=3)
    report(directory)
    with open(directory / "samples.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    samples = [line for line in lines_of(directory) if line["kind"] == "sample"]
    assert len(rows) == len(samples)
    assert rows[0]["target"] == "'=1+1, \"x\""
    for row, sample in zip(rows, samples):
        assert float(row["t"]) == sample["t"] and float(row["at"]) == sample["at"]
        values = {key: float(value) for key, value in row.items()
                  if key not in ("target", "run", "phase", "t", "at") and value}
        assert values == pytest.approx(sample["values"])
    assert [row["phase"] for row in rows[18:22]] == ["baseline", "baseline", "run", "run"]


def last_values(text):
    """The last of each series, without its time: the client library's parser cannot compare times."""
    lines = {}
    for line in text.splitlines():
        series, value = (line, "") if line.startswith("#") else line.rsplit(" ", 2)[:2]
        lines[series] = f"{series} {value}".rstrip()
    return "\n".join(lines.values()) + "\n"


@pytest.mark.parametrize("version", PROMETHEUS_VERSIONS)
def test_prometheus_takes_the_samples(report, tmp_path, version):
    directory = make_record(tmp_path / "r", targets=("cpu", 'g"p\\u'), repeats=2, seconds=3)
    report(directory)
    text = (directory / "metrics.om").read_text()
    families = {family.name: family for family in parser.text_string_to_metric_families(last_values(text))}
    assert families["waap_run_cpu_user_seconds"].type == "counter"
    assert families["waap_run_app_inference_seconds"].type == "histogram"
    assert {sample.labels["target"] for sample in families["waap_run_memory_bytes"].samples} == {"cpu", 'g"p\\u'}
    code, output = promtool(version, "tsdb", "create-blocks-from", "openmetrics", directory / "metrics.om", tmp_path / "db")
    assert code == 0, output
    (tmp_path / "db/wal").mkdir(exist_ok=True)  # without it promtool sees no database
    room = [f"--sandbox-dir-root={tmp_path}"] if version != "2.42" else []
    code, output = promtool(version, "tsdb", "dump", *room, tmp_path / "db")
    assert code == 0
    dumped = [line for line in output.splitlines() if "waap_run_app_fps_total" in line and 'target="cpu"' in line
              and 'run="2"' in line]
    frames = [str(line["values"]["app.fps_total"]) for line in lines_of(directory)
              if line["kind"] == "sample" and line["target"] == "cpu" and line["run"] == 2
              and "app.fps_total" in line["values"]]
    assert [line.split()[-2] for line in dumped] == frames


def test_victoria_metrics_takes_the_samples(report, tmp_path, started):
    """By the request that profiler/README.md shows."""
    directory = make_record(tmp_path / "r", repeats=2, seconds=3)
    report(directory)
    binary = need_program("victoria-metrics")
    address = f"127.0.0.1:{free_port()}"
    store = started(Program([binary, f"-storageDataPath={tmp_path / 'vm'}", f"-httpListenAddr={address}",
                             "-retentionPeriod=100y"], f"http://{address}", env={"GOMAXPROCS": "2"}))
    store.wait_ready("/health")
    answer = store.get("/api/v1/import/prometheus?extra_label=app=cars", method="POST",
                       body=(directory / "metrics.om").read_bytes())
    assert answer.status == 204, answer.text
    store.get("/internal/force_flush")
    rows = [json.loads(line) for line in store.get("/api/v1/export?match[]=waap_run_app_fps_total").text.splitlines()]
    assert {(row["metric"]["app"], row["metric"]["run"]) for row in rows} == {("cars", "1"), ("cars", "2")}
    stored = {row["metric"]["run"]: list(zip(row["timestamps"], row["values"])) for row in rows}
    for run in (1, 2):
        recorded = [(line["at"], line["values"]["app.fps_total"]) for line in lines_of(directory)
                    if line["kind"] == "sample" and line["run"] == run and "app.fps_total" in line["values"]]
        assert [value for _, value in stored[str(run)]] == [value for _, value in recorded]
        assert all(abs(at / 1e3 - time) < 0.002 for (at, _), (time, _) in zip(stored[str(run)], recorded))


def test_a_long_record(report, tmp_path):
    """An hour: no file grows out of hand."""
    directory = make_record(tmp_path / "r", repeats=1, seconds=3600, interval=0.25)
    _, summary = report(directory, timeout=60)
    assert summary["targets"][0]["measures"]["fps"]["mean"] == pytest.approx(20, rel=0.01)
    assert (directory / "metrics.om").stat().st_size < 100e6
    assert (directory / "report.html").stat().st_size < 1e6


def test_after_a_crash(report, tmp_path):
    """Whatever line or byte the record ends in, there are reports."""
    whole = (make_record(tmp_path / "whole", repeats=2, seconds=1, gates=GATES) / "samples.jsonl").read_bytes()
    directory = tmp_path / "cut"
    directory.mkdir()
    first = whole.index(b"\n") + 1
    for size in [first, *range(first + 1, len(whole) - 1, len(whole) // 25)]:
        (directory / "samples.jsonl").write_bytes(whole[:size])
        code, summary = report(directory)
        assert code in (0, 1) and summary["complete"] is False
        ET.parse(directory / "junit.xml")


def test_hostile_texts(report, tmp_path):
    name = 'x" <script>alert(1)</script> & \u0007'
    record = Record(tmp_path / "r", gates=[{"metric": name, "max": 1}], application=name)
    record.target(name)
    record_run(record, name, 1, Model(), 1, error=name)
    assert report(record.finish())[0] == 3
    root = ET.parse(tmp_path / "r/junit.xml").getroot()
    assert root.find("testsuite").get("name") == name.replace("\u0007", "\ufffd")


def test_what_cannot_be_read(run_waap, tmp_path):
    done = run_waap("report")
    assert done.returncode == 2 and "usage: waap report" in done.stderr
    done = run_waap("report", tmp_path)
    assert done.returncode == 2 and f"{tmp_path}/samples.jsonl" in done.stderr
    (tmp_path / "samples.jsonl").write_text('{"kind":"run"}\n{"kind":"dance"}\n')
    done = run_waap("report", tmp_path)
    assert done.returncode == 2 and 'samples.jsonl:2: unknown kind "dance"' in done.stderr
    (tmp_path / "samples.jsonl").write_text("")
    done = run_waap("report", tmp_path)
    assert done.returncode == 2 and 'no line of kind "run"' in done.stderr


def test_numbers_at_the_end_of_what_numbers_are(report, tmp_path):
    """Every report comes to an end and can be read, whatever a plugin sends."""
    extremes = [0, 1e308, -1e308, 1.7e308, 5e-324, 1e-300, -1, 2**53, "+Inf", "NaN", 1, 1e16]
    record = Record(tmp_path / "r")
    record.target("cpu")
    record.phase("cpu", 1, "run")
    for i in range(60):
        record.sample("cpu", 1, {key: extremes[(i * j) % len(extremes)] for j, key in enumerate(SERIES)})
    record.end("cpu", 1, 1e308, peak_memory_bytes=1e308, frames=5e-324)
    report(record.finish())
    page = (tmp_path / "r/report.html").read_text()
    assert re.findall(r'="[^"]*\b(?:nan|inf)\b[^"]*"', page) == []
