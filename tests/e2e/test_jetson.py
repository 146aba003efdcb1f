"""The jetson collector in the daemon, on the files of a board."""

import os
import pathlib
import re
import subprocess
import time

import pytest

from peers import promtool
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
    return promtool("2.42", "check", "metrics", page=page.encode())[1]


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
    begin = time.monotonic()
    with Waap(waap_binary, *tree("xavier_nx_jp5")) as waap:

        def counted():
            page = waap.samples()
            return [float(page[name]) for name in (busy, joules)]

        # Both count the same seconds, which are no more than have passed.
        seconds, energy = wait_until(lambda: (found := counted())[0] > 0.4 and found)
        assert energy / seconds == pytest.approx(6.33888 / 0.428, rel=0.05)
        assert seconds <= 0.428 * (time.monotonic() - begin)


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


@pytest.fixture
def thor(waap_binary, tree, tmp_path):
    """thor(scenario, …): a Thor whose NVML answers what the text says; its file may change."""
    library = waap_binary.parent.parent / "tests/fakes/libnvidia-ml.so.1"
    played = tmp_path / "scenario"

    def write(scenario):
        fresh = tmp_path / "fresh"
        fresh.write_text("watch\n" + scenario)
        fresh.rename(played)

    def start(scenario, *flags, collectors=("jetson", "nvml")):
        write(scenario)
        return Waap(
            waap_binary, *tree("thor_jp7"), *[f"--collector.{name}" for name in collectors],
            f"--collector.jetson.nvml={library}", f"--collector.nvml.library={library}",
            "--collector.jetson.processes", "--collector.reprobe-interval=1s", *flags,
            env={"FAKE_NVML": str(played)},
        )

    start.write = write
    start.played = (FIXTURES.parent / "nvml/thor.txt").read_text()
    return start


def named(waap, name):
    return [float(value) for key, value in waap.samples().items() if key.startswith(name + "{")]


def thor_page(waap):
    """What is scraped, less what moves with the time."""
    wait_until(lambda: (named(waap, "gpu_busy_seconds_total") or [0])[0] > 0.5)
    text = waap.get("/metrics").text
    return re.sub(r"^(\S*_(?:joules|seconds)_total\S*) .*$", r"\1 *", text, flags=re.M)


def test_thor_with_nvml_is_golden(thor):
    golden = FIXTURES / "thor_jp7_nvml.prom"
    with thor(thor.played, "--web.disable-exporter-metrics") as waap:
        page = thor_page(waap)
        if "WAAP_WRITE_GOLDEN" in os.environ:
            golden.write_text(page)
        assert page == golden.read_text()
        assert findings(page.replace(" *\n", " 1\n")) == ""
        waap.wait_log("nvml: left out: the integrated GPU is left to the collector jetson")


def test_thors_load_is_integrated(thor):
    with thor(thor.played) as waap:
        wait_until(lambda: named(waap, "gpu_utilization_ratio") == [0.64])

        def rate():
            begin, first = time.monotonic(), named(waap, "gpu_busy_seconds_total")[0]
            wait_until(lambda: named(waap, "gpu_busy_seconds_total")[0] > first + 0.5)
            return (named(waap, "gpu_busy_seconds_total")[0] - first) / (time.monotonic() - begin)

        # A loaded machine may disturb one measurement, but not every one.
        wait_until(lambda: rate() == pytest.approx(0.64, rel=0.2), what="the load")
        assert named(waap, "gpu_utilization_peak_ratio") == [0.64]


@pytest.mark.parametrize("scenario", ["init error 9\n", "gpus 1\n0.name NVIDIA Thor\n"],
                         ids=["no driver", "nothing supported"])
def test_thor_without_nvml_has_the_rest(thor, scenario):
    with thor(scenario) as waap:
        samples = waap.samples()
        missing = ("gpu_utilization", "gpu_busy", "gpu_process", "container_gpu", "gpu_memory_used")
        assert not [key for key in samples if key.startswith(missing)]
        assert named(waap, "gpu_frequency_hertz") == [1575000000]
        assert samples['jetson_source_up{source="nvml"}'] == ("0" if "init" in scenario else "1")
        assert samples['waap_collector_success{collector="jetson"}'] == "1"


