"""The nvml collector against a fake libnvidia-ml.so.1 that answers what a scenario says.

Run as a program with --write it rewrites the golden pages."""

import contextlib
import os
import pathlib
import re
import shutil
import sys

import pytest

from peers import PROMETHEUS_VERSIONS, promtool
from running import ROOT, Waap
from waiting import pace, wait_until

FIXTURES = ROOT / "tests/fixtures/nvml"
GOLDEN = ("two-cards", "mig", "orin", "thor", "lost", "garbage", "old-driver", "many")
BLOCKED = "block"
# What the sampler adds up depends on when it is looked at, and so do readings counted meanwhile.
MOVING = re.compile(
    r"^((?:gpu_busy_seconds_total|gpu_energy_joules_total|gpu_processes|"
    r"nvidia_impossible_readings_total)\{.*\}) (?!0$|987654\.321$).*$", re.M)
DEADLINE = {"X-Prometheus-Scrape-Timeout-Seconds": "2"}


def library(name="nvidia-ml"):
    binary = pathlib.Path(os.environ.get("WAAP_BINARY", ROOT / "build/exporter/waap"))
    return binary.absolute().parent.parent / f"tests/fakes/lib{name}.so.1"


def start(scenario, *flags, name="nvidia-ml", collectors=("nvml",)):
    return Waap(
        os.environ.get("WAAP_BINARY", ROOT / "build/exporter/waap"),
        "--collector.disable-defaults",
        *[f"--collector.{collector}" for collector in collectors],
        f"--collector.nvml.library={library(name)}",
        *flags,
        env={"FAKE_NVML": str(scenario)},
    )


def series(waap, name):
    return {key: value for key, value in waap.samples().items() if re.match(name + r"(\{|$)", key)}


def page(scenario, expected=None):
    """What is scraped without what moves: as expected once the sampler has looked, or else the last of
    many pages."""
    kind = "nvidia-ml-old" if scenario == "old-driver" else "nvidia-ml"
    # Processes of the scenario must not be found on this machine. Those of garbage grow in number.
    flags = [] if scenario == "garbage" else ["--collector.nvml.processes"]
    # The list is longer with every look; the largest of many is always the same.
    flags += ["--collector.nvml.max-processes=1"] if scenario == "many" else []
    with start(FIXTURES / f"{scenario}.txt", "--web.disable-exporter-metrics",
               "--path.procfs=/nonexistent", *flags, name=kind) as waap:
        wait_until(lambda: series(waap, "gpu_info"))
        for _ in range(100):
            text = MOVING.sub(r"\1 *", waap.get("/metrics").text)
            if text == expected:
                break
            pace(0.05)
    return text


def blocked_page():
    """What is scraped while a call does not return: the collector's failure, and nothing of it."""
    with start(FIXTURES / f"{BLOCKED}.txt") as waap:
        text = waap.get("/metrics", DEADLINE).text
    return "".join(re.findall(r"^(?!#|process_|waap_(?!collector_success)).*\n", text, re.M))


def test_golden_page_while_a_call_blocks():
    assert blocked_page() == (FIXTURES / f"{BLOCKED}.prom").read_text()


@pytest.mark.parametrize("scenario", GOLDEN)
def test_golden_page(scenario):
    expected = (FIXTURES / f"{scenario}.prom").read_text()
    text = page(scenario, expected)
    assert text == expected
    for version in PROMETHEUS_VERSIONS:
        code, said = promtool(version, "check", "metrics", page=text.replace(" *\n", " 1\n").encode())
        assert code == 0, said


def test_a_blocking_call_costs_only_its_own_samples(started):
    waap = started(start(FIXTURES / "block.txt", collectors=("nvml", "host")))
    for _ in range(3):
        answer = waap.get("/metrics", DEADLINE)
        assert "node_memory_MemTotal_bytes " in answer.text
        assert 'waap_collector_success{collector="host"} 1' in answer.text
        assert 'waap_collector_success{collector="nvml"} 0' in answer.text
    waap.stop()  # a thread that hangs does not keep the program from ending


@pytest.fixture
def scenario(tmp_path):
    """A scenario that a test may change while it is played."""

    def write(text):
        fresh = tmp_path / "fresh"
        fresh.write_text("watch\n" + text)
        fresh.rename(tmp_path / "scenario")
        return tmp_path / "scenario"

    return write


def test_a_card_falls_off_the_bus_and_comes_back(started, scenario):
    good = (FIXTURES / "lost.txt").read_text().replace("1.temperature error 15\n", "")
    lost = good + "1.temperature error 15\n1.utilization error 15\n"
    waap = started(start(scenario(good), "--collector.reprobe-interval=1s"))
    wait_until(lambda: len(series(waap, "gpu_utilization_ratio")) == 2)
    scenario(lost)
    wait_until(lambda: len(series(waap, "gpu_utilization_ratio")) == 1)
    codes = series(waap, "nvidia_nvml_return_code")
    assert sorted(codes.values()) == ["0", "15"]
    assert len(series(waap, "gpu_temperature_celsius")) == 1
    assert series(waap, "waap_collector_success") == {'waap_collector_success{collector="nvml"}': "0"}
    waap.wait_log("gpu 1: GPU is lost (15)")
    scenario(good)
    wait_until(lambda: len(series(waap, "gpu_utilization_ratio")) == 2)
    waap.wait_log("nvml: works again")


