"""`waap place collect`: measured runs for the predictor."""

import csv
import pathlib
import subprocess

import pytest

from running import wait_until

models = pytest.importorskip("onnx_models", reason="no python3-onnx on this machine (make deps)")


@pytest.fixture
def collect(run_waap, tmp_path):
    """collect(command…, flags=…): one run into runs.csv."""
    (tmp_path / "alexnet.onnx").write_bytes(models.alexnet().SerializeToString())

    def run(*command, flags=("--runs=1",)):
        return run_waap("place", "collect", f"--model={tmp_path}/alexnet.onnx", f"--out={tmp_path}/runs.csv",
                        f"--records={tmp_path}/records", "--settle=200ms", *flags, "--", *command, timeout=60)

    return run


def test_rows_for_training(collect, run_waap, tmp_path):
    done = collect("sleep", "0.2", flags=("--runs=2", "--device=jetson", "--input-size=5000"))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "runs.csv").read_text()
    columns = text.splitlines()[0]
    assert columns == run_waap("place", "simulate", "--runs=1").stdout.splitlines()[0]
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["execution_number"] for row in rows] == ["1", "2"]
    for row in rows:
        assert float(row["execution_time"]) >= 0.2
        assert 0 <= float(row["device_load_percent"]) <= 100
        expected = {"model_name": "alexnet", "device": "jetson", "conv_layers": "5", "filter_details": "1376",
                    "total_parameters": "60965228", "disk_io_read_bytes": "5000", "disk_io_write_bytes": "4000"}
        assert {key: row[key] for key in expected} == expected
    assert (tmp_path / "records/alexnet-1/summary.json").exists()


def test_what_goes_wrong_is_no_row(collect, tmp_path):
    done = collect("false")
    assert done.returncode == 1 and "the application failed" in done.stderr
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 1
    (tmp_path / "runs.csv").write_text("a,b\n1,2\n")
    done = collect("true")
    assert done.returncode == 1 and "other columns" in done.stderr
    assert (tmp_path / "runs.csv").read_text() == "a,b\n1,2\n"
    assert collect().returncode == 2


def test_the_application_ends_with_it(waap_binary, tmp_path):
    (tmp_path / "alexnet.onnx").write_bytes(models.alexnet().SerializeToString())
    process = subprocess.Popen([waap_binary, "place", "collect", f"--model={tmp_path}/alexnet.onnx", "--settle=100ms",
                                f"--out={tmp_path}/runs.csv", f"--records={tmp_path}/records", "--",
                                "sh", "-c", f"echo $$ >{tmp_path}/pid; exec sleep 600"])
    try:
        pid = wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), what="it").strip()
    finally:
        process.terminate()
        process.wait()
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), what="the end of the application")


def test_flags_are_checked_together(run_waap):
    done = run_waap("place", "collect", "--runs=x")
    assert done.returncode == 2 and "--runs" in done.stderr
    done = run_waap("place", "collect")
    assert done.returncode == 2 and "--model is missing" in done.stderr and "--out is missing" in done.stderr
