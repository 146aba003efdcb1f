"""Demo mode: what it shows moves, fits together, is marked, and leaves nothing behind."""

import json
import pathlib
import re
import signal

import pytest

from peers import Prometheus, need_program
from waiting import pace, wait_undisturbed, wait_until

NOTICE = "a simulated Jetson Xavier NX, nothing shown is real"
FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures"
UUID = "IGPU-c1f10beb-c074-8ffd-aa95-84422f83f8f8"
GPU = f'{{gpu="0",uuid="{UUID}"}}'
RAILS = ("vdd_in", "vdd_cpu_gpu_cv", "vdd_soc")


@pytest.fixture
def demo(waap, tmp_path):
    """demo(…): the daemon in demo mode, its tree in a place of the test's own."""
    return lambda *flags, **options: waap(
        "--demo", *flags, env={"XDG_RUNTIME_DIR": str(tmp_path)}, **options
    )


def tree_of(program):
    return pathlib.Path(re.search(r"its files are in ([^\s\"]+)", program.output()).group(1))


def numbers(program):
    return {series: float(value) for series, value in program.samples().items()}


def watch(program, seconds):
    """(time, values) of scrapes, close to each other; the time is that of the page."""
    seen = []
    while not seen or seen[-1][0] - seen[0][0] < seconds:
        page = numbers(program)
        seen.append((page["node_time_seconds"], page))
        pace(0.05)
    return seen


def integral(seen, series):
    """Trapezoids under a gauge."""
    return sum(
        (b[0] - a[0]) * (a[1][series] + b[1][series]) / 2 for a, b in zip(seen, seen[1:])
    )


def rise(seen, series):
    return seen[-1][1][series] - seen[0][1][series]


def check_values(seen):
    for rail in RAILS:
        energy = rise(seen, f'jetson_rail_energy_joules_total{{rail="{rail}"}}')
        expected = integral(seen, f'jetson_rail_power_watts{{rail="{rail}"}}')
        assert energy == pytest.approx(expected, rel=0.1), rail
    busy = rise(seen, "gpu_busy_seconds_total" + GPU)
    assert busy == pytest.approx(integral(seen, "gpu_utilization_ratio" + GPU), rel=0.2, abs=0.3)

    first, last = seen[0][1], seen[-1][1]
    elapsed = seen[-1][0] - seen[0][0]
    for cpu in range(6):
        modes = [name for name in first if name.startswith(f'node_cpu_seconds_total{{cpu="{cpu}"')]
        spent = sum(last[name] - first[name] for name in modes)
        assert spent == pytest.approx(elapsed, abs=0.5), cpu
    for name in ("jetson_temperature_celsius{zone=\"gpu\"}", "jetson_power_total_watts",
                 "jetson_memory_used_bytes", "node_memory_MemFree_bytes"):
        assert len({values[name] for _, values in seen}) > 5, name
    for name in ('node_network_receive_bytes_total{device="eth0"}',
                 'node_disk_written_bytes_total{device="mmcblk0"}'):
        assert last[name] > first[name]


def test_values_move_and_agree(demo):
    program = demo()
    wait_undisturbed(lambda: check_values(watch(program, 6)))


def test_everything_of_a_xavier_nx_is_there(demo):
    page = numbers(demo())
    assert page['jetson_info{l4t="35.4.1",model="NVIDIA Jetson Xavier NX Developer Kit",'
                'soc="tegra194"}'] == 1
    assert page['jetson_power_mode{id="8",name="MODE_20W_6CORE"}'] == 1
    assert page["node_memory_MemTotal_bytes"] == page["gpu_memory_total_bytes" + GPU] == 6987700 * 1024
    families = {name.split("{")[0] for name in page}
    assert families >= {
        "gpu_frequency_hertz", "gpu_memory_used_bytes", "gpu_temperature_celsius",
        "gpu_utilization_peak_ratio", "jetson_cpu_frequency_hertz", "jetson_cpu_online",
        "jetson_emc_frequency_hertz", "jetson_emc_utilization_ratio", "jetson_energy_joules_total",
        "jetson_engine_active", "jetson_engine_utilization_ratio", "jetson_fan_pwm_ratio",
        "jetson_fan_rpm", "jetson_memory_largest_free_blocks", "jetson_overcurrent_events_total",
        "jetson_rail_power_peak_watts", "jetson_throttle_alert", "node_boot_time_seconds",
        "node_filesystem_size_bytes", "node_load1", "node_pressure_cpu_waiting_seconds_total",
        "node_thermal_zone_temp",
    }
    for collector in ("container", "host", "jetson"):
        assert page[f'waap_collector_success{{collector="{collector}"}}'] == 1
    total = page["jetson_power_total_watts"]
    assert total == page['jetson_rail_power_watts{rail="vdd_in"}'] and 3 < total < 20
    parts = sum(page[f'jetson_rail_power_watts{{rail="{rail}"}}'] for rail in RAILS[1:])
    assert parts < total


