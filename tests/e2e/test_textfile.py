"""Directories of text files, served by us and by node_exporter."""

import os
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from peers import NodeExporter, promtool
from waiting import LIMIT, wait_until

GOOD = """\
# HELP backup_bytes_total What was saved,\\nin all.
# TYPE backup_bytes_total counter
backup_bytes_total{disk="sd\\\\a",to="\\"tape\\""} 1.5e+10
backup_bytes_total{to="cloud"} 7
# TYPE backup_seconds histogram
backup_seconds_bucket{le="0.5"} 1
backup_seconds_bucket{le="+Inf"} 3
backup_seconds_sum 17.25
backup_seconds_count 3
# TYPE backup_speed summary
backup_speed{quantile="0.9"} 4.5
backup_speed_sum 1e-9
backup_speed_count 2
plain NaN
"""


@pytest.fixture
def textfile(waap, tmp_path):
    """Starts waap with the textfile collector alone, on a directory of its own."""

    def start(*flags):
        return waap(
            "--collector.disable-defaults",
            "--collector.textfile",
            "--web.disable-exporter-metrics",
            *(flags or [f"--collector.textfile.directory={tmp_path}"]),
        )

    return start


def age(path, seconds):
    """Makes the file look as if it had been written that long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def series(page):
    """{(name, labels): value} of what comes from text files; an empty label is none."""
    return {
        (sample.name, frozenset(item for item in sample.labels.items() if item[1])): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if not sample.name.startswith(("node_exporter_", "node_scrape_", "promhttp_"))
    }


def test_serves_what_node_exporter_serves(textfile, tmp_path):
    (tmp_path / "good.prom").write_text(GOOD)
    (tmp_path / "more.prom").write_text('plain{of="more"} -Inf\n')
    (tmp_path / "broken.prom").write_text("lost 1\nlost{ 2\n")
    (tmp_path / "stamped.prom").write_text("late 1 1700000000000\n")
    (tmp_path / "unended.prom").write_text("unended 1")
    (tmp_path / "ignored.txt").write_text("ignored 1\n")
    age(tmp_path / "good.prom", 1000)
    flags = [
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={tmp_path}",
        "--web.disable-exporter-metrics",
    ]
    with NodeExporter(*flags) as node_exporter:
        theirs = series(node_exporter.get("/metrics").text)
    ours = series(textfile().get("/metrics").text)
    assert theirs[("node_textfile_scrape_error", frozenset())] == 1
    assert ("plain", frozenset({("of", "more")})) in theirs
    # NaN differs from itself, its text does not.
    assert {key: repr(value) for key, value in ours.items()} == {
        key: repr(value) for key, value in theirs.items()
    }


def test_page_passes_promtool(textfile, tmp_path):
    (tmp_path / "good.prom").write_text(GOOD)
    page = textfile().get("/metrics").body
    code, findings = promtool("2.42", "check", "metrics", page=page)
    assert code == 0, findings


def test_follows_files_that_change(textfile, tmp_path):
    waap = textfile()
    assert waap.samples() == {"node_textfile_scrape_error": "0"}
    file = tmp_path / "a.prom"
    mtime = f'node_textfile_mtime_seconds{{file="{file}"}}'
    for value in range(5):
        fresh = tmp_path / "a.prom.tmp"
        fresh.write_text(f"a {value}\n")
        fresh.rename(file)
        samples = waap.samples()
        assert samples["a"] == str(value)
        assert samples[mtime] == str(int(file.stat().st_mtime))
    file.write_text("a 55\n")  # in place
    assert waap.samples()["a"] == "55"
    file.unlink()
    assert waap.samples() == {"node_textfile_scrape_error": "0"}


def test_an_unchanged_file_is_kept_and_noticed_when_it_changes(textfile, tmp_path):
    file = tmp_path / "a.prom"
    file.write_text("a 1\n")
    waap = textfile()
    wait_until(lambda: time.time() - file.stat().st_ctime > 4.2, what="a file that counts as settled")
    for _ in range(3):
        assert waap.samples()["a"] == "1"
    before = file.stat()
    file.write_text("a 2\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # same size, same time
    assert waap.samples()["a"] == "2"


def test_a_broken_file_loses_only_itself_and_is_logged_once(textfile, tmp_path):
    (tmp_path / "good.prom").write_text("good 1\n")
    (tmp_path / "bad.prom").write_text('bad{a="b" 1\n')
    waap = textfile()
    for _ in range(3):
        samples = waap.samples()
        assert samples["good"] == "1"
        assert samples["node_textfile_scrape_error"] == "1"
    reason = "bad.prom: line 1: column 11: expected ',' or '}' after the value of label"
    assert waap.output().count(reason) == 1
    (tmp_path / "bad.prom").write_text('bad{a="b"} 1\n')
    assert waap.samples()["node_textfile_scrape_error"] == "0"
    assert waap.output().count(reason) == 1


def test_pipes_and_devices_never_block(textfile, tmp_path):
    os.mkfifo(tmp_path / "pipe.prom")
    (tmp_path / "zero.prom").symlink_to("/dev/zero")
    (tmp_path / "terminal.prom").symlink_to("/dev/ptmx")
    (tmp_path / "good.prom").write_text("good 1\n")
    waap = textfile()
    answer = waap.get("/metrics", timeout=LIMIT)
    assert "\ngood 1\n" in answer.text
    assert "\nnode_textfile_scrape_error 1\n" in answer.text
    assert "pipe.prom: not a regular file (and 2 more)" in waap.output()


def test_limits_are_options(textfile, tmp_path):
    (tmp_path / "a.prom").write_text('a{b="1"} 1\na{b="2"} 2\n')
    (tmp_path / "b.prom").write_text("b 1\n" + "#" * 2000 + "\n")
    (tmp_path / "c.prom").write_text("c 1\n")
    waap = textfile(
        f"--collector.textfile.directory={tmp_path}",
        "--collector.textfile.max-series=1",
        "--collector.textfile.max-file-size=1KiB",
    )
    samples = waap.samples()
    assert samples["c"] == "1"
    assert not any(name.startswith(("a", "b")) for name in samples)


def test_several_directories_and_patterns(textfile, tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.prom").write_text(f'x{{in="{name}"}} 1\n')
    waap = textfile(
        f"--collector.textfile.directory={tmp_path}/t*",
        f"--collector.textfile.directory={tmp_path}/one",
    )
    samples = waap.samples()
    assert [f'x{{in="{name}"}}' in samples for name in ("one", "two", "three")] == [True] * 3
    assert samples["node_textfile_scrape_error"] == "0"


def test_without_a_directory_it_is_left_out(textfile):
    waap = textfile("--collector.textfile")
    assert waap.samples() == {}
