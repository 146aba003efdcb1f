"""The first users' files and programs, in the form they had: only addresses, names and durations are others."""

import json
import subprocess

# A sage.yaml as session profiling had it: arguments as one text, a target without a timeout, groups of metrics.
SAGE = """
name: carcounter
namespace: waggle
version: "0.0.0"
description: "Car Counter"
source:
    architectures:
        - linux/arm64
    url: https://github.com/example/plugin-carcounter.git
inputs:
    - id: interval
      type: int
metadata:
  ontology: env.counter
testing:
  command: [test.py]
profiling:
  targets:
    - {args: "-interval 1 --use-gpu", timeout: 1}  # ended by the timeout
    - {args: "--use-gpu", timeout: 60}
    - {args: "--use-cpu", timeout: 0}  # ends by itself
  metrics: ['system', 'gpu-summary']
"""


def test_session_profiling(waap_binary, tmp_path):
    """Each target runs with its arguments, within its timeout, and its samples have times."""
    (tmp_path / "sage.yaml").write_text(SAGE)
    app = 'echo "args: $*"; case $1 in -interval) exec sleep 30;; *) exec sleep 0.5;; esac'
    done = subprocess.run([waap_binary, "run", "sage.yaml", "--out=out", "--", "sh", "-c", app, "app"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out/samples.jsonl").read_text().splitlines()]
    ends = [line for line in lines if line["kind"] == "end"]
    said = [(tmp_path / "out" / end["output"]).read_text().strip() for end in ends]
    assert said == ["args: -interval 1 --use-gpu", "args: --use-gpu", "args: --use-cpu"]
    assert 1 <= ends[0]["wall_seconds"] < 10
    assert lines[0]["application"]["name"] == "carcounter"
    samples = [line for line in lines if line["kind"] == "sample"]
    assert {sample["target"] for sample in samples} == {end["target"] for end in ends}
    assert all(sample["at"] > 1.7e9 for sample in samples)