def of_container(page, family, container, **labels):
    """The value of a container's series that has all of these labels."""
    wanted = [f'container="{container}"', *(f'{name}="{value}"' for name, value in labels.items())]
    found = [value for series, value in page.items()
             if series.startswith(family + "{") and all(label in series for label in wanted)]
    assert len(found) <= 1, found
    return found[0] if found else None


CONTAINER_ENERGY = "container_energy_estimate_joules_total"


def check_containers(seen):
    energy = CONTAINER_ENERGY
    first, last = seen[0][1], seen[-1][1]
    busy = sum(last[name] - first[name] for name in last
               if name.startswith("node_cpu_seconds_total{") and "idle" not in name and "iowait" not in name)
    used = {}
    for name in ("object-detector", "uploader"):
        used[name] = (of_container(last, "container_cpu_usage_seconds_total", name)
                      - of_container(first, "container_cpu_usage_seconds_total", name))
        assert 1e8 < of_container(last, "container_memory_working_set_bytes", name) < 2e9
        assert of_container(last, "container_network_receive_bytes_total", name, interface="eth0") > 0
        assert of_container(last, "container_fs_writes_bytes_total", name, device="/dev/mmcblk0") > 0
        assert of_container(last, energy, name, source="cpu") is not None
        assert of_container(last, "container_processes", name, namespace="ses") == 1
    assert 0 < sum(used.values()) < busy + 0.1
    assert of_container(last, energy, "uploader", source="gpu") is None

    total = sum(value for name, value in last.items() if name.startswith(energy + "{"))
    assert total == pytest.approx(last["jetson_energy_joules_total"], rel=0.03)
    holders = [name for name in last if name.startswith("container_gpu_memory_bytes{")]
    assert len(holders) == 1 and "/kubepods/burstable/pod5e0c2f3a" in holders[0]


def test_containers(demo):
    """They use part of the CPUs and of the energy; all of that together is what was measured."""
    program = demo()
    wait_until(lambda: CONTAINER_ENERGY in program.get("/metrics").text)
    wait_undisturbed(lambda: check_containers(watch(program, 6)))


def check_cards(seen):
    last = seen[-1][1]
    assert not [name for name in last if name.startswith("jetson_") or "NvMap" in name]
    for collector in ("container", "host", "nvml"):
        assert last[f'waap_collector_success{{collector="{collector}"}}'] == 1
    for card in range(2):
        labels = f'{{gpu="{card}",uuid="GPU-de300000-0000-4000-8000-{card:012}"}}'
        energy = rise(seen, "gpu_energy_joules_total" + labels)
        assert energy == pytest.approx(integral(seen, "gpu_power_watts" + labels), rel=0.1)
        busy = rise(seen, "gpu_busy_seconds_total" + labels)
        expected = integral(seen, "gpu_utilization_ratio" + labels)
        assert busy == pytest.approx(expected, rel=0.2, abs=0.3)
        parts = [last[f"gpu_memory_{part}_bytes" + labels] for part in ("used", "free", "reserved")]
        assert sum(parts) == last["gpu_memory_total_bytes" + labels]
        assert last["gpu_power_watts" + labels] <= last["gpu_power_limit_watts" + labels]
        assert len({values["gpu_power_watts" + labels] for _, values in seen}) > 5
    processes = [name for name in last if name.startswith("gpu_process_memory_bytes{")]
    assert any('comm="object-detector"' in name for name in processes) and len(processes) == 2
    memory, = [name for name in last if name.startswith("container_gpu_memory_bytes{")]
    container = re.search(r',id="([^"]+)"', memory).group(1)
    assert [name for name in last if name.startswith("container_cpu_usage_seconds_total{")
            and container in name and "object-detector" in name]


