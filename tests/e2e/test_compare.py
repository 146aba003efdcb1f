"""`waap compare`: changes, whether they mean anything, and exit codes."""

import json
import os

import pytest

from record import MIB, Model, Record, make_record, record_run


@pytest.fixture
def compare(run_waap):
    """compare(a, b, …): the exit code and what it says, as JSON."""

    def run(a, b, *flags):
        done = run_waap("compare", a, b, "--json", "--gate", *flags)
        assert done.stderr == ""
        return done.returncode, json.loads(done.stdout)

    return run


def verdicts(answer):
    return {row["measure"]: row["verdict"] for row in answer["measures"]}


@pytest.fixture
def before(tmp_path):
    return make_record(tmp_path / "before", repeats=5, seconds=5, seed=1)


def test_the_same_again(compare, before, tmp_path):
    code, answer = compare(before, make_record(tmp_path / "after", repeats=5, seconds=5, seed=2))
    assert code == 0 and answer["exit_code"] == 0
    assert set(verdicts(answer).values()) == {"same"}
    assert answer["differences"] == []


def test_worse_and_better(compare, before, tmp_path):
    after = make_record(tmp_path / "after", repeats=5, seconds=5, seed=2, fps=17.0, memory=300 * MIB)
    code, answer = compare(before, after)
    assert code == 1
    got = verdicts(answer)
    assert got["fps"] == "worse" and got["memory.peak_bytes"] == "better" and got["cpu.percent"] == "same"
    fps = next(row for row in answer["measures"] if row["measure"] == "fps")
    assert fps["change"] == pytest.approx(-0.15, abs=0.02)
    assert fps["p"] == pytest.approx(2 / 252)  # of 252 arrangements of five and five, the two extremes
    assert compare(after, before)[0] == 1  # the memory
    assert compare(before, after, "--threshold=60%")[0] == 0


def test_without_gate_it_only_tells(run_waap, before, tmp_path):
    after = make_record(tmp_path / "after", repeats=5, seconds=5, seed=2, fps=10.0)
    done = run_waap("compare", before, after)
    assert done.returncode == 0
    row = next(line for line in done.stdout.splitlines() if line.startswith("  fps "))
    assert row.endswith("worse") and "\033" not in done.stdout


def test_few_runs_cannot_tell(compare, tmp_path):
    before = make_record(tmp_path / "before", repeats=3, seconds=5, seed=1)
    after = make_record(tmp_path / "after", repeats=3, seconds=5, seed=2, fps=10.0)
    code, answer = compare(before, after)
    assert code == 0 and verdicts(answer)["fps"] == "too few runs"


def gated(directory, gates, seed, fps=20.0, repeats=5):
    return make_record(directory, repeats=repeats, seconds=5, seed=seed, fps=fps, gates=gates)


@pytest.mark.parametrize("gate, fps, repeats, code", [
    ({"metric": "fps", "max_decrease": 0.05}, 20.0, 5, 0),
    ({"metric": "fps", "max_decrease": 0.05}, 17.0, 5, 1),
    ({"metric": "fps", "max_decrease": 0.05}, 17.0, 1, 1),  # too few to ask about chance: the size decides
    ({"metric": "fps", "max_decrease": 0.3}, 17.0, 5, 0),
    ({"metric": "fps", "max_decrease": 0.05}, 25.0, 5, 0),
    ({"metric": "energy_per_frame", "max_increase": 0.1}, 15.0, 5, 1),
    ({"metric": "fps.p50", "min": 19}, 17.0, 5, 1),
    ({"metric": "no.such", "max_increase": 0.1}, 20.0, 5, 1),
    ({"metric": "fps", "max_decrease": 0.05, "target": "gpu"}, 17.0, 5, 1),  # no gate for it: all measures count
])
def test_gates(compare, tmp_path, gate, fps, repeats, code):
    before = gated(tmp_path / "before", [], 1, repeats=repeats)
    after = gated(tmp_path / "after", [gate], 2, fps=fps, repeats=repeats)
    assert compare(before, after)[0] == code


def shaky(directory, order, gates=()):
    """A record whose runs differ by a third among themselves."""
    record = Record(directory, gates)
    record.target("cpu")
    for run, fps in enumerate(order, 1):
        record_run(record, "cpu", run, Model(fps=fps, seed=run), 4)
    return record.finish()


