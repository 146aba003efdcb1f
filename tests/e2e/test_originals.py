"""The first users' files and programs, in the form they had: only addresses, names and durations are others."""

import contextlib
import json
import signal
import subprocess

import pytest

from peers import Prometheus, need_program
from placing import Place
from test_place import FakePrometheus, node
from waiting import wait_until

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


# The prototype's prometheus.yml: no rules, no relabelling.
PROMETHEUS = """
global:
  scrape_interval:     1s
  evaluation_interval: 1s

rule_files:
  # - "first.rules"
  # - "second.rules"

scrape_configs:
  - job_name: 'nvidia-nx'
    static_configs:
      - targets: ['127.0.0.1:{port}']
        labels:
          group: 'testbed'
    #scrape_timeout: 1m
    tls_config:
      insecure_skip_verify: true
"""


NAMES = "RAMUsage", "GPUMemoryUsage", "GPUMemoryTotal", "TegraRAMUsage", "TegraCPUUsage"
IN_USE = "node_memory_MemTotal_bytes - node_memory_MemFree_bytes - node_memory_Buffers_bytes - node_memory_Cached_bytes"
BUSY = 'sum(irate(node_cpu_seconds_total{mode!~"idle|iowait"}[10s]))'
# Each against what the same page says of it under other names.
RATIOS = [
    f"RAMUsage * 2^20 / ({IN_USE})",
    f"TegraRAMUsage * 2^20 / ({IN_USE})",
    "GPUMemoryUsage / gpu_memory_used_bytes",
    "GPUMemoryTotal / gpu_memory_total_bytes",
    f"sum(TegraCPUUsage) / 100 / {BUSY}",
]


@pytest.mark.parametrize("machine, n_gpus", [("jetson", 1), ("dgpu", 2)])
def test_the_prototypes_queries_draw_curves(waap, started, tmp_path, machine, n_gpus):
    """Each name as it was asked for, by its prometheus.yml alone: values that are right, and move."""
    exporter = waap(f"--demo={machine}", "--collector.jetson.compat=prototype")
    config = PROMETHEUS.format(port=exporter.port)
    server = started(Prometheus(need_program("prometheus", "2.53"), tmp_path, 0, config))

    def moved():
        changes = [server.query(f"max(changes({name}[1m]))") for name in NAMES if name != "GPUMemoryTotal"]
        return all(found and float(found[0]["value"][1]) > 1 for found in changes)

    wait_until(moved, 30, "curves")
    assert "metrics: first scrape by 127.0.0.1 (Prometheus/2.53" in exporter.output()
    for name in NAMES:
        found = server.query(name)
        assert len(found) == (n_gpus if "GPU" in name else 1), found
        assert {(series["metric"]["job"], series["metric"]["group"]) for series in found} == {("nvidia-nx", "testbed")}

    def right():
        ratios = [[float(series["value"][1]) for series in server.query(ratio)] for ratio in RATIOS]
        return all(values and values == pytest.approx([1] * len(values), rel=0.1) for values in ratios) or print(ratios)

    wait_until(right, 30, "values that agree")


def test_the_prototypes_names_on_a_machine_without_a_gpu(waap, tmp_path):
    """What it has, as the kernel shows it at the moment, and nothing made up."""
    (tmp_path / "meminfo").write_text("MemTotal: 8192 kB\nMemFree: 2048 kB\nBuffers: 1024 kB\nCached: 1024 kB\n")
    flags = [f"--path.{name}={tmp_path}" for name in ("procfs", "sysfs", "rootfs", "cgroupfs")]
    exporter = waap("--collector.disable-defaults", "--collector.jetson", "--collector.nvml",
                    "--collector.nvml.library=/nonexistent", "--collector.jetson.compat=prototype", *flags)
    found = {name: value for name, value in exporter.samples().items() if not name.startswith(("waap_", "process_"))}
    assert found == {"RAMUsage": "4", "TegraRAMUsage": "4"}


def test_names_of_two_programs_at_once(waap, tmp_path):
    """By a list, by repeated flags, and by a reload; what is not known is named."""
    (tmp_path / "waap.yaml").write_text("collector: {jetson: {compat: [tegra, prototype]}}\n")
    for flags in (["--collector.jetson.compat=tegra,prototype"],
                  ["--collector.jetson.compat=tegra", "--collector.jetson.compat=prototype"],
                  [f"--config.file={tmp_path / 'waap.yaml'}"]):
        exporter = waap("--demo", *flags)
        wait_until(lambda: {"RAMUsage", "tegra_ram_used_bytes"} <= exporter.samples().keys(), what=f"both with {flags}")
    (tmp_path / "waap.yaml").write_text("collector: {jetson: {compat: prototype}}\n")
    exporter.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "tegra_ram_used_bytes" not in exporter.samples(), what="the reload")
    assert "RAMUsage" in exporter.samples()
    (tmp_path / "waap.yaml").write_text("collector: {jetson: {compat: [tegra, gpu]}}\n")
    exporter.process.send_signal(signal.SIGHUP)
    exporter.wait_log('collector.jetson.compat: expected one of off, tegra, prototype, got \\"gpu\\"')


# The request that PEPPER's documents show, with its spaces and its numbers beyond 64 bits.
QUESTION = """{       "model" : "model",
        "conv_layers" : 66666666,
        "pool_layers" : 77777777,
        "fc_layers" : 34535353535,
        "filter_details" : 66,
        "total_parameters" : 10000000000000000000,
        "model_input_size": 345343543,
        "model_output_size": 123421435}"""


def test_the_placement_service_by_curl(started):
    """The documented request; every key of the documented answer, in its order, and every number as it was sent."""
    fake = started(contextlib.closing(FakePrometheus([node("rpi-1"), node("busy", load=95)])))
    service = started(contextlib.closing(Place(env={"PROMETHEUS_IP": fake.address})))
    done = subprocess.run(
        ["curl", "-s", "--location", f"{service.url}/api/profiling", "--header", "Content-Type: application/json",
         "--data", QUESTION], capture_output=True, text=True, timeout=30)
    answer = json.loads(done.stdout)
    assert list(answer) == ["message", "model_characteristics", "profiling_prediction", "status"]
    assert (answer["message"], answer["status"]) == ("Profiling data received", "success")
    assert answer["model_characteristics"] == json.loads(QUESTION)
    assert list(answer["model_characteristics"]) == sorted(json.loads(QUESTION))
    prediction = answer["profiling_prediction"]
    assert list(prediction) == ["class", "device_model", "model", "node", "node_uuid", "predicted_execution_time"]
    assert (prediction["model"], prediction["node"]) == ("model", "rpi-1") and prediction["predicted_execution_time"] > 0