def test_thors_driver_comes_goes_and_comes_back(thor):
    with thor("init error 9\n") as waap:
        assert waap.samples()['jetson_source_up{source="nvml"}'] == "0"
        assert [key for key in waap.samples() if key.startswith("gpu_info") and "IGPU-" in key]
        thor.write(thor.played)
        wait_until(lambda: named(waap, "gpu_utilization_ratio") == [0.64])
        assert [key for key in waap.samples() if key.startswith("gpu_info") and '"GPU-' in key]
        thor.write("init error 9\n*.utilization error 15\n")
        wait_until(lambda: not named(waap, "gpu_utilization_ratio"))
        samples = waap.samples()
        assert samples['waap_collector_success{collector="jetson"}'] == "0"
        assert named(waap, "nvidia_nvml_return_code") == [15]
        assert named(waap, "gpu_frequency_hertz") == [1575000000]
        waap.wait_log("jetson: gpu 0: GPU is lost (15)")
        thor.write(thor.played)
        wait_until(lambda: named(waap, "gpu_utilization_ratio") == [0.64])
        assert waap.samples()['waap_collector_success{collector="jetson"}'] == "1"


def test_a_call_that_blocks_on_thor_holds_up_nobody_else(thor, tmp_path):
    (tmp_path / "other.prom").write_text("other 1\n")
    blocking = thor.played.replace("0.utilization 64 0", "0.utilization block 600")
    with thor(blocking, f"--collector.textfile.directory={tmp_path}",
              collectors=("jetson", "textfile")) as waap:
        answer = waap.get("/metrics", {"X-Prometheus-Scrape-Timeout-Seconds": "2"})
        assert 'waap_collector_success{collector="jetson"} 0' in answer.text
        assert "\nother 1\n" in answer.text


def test_on_orin_nvml_is_never_asked(waap_binary, tree, tmp_path):
    library = waap_binary.parent.parent / "tests/fakes/libnvidia-ml.so.1"
    flags = [*tree("agx_orin_jp7"), f"--collector.jetson.nvml={library}"]
    scenario = FIXTURES.parent / "nvml/orin.txt"
    with Waap(waap_binary, *flags, env={"FAKE_NVML": str(scenario)}) as waap:
        golden = (FIXTURES / "agx_orin_jp7.prom").read_text()
        load = re.search(r"^(gpu_utilization_ratio\S*) (.*)$", golden, re.M)
        assert waap.samples()[load.group(1)] == load.group(2) != "0"
        assert 'jetson_source_up{source="nvml"}' not in waap.samples()
        maps = pathlib.Path(f"/proc/{waap.process.pid}/maps").read_text()
        assert "libnvidia-ml" not in maps


def test_elsewhere_it_is_left_out(waap_binary, tmp_path):
    flags = [f"--path.procfs={tmp_path}", f"--path.sysfs={tmp_path}", f"--path.rootfs={tmp_path}"]
    with Waap(waap_binary, *flags) as waap:
        assert not [name for name in waap.samples() if name.startswith(("gpu_", "jetson_"))]
        assert "jetson: left out: no Tegra in the device tree" in waap.output()


@pytest.mark.parametrize("spoil, reason", [
    (lambda directory, program: directory.chmod(0o777), "{directory} is writable by others than its owner"),
    (lambda directory, program: program.chmod(0o777), "{program} is writable by others than its owner"),
    (lambda directory, program: program.symlink_to(program.rename(directory / "other")),
     "{program} is a symbolic link"),
    pytest.param(lambda directory, program: os.chown(directory, 65534, -1), "{directory} belongs to user 65534",
                 marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")),
    (None, None),
], ids=["directory", "program", "link", "owner", "trusted"])
def test_a_tegrastats_that_others_can_change_is_not_run(waap_binary, tree, tmp_path, spoil, reason):
    directory = tmp_path / "bin"
    directory.mkdir(mode=0o755)
    program, ran = directory / "tegrastats", tmp_path / "ran"
    program.write_text(f"#!/bin/sh\necho >{ran}\nexec sleep 60\n")
    program.chmod(0o755)
    if spoil:
        spoil(directory, program)
    flags = tree("xavier_nx_jp5")[:-1]
    with Waap(waap_binary, *flags, f"--collector.jetson.tegrastats={program}") as waap:
        success = waap.samples()['waap_collector_success{collector="jetson"}']
        if spoil is None:
            wait_until(ran.exists, what="the program")
            return
        assert success == "0"
        waap.wait_log(f"{program}: not run: " + reason.format(directory=directory, program=program))
        assert not ran.exists()
