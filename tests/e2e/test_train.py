"""`waap place simulate` and `waap place train`: from runs to a predictor."""

import csv
import re

import pytest

from waiting import LIMIT


@pytest.fixture
def runs(run_waap, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(run_waap("place", "simulate", "--runs=8", "--seed=7").stdout)
    return path


def train(run_waap, *arguments):
    done = run_waap("place", "train", *arguments, timeout=10 * LIMIT)
    if "no libxgboost" in done.stderr:
        pytest.skip("no libxgboost on this machine (make deps)")
    return done


def test_validated_and_saved(run_waap, runs, tmp_path):
    done = train(run_waap, runs, "--out", tmp_path / "model.json")
    assert done.returncode == 0, done.stderr
    unseen, at_random = (
        re.search(rf"^{title} +10 +([\d.]+) s +([\d.]+) s +([\d.]+) % +([\d.]+) % +([\d.]+) %$",
                  done.stdout, re.M).groups()
        for title in ("models it has not seen", "rows at random"))
    assert float(unseen[2]) > 2 * float(at_random[2])
    assert "264 measured runs of 11 models" in done.stdout


def test_the_same_runs_give_the_same_file(run_waap, runs, tmp_path):
    files = [tmp_path / name for name in ("a.ubj", "b.ubj")]
    for file in files:
        assert train(run_waap, runs, f"--out={file}", "--no-validation").returncode == 0
    assert files[0].read_bytes() == files[1].read_bytes()


def test_load_slows_down(runs):
    """What the first predictor has learnt from: busy nodes take longer, fast ones less so."""
    rows = list(csv.DictReader(runs.open()))

    def mean(device, busy):
        times = [float(row["execution_time"]) for row in rows if row["device"] == device
                 and row["model_name"] == "deeplab" and (float(row["device_load_percent"]) > 50) == busy]
        return sum(times) / len(times)

    assert mean("raspberrypi", True) > 1.2 * mean("raspberrypi", False) > mean("jetson", True)


def test_faults_are_told(run_waap, runs, tmp_path):
    lines = runs.read_text().splitlines()
    bad = tmp_path / "bad.csv"
    bad.write_text("\n".join((lines[0], lines[1].replace("alexnet", ""))))
    for arguments, code, said in (
        ((bad, "--out=x.json"), 1, f"{bad}: line 2: model_name: expected a name"),
        ((tmp_path / "none.csv", "--out=x.json"), 1, "No such file"),
        ((runs, "--out=x.pkl", "--no-validation"), 1, "ends in .json or .ubj"),
        ((runs,), 2, "expected --out=MODEL.json"),
        (("--out=x.json",), 2, "expected a DATA.csv"),
        ((runs, "--wrong", "--out=x.json"), 2, "--wrong: unknown flag"),
    ):
        done = train(run_waap, *arguments)
        assert done.returncode == code and said in done.stderr
        assert "Stack trace" not in done.stderr