def test_cards_move_and_agree(demo):
    program = demo("--demo=dgpu", "--collector.nvml.processes")
    wait_until(lambda: any(name.startswith("gpu_busy") for name in numbers(program)))
    wait_undisturbed(lambda: check_cards(watch(program, 6)))


def test_cards_are_marked(demo):
    program = demo("--demo=dgpu")
    notice = "a simulated server with two graphics cards, nothing shown is real"
    assert program.samples()["waap_demo"] == "1"
    assert f"Demo: {notice}." in program.get("/").text
    assert "level=warn" in program.wait_log(notice)


@pytest.mark.parametrize("kind", ["jetson", "dgpu"])
def test_a_card_of_this_machine_is_not_shown(kind, waap, waap_binary, tmp_path):
    env = {
        "FAKE_NVML": str(FIXTURES / "nvml/two-cards.txt"),
        "WAAP_COLLECTOR_NVML_LIBRARY": str(waap_binary.parent.parent / "tests/fakes/libnvidia-ml.so.1"),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }
    page = waap(f"--demo={kind}", env=env).samples()
    shown = {re.search('uuid="([^"]*)"', name).group(1) for name in page if name.startswith("gpu_info")}
    simulated = {"jetson": {UUID}, "dgpu": {f"GPU-de300000-0000-4000-8000-{i:012}" for i in range(2)}}
    assert shown == simulated[kind]


def test_an_unknown_kind_is_refused(waap):
    program = waap("--demo=abacus", wait=False)
    assert program.wait_exit() == 2
    assert '--demo: expected one of off, jetson, dgpu, got "abacus"' in program.output()


def test_is_marked(demo):
    program = demo("--web.disable-exporter-metrics")
    assert program.samples()["waap_demo"] == "1"
    assert f"<p class=\"demo\">Demo: {NOTICE}.</p>" in program.get("/").text
    assert "level=warn" in program.wait_log(NOTICE)


def test_nothing_is_marked_without_it(waap):
    program = waap()
    assert "waap_demo" not in program.samples()
    assert "Demo" not in program.get("/").text
    assert NOTICE not in program.output()