@pytest.mark.parametrize("gate, code", [
    ({"min": 1000}, 1),
    ({"min": 1}, 0),
    ({"max_decrease": 0.05}, 0),
])
def test_gates_of_a_target_that_was_not_there_before(compare, tmp_path, gate, code):
    before = make_record(tmp_path / "a", repeats=1, seconds=3)
    after = make_record(tmp_path / "b", targets=("cpu", "gpu"), repeats=1, seconds=3,
                        gates=[{"metric": "fps", "target": "gpu", **gate}])
    assert compare(before, after)[0] == code


def without(directory, word):
    """The record without the series that have this word in their names, as of a plugin that says less."""
    file = directory / "samples.jsonl"
    kept = []
    for line in map(json.loads, file.read_text().splitlines()):
        if line["kind"] == "sample":
            line["values"] = {key: value for key, value in line["values"].items() if word not in key}
        if line["kind"] != "series" or word not in line["key"]:
            kept.append(json.dumps(line, separators=(",", ":")))
    file.write_text("".join(f"{line}\n" for line in kept))
    return directory


def test_measures_that_one_side_lacks(run_waap, compare, before, tmp_path):
    """A figure that is no longer there did not stay the same; gates may say that nobody cares."""
    after = without(make_record(tmp_path / "after", repeats=5, seconds=5, seed=2), "inference")
    code, answer = compare(before, after)
    assert code == 1 and {"target": "cpu", "measure": "inference_seconds"} in answer["only_in_a"]
    assert answer["only_in_b"] == [] and "inference_seconds" not in verdicts(answer)
    assert f"cpu: only {before} has inference_seconds" in run_waap("compare", before, after).stdout
    code, answer = compare(after, before)
    assert code == 0 and {"target": "cpu", "measure": "inference_seconds"} in answer["only_in_b"]
    for metric, expected in (("fps", 0), ("inference_seconds", 1)):
        gated = without(make_record(tmp_path / metric, repeats=5, seconds=5, seed=2,
                                    gates=[{"metric": metric, "max_increase": 0.5}]), "inference")
        assert compare(before, gated)[0] == expected


def test_a_measure_that_matters_to_nobody(compare, before, tmp_path):
    code, answer = compare(before, without(make_record(tmp_path / "after", repeats=5, seconds=5, seed=2), "cars"))
    assert (code, answer["only_in_a"]) == (0, [{"target": "cpu", "measure": "cars"}])


def test_targets_that_one_side_lacks(run_waap, compare, tmp_path):
    one = make_record(tmp_path / "one", repeats=1, seconds=3, gates=[{"metric": "fps", "min": 1}])
    two = make_record(tmp_path / "two", targets=("cpu", "gpu"), repeats=1, seconds=3)
    code, answer = compare(two, one)
    assert (code, answer["only_in_a"], answer["only_in_b"]) == (1, [{"target": "gpu"}], [])
    assert f"gpu: only {two} has this target\n" in run_waap("compare", two, one).stdout
    code, answer = compare(one, two)
    assert (code, answer["only_in_a"], answer["only_in_b"]) == (0, [], [{"target": "gpu"}])


def test_a_large_change_may_be_chance(compare, tmp_path):
    """Size alone is not enough: the means differ by a tenth, the runs of each by more."""
    before = shaky(tmp_path / "before", (20, 30, 22, 28, 25))
    code, answer = compare(before, shaky(tmp_path / "after", (19, 27, 21, 26, 18)))
    fps = next(row for row in answer["measures"] if row["measure"] == "fps")
    assert fps["change"] < -0.08 and fps["p"] > 0.05
    assert fps["verdict"] == "same" and code == 0


def test_a_gate_broken_by_chance(compare, tmp_path):
    before = shaky(tmp_path / "before", (20, 30, 22, 28, 25))
    after = shaky(tmp_path / "after", (19, 27, 21, 26, 18), [{"metric": "fps", "max_decrease": 0.05}])
    code, answer = compare(before, after)
    assert code == 0
    assert answer["gates"][0]["by_chance"] is True and answer["gates"][0]["ok"] is True


