"""The jetson collector in the daemon, on the files of a board."""

import pathlib
import re
import shutil
import subprocess
import time

import pytest

from running import Waap, wait_until

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures/jetson"
GPU = '{gpu="0",uuid="IGPU-d7774e1a-04df-8290-914e-a521e6893e7b"}'  # of the board xavier_nx_jp5
BOARDS = sorted(path.stem for path in FIXTURES.glob("*.tree"))


@pytest.fixture
def tree(waap_binary, tmp_path):
    """Makes the files of a board; returns flags that show them to the daemon."""

    def plant(board):
        program = waap_binary.parent.parent / "tests/fakes/plant"
        subprocess.run([program, FIXTURES / f"{board}.tree", tmp_path], check=True)
        return [
            f"--path.procfs={tmp_path}/proc",
            f"--path.sysfs={tmp_path}/sys",
            f"--path.rootfs={tmp_path}",
            "--collector.disable-defaults",
            "--collector.jetson",
            "--collector.jetson.tegrastats=off",
        ]

    return plant


def findings(page):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=60
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("board", BOARDS)
def test_promtool_has_nothing_against_a_board(board):
    assert findings((FIXTURES / f"{board}.prom").read_text()) == ""


def test_the_daemon_shows_a_board(waap_binary, tree):
    with Waap(waap_binary, *tree("xavier_nx_jp5")) as waap:
        samples = waap.samples()
        assert samples['waap_collector_success{collector="jetson"}'] == "1"
        assert samples["gpu_utilization_ratio" + GPU] == "0.428"
        golden = (FIXTURES / "xavier_nx_jp5.prom").read_text()
        lines = [line for line in golden.splitlines() if not line.startswith("#")]
        expected = {line.rsplit(" ", 1)[0] for line in lines if "gpu_process_" not in line}
        assert {name for name in samples if re.match("gpu|jetson", name)} == expected


def test_the_sampler_counts_between_scrapes(waap_binary, tree):
    busy = "gpu_busy_seconds_total" + GPU
    joules = "jetson_energy_joules_total"
    with Waap(waap_binary, *tree("xavier_nx_jp5")) as waap:
        begin, first = time.monotonic(), waap.samples()
        time.sleep(1)
        second = waap.samples()
        seconds = time.monotonic() - begin
        ratio = (float(second[busy]) - float(first[busy])) / seconds
        watts = (float(second[joules]) - float(first[joules])) / seconds
        # The clock runs while we wait for a busy machine, so this is a rough check.
        assert ratio == pytest.approx(0.428, rel=0.2)
        assert watts == pytest.approx(6.33888, rel=0.2)


def test_other_names_on_request(waap_binary, tree):
    flags = [*tree("xavier_nx_jp5"), "--collector.jetson.compat=tegra"]
    with Waap(waap_binary, *flags) as waap:
        samples = wait_until(
            lambda: (page := waap.samples())
            and 'tegra_wattage_average_milliwatts{sensor="vdd_in"}' in page
            and page,
            what="a mean",
        )
        assert samples['tegra_temperature_celcius{sensor="gpu"}'] == "43.5"
        assert samples['tegra_cpu_frequency_hz{cpu="1"}'] == "1189000000"


def test_elsewhere_it_is_left_out(waap_binary, tmp_path):
    flags = [f"--path.procfs={tmp_path}", f"--path.sysfs={tmp_path}", f"--path.rootfs={tmp_path}"]
    with Waap(waap_binary, *flags) as waap:
        assert not [name for name in waap.samples() if name.startswith(("gpu_", "jetson_"))]
        assert "jetson: left out: no Tegra in the device tree" in waap.output()