def test_paths_given_otherwise_do_not_count(waap, tmp_path):
    env = {"XDG_RUNTIME_DIR": str(tmp_path), "WAAP_DEMO": "jetson", "WAAP_PATH_SYSFS": "/nowhere"}
    program = waap("--path.procfs=/nowhere", "--path.rootfs=/nowhere", env=env)
    page = program.samples()
    assert page["waap_demo"] == "1" and "jetson_power_total_watts" in page


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_tree_is_private_and_goes_with_the_daemon(number, demo, tmp_path):
    program = demo()
    tree = tree_of(program)
    assert tree.parent == tmp_path and tree.stat().st_mode & 0o777 == 0o700
    assert (tree / "proc/stat").exists()
    assert program.stop(signal=number)[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_tree_goes_when_the_start_fails(waap, tmp_path):
    env = {"XDG_RUNTIME_DIR": str(tmp_path)}
    program = waap("--demo", "--web.listen-address=192.0.2.1:1", env=env, wait=False)
    assert program.wait_exit() == 1
    assert NOTICE in program.output() and list(tmp_path.iterdir()) == []


def test_what_a_crash_left_goes_with_the_next_start(demo):
    crashed = demo()
    left = tree_of(crashed)
    assert crashed.stop(signal=signal.SIGKILL)[0] == -signal.SIGKILL
    assert left.exists()
    demo()
    assert not left.exists()


def test_two_at_once_do_not_disturb_each_other(demo):
    first, second = demo(), demo()
    assert tree_of(first) != tree_of(second)
    energy = "jetson_energy_joules_total"
    before = numbers(second)[energy]
    assert first.stop()[0] == 0
    assert not tree_of(first).exists() and tree_of(second).exists()
    wait_until(lambda: numbers(second)[energy] > before + 1, what="energy of the other one")
    assert numbers(second)['waap_collector_success{collector="jetson"}'] == 1


def test_reload_keeps_it_and_cannot_end_it(waap, tmp_path):
    config = tmp_path / "waap.yaml"
    config.write_text("demo: true\n")
    program = waap(f"--config.file={config}", env={"XDG_RUNTIME_DIR": str(tmp_path)})
    tree = tree_of(program)
    program.process.send_signal(signal.SIGHUP)
    program.wait_log("reload: configuration applied")
    assert program.samples()["waap_demo"] == "1" and "jetson_info" in program.get("/metrics").text
    config.write_text("demo: off\n")
    program.process.send_signal(signal.SIGHUP)
    program.wait_log("reload: demo: cannot be changed while waap runs")
    assert tree.exists() and program.samples()["waap_config_last_reload_successful"] == "0"


def test_prometheus_sees_curves(demo, started, tmp_path):
    program = demo()
    directory = tmp_path / "prometheus"
    directory.mkdir()
    prometheus = need_program("prometheus", "2.42")
    server = started(Prometheus(prometheus, directory, program.port, {"demo": {}}))

    def enough():
        counted = server.query("count_over_time(waap_demo[10m])")
        return counted and float(counted[0]["value"][1]) >= 20

    wait_until(enough, what="20 scrapes")

    def value(query):
        return float(server.query(query)[0]["value"][1])

    rate = value("deriv(jetson_energy_joules_total[10m])")
    mean = value("avg_over_time(jetson_power_total_watts[10m])")
    assert rate == pytest.approx(mean, rel=0.2)
    assert 0 <= value("deriv(gpu_busy_seconds_total[10m])") <= 1
    assert value("changes(jetson_temperature_celsius{zone='gpu'}[10m])") >= 10


PLUGIN = (
    'container="object-detector",job="cars",namespace="ses",{}plugin="object-detector",'
    'pod="object-detector-7d9c6b5f4-x8k2p"'
)
KNOB = "/api/v1/plugins/object-detector/params/res"


def total_frames(program):
    return numbers(program)["fps_total{" + PLUGIN.format("") + "}"]


def frames_per_second(program):
    """Counted by ourselves; the mean of ten seconds would take that long to settle."""
    seen = watch(program, 2)
    return rise(seen, "fps_total{" + PLUGIN.format("") + "}") / (seen[-1][0] - seen[0][0])


def test_frame_rate_follows_the_knob(demo):
    program = demo()
    param = "plugin_param{" + PLUGIN.format('param="res",') + "}"
    wait_until(lambda: 15 < frames_per_second(program) < 26, what="the rate of the default")
    answer = program.get(KNOB, method="PUT", body=b'{"value": 240}')
    assert answer.status == 200, answer.text
    wait_until(lambda: numbers(program)[param] == 240, what="the plugin to apply it")
    wait_until(lambda: 26 < frames_per_second(program) < 36, what="the rate of fewer lines")
    assert json.loads(program.get(KNOB).body)["data"]["applied"] == 240


def test_plugins_push_what_adds_up(demo):
    program = demo()
    wait_until(lambda: total_frames(program) > 20, what="frames")
    page = numbers(program)
    labels = PLUGIN.format("")
    assert page["inference_seconds_count{" + labels + "}"] == pytest.approx(
        page["fps_total{" + labels + "}"], abs=1
    )
    mean = page["inference_seconds_sum{" + labels + "}"] / page["inference_seconds_count{" + labels + "}"]
    assert 0.03 < mean < 0.07
    assert [series for series in page if series.startswith("uploads_total{")]
    assert not [page[series] for series in page if "waap_push_refused" in series and page[series]]


def test_one_query_covers_a_mixed_fleet(demo, started, tmp_path):
    programs = [demo(), demo("--demo=dgpu")]
    targets = [f"127.0.0.1:{program.port}" for program in programs]
    directory = tmp_path / "prometheus"
    directory.mkdir()
    prometheus = need_program("prometheus", "2.42")
    fleet = {"fleet": {"static_configs": [{"targets": targets}]}}
    server = started(Prometheus(prometheus, directory, programs[0].port, fleet))
    named = "gpu_utilization_ratio * on (instance, gpu, uuid) group_left (name) gpu_info"
    wait_until(lambda: len(server.query(named)) == 3, what="all GPUs")
    names = sorted(row["metric"]["name"] for row in server.query(named))
    assert names == ["NVIDIA RTX A4000", "NVIDIA RTX A4000", "Xavier"]
    assert len(server.query("count by (uuid) (gpu_memory_used_bytes{uuid!=\"\"})")) == 3
    held = "container_gpu_memory_bytes / on (instance, gpu, uuid) group_left gpu_memory_total_bytes"
    assert len(server.query(held)) == 2