@pytest.mark.parametrize("key, code", [("board", 4), ("power_mode", 4), ("kernel", 0)])
def test_other_environments(run_waap, before, tmp_path, key, code):
    after = make_record(tmp_path / "after", repeats=5, seconds=5, seed=2, environment={key: "another"})
    done = run_waap("compare", before, after, "--gate")
    assert done.returncode == code
    assert f"{key}: " in done.stdout and ", then another" in done.stdout


def test_runs_without_cgroups_do_not_differ_by_their_processes(compare, tmp_path):
    told = [make_record(tmp_path / str(pid), repeats=5, seconds=5, environment={
        "launch": "process group", "no_cgroup": f"make /sys/fs/cgroup/waap-run-{pid}.0: Permission denied"})
        for pid in (11, 12)]
    assert compare(*told)[1]["differences"] == []


def test_an_application_that_failed(compare, before, tmp_path):
    record = Record(tmp_path / "after")
    record.target("cpu")
    record_run(record, "cpu", 1, Model(), 5, exit=1)
    assert compare(before, record.finish())[0] == 3


def test_summaries_are_enough(run_waap, compare, before, tmp_path):
    after = make_record(tmp_path / "after", repeats=5, seconds=5, seed=2, fps=17.0)
    expected = compare(before, after)[1]["measures"]
    for directory in (before, after):
        run_waap("report", directory)
        (directory / "samples.jsonl").unlink()
    assert compare(before, after)[1]["measures"] == expected
    assert compare(before / "summary.json", after / "summary.json")[1]["measures"] == expected


def test_usage(run_waap, before, tmp_path):
    (tmp_path / "else.json").write_text('{"format": "else"}')
    other = make_record(tmp_path / "other", targets=("gpu",), repeats=1, seconds=1)
    for arguments, words in [
        ((), "expected two runs, A and B, got 0"),
        ((before,), "expected two runs, A and B, got 1"),
        ((before, before, before), "expected two runs, A and B, got 3"),
        ((before, before, "--what"), "--what: unknown flag"),
        ((before, before, "--threshold=much"), "--threshold: expected a share"),
        ((before, tmp_path / "none"), "none: No such file"),
        ((before, tmp_path / "else.json"), "not a summary of waap"),
        ((before, tmp_path), "summary.json"),
        ((before, other), "no target in common"),
    ]:
        done = run_waap("compare", *arguments)
        assert done.returncode == 2 and words in done.stderr, arguments
    assert run_waap("compare", "--help").stdout.startswith("usage: waap compare")
    assert run_waap("help", "compare").stdout.startswith("usage: waap compare")


def test_two_builds_of_a_plugin(run_waap, tmp_path, source_root):
    """Recorded for real: the second build looks at each picture three times as long."""
    example = (source_root / "plugin/examples/objcounter.py").read_text()
    assert "0.03 if" in example
    (tmp_path / "before.py").write_text(example)
    (tmp_path / "after.py").write_text(example.replace("0.03 if", "0.09 if"))
    (tmp_path / "sage.yaml").write_text("""
name: objcounter
version: 1.0.0
profiling:
  targets: [{name: short, args: --seconds 1, timeout: 30, repeats: 4}]
  sampling: {baseline: 0s, cooldown: 0s, interval: 50ms}
  gates: [{metric: fps, max_decrease: 10%}]
""")
    environment = {**os.environ, "PYTHONPATH": str(source_root / "plugin/python")}
    for build in ("before", "after"):
        command = ["/usr/bin/python3", tmp_path / f"{build}.py"]
        done = run_waap("run", tmp_path / "sage.yaml", "--out", tmp_path / build, "--", *command, timeout=120, env=environment)
        assert done.returncode == 0, done.stderr
    done = run_waap("compare", tmp_path / "before", tmp_path / "after", "--gate")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("  fps ") and line.endswith("worse") for line in lines)
    assert any(line.startswith("  inference_seconds ") and line.endswith("worse") for line in lines)
    assert any(line.startswith("gate short: fps max_decrease 0.1: broken") for line in lines)
    assert run_waap("compare", tmp_path / "before", tmp_path / "before", "--gate").returncode == 0