def test_the_driver_is_unloaded_and_loaded_again(started, scenario):
    good = (FIXTURES / "two-cards.txt").read_text()
    waap = started(start(scenario(good), "--collector.reprobe-interval=1s"))
    wait_until(lambda: series(waap, "gpu_power_watts"))
    scenario("init error 9\ngpus 2\n*.utilization error 1\n*.power error 1\n")
    wait_until(lambda: not series(waap, "gpu_info"))
    waap.wait_log("nvml: left out: ")
    scenario(good)
    wait_until(lambda: series(waap, "gpu_power_watts"))


def test_a_library_appears_after_the_start(started, tmp_path):
    place = tmp_path / "libnvidia-ml.so.1"
    waap = started(start(FIXTURES / "two-cards.txt", f"--collector.nvml.library={place}",
                         "--collector.reprobe-interval=1s"))
    assert not series(waap, "gpu_info")
    shutil.copy(library(), tmp_path / "copy")
    (tmp_path / "copy").rename(place)
    wait_until(lambda: len(series(waap, "gpu_info")) == 2)


def test_a_stub_is_refused(started, tmp_path):
    (tmp_path / "stubs").mkdir()
    stub = tmp_path / "stubs/libnvidia-ml.so.1"
    shutil.copy(library(), stub)
    waap = started(start(FIXTURES / "two-cards.txt", f"--collector.nvml.library={stub}"))
    waap.wait_log("a stub, not the driver")


@pytest.mark.parametrize("name", ["orin", "thor"])
def test_the_integrated_gpu_is_left_to_jetson(started, tmp_path, name):
    tree = tmp_path / "firmware/devicetree/base"
    tree.mkdir(parents=True)
    (tree / "compatible").write_bytes(b"nvidia,p3767-0000\0nvidia,tegra234\0")
    waap = started(start(FIXTURES / f"{name}.txt", f"--path.sysfs={tmp_path}",
                         f"--path.procfs={tmp_path}"))
    waap.wait_log("left to the collector jetson")
    assert not [key for key in waap.samples() if key.startswith(("gpu_", "nvidia_"))]


def test_thousands_of_processes_are_bounded(started):
    waap = started(start(FIXTURES / "many.txt", "--collector.nvml.processes",
                         "--collector.nvml.max-processes=10"))
    assert int(wait_until(lambda: list(series(waap, "gpu_processes").values()))[0]) > 5000
    shown = series(waap, "gpu_process_memory_bytes")
    assert len(shown) == 10
    assert any('pid="4001"' in key for key in shown), "the largest ones are kept"


def test_gpu_use_is_added_up_by_container(started, tmp_path):
    container = "0123456789abcdef" * 4
    for pid in (4001, 4002):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cgroup").write_text(f"0::/system.slice/docker-{container}.scope\n")
    (tmp_path / "4003").mkdir()
    (tmp_path / "4003/cgroup").write_text("0::/user.slice\n")
    waap = started(start(FIXTURES / "two-cards.txt", f"--path.procfs={tmp_path}"))
    memory = wait_until(lambda: series(waap, "container_gpu_memory_bytes"))
    assert list(memory.values()) == [str(1073741824 + 536870912)]
    assert f'id="/system.slice/docker-{container}.scope"' in list(memory)[0]
    assert list(series(waap, "container_gpu_utilization_ratio").values()) == ["0.9"]


def test_a_gpu_that_is_powered_down_is_not_woken(started, tmp_path):
    power = tmp_path / "bus/pci/devices/0000:01:00.0/power"
    power.mkdir(parents=True)
    (power / "control").write_text("auto\n")
    status = power / "runtime_status"
    status.write_text("active\n")
    waap = started(start(FIXTURES / "two-cards.txt", f"--path.sysfs={tmp_path}"))
    wait_until(lambda: len(series(waap, "gpu_power_watts")) == 2)
    status.write_text("suspended\n")
    wait_until(lambda: len(series(waap, "gpu_power_watts")) == 1)
    assert list(series(waap, "nvidia_suspended").values()) == ["1"]
    assert len(series(waap, "gpu_info")) == 2


if __name__ == "__main__":
    assert sys.argv[1:] == ["--write"], "usage: test_nvml.py --write"
    for golden in GOLDEN:
        with contextlib.redirect_stdout(sys.stderr):
            (FIXTURES / f"{golden}.prom").write_text(page(golden))
    with contextlib.redirect_stdout(sys.stderr):
        (FIXTURES / f"{BLOCKED}.prom").write_text(blocked_page())
