"""The cgroup collector from outside: recorded trees of cgroup v1 and v2, and this machine's own."""

import shutil

import pytest

from peers import promtool


def only_cgroup(*flags):
    return ["--collector.disable-defaults", "--collector.cgroup",
            "--web.disable-exporter-metrics", *flags]


def page(daemon):
    lines = daemon.get("/metrics").text.split("\n")
    return "\n".join(line for line in lines if "waap_collector_" not in line)


@pytest.mark.parametrize("mode", ["v1", "v2"])
def test_golden(waap, source_root, mode, tmp_path):
    fixtures = source_root / "tests/fixtures/cgroup"
    # A copy: a checkout may have other file types than a cgroup has, such as links as files.
    shutil.copytree(fixtures / mode, tmp_path / mode, symlinks=True)
    daemon = waap(*only_cgroup(f"--path.cgroupfs={tmp_path / mode}",
                               f"--path.sysfs={fixtures / 'sys'}"))
    got = page(daemon)
    golden = source_root / f"tests/fixtures/golden/cgroup-{mode}.prom"
    assert sorted(got.split("\n")) == sorted(golden.read_text().split("\n"))


@pytest.mark.parametrize("mode", ["v1", "v2"])
def test_promtool_is_content(waap, source_root, mode):
    daemon = waap(*only_cgroup(f"--path.cgroupfs={source_root / 'tests/fixtures/cgroup' / mode}"))
    assert promtool("2.42", "check", "metrics", page=page(daemon).encode()) == (0, "")


def test_this_machine(waap):
    daemon = waap(*only_cgroup("--collector.cgroup.depth=2"))
    metrics = daemon.metrics()
    modes = [dict(labels)["mode"] for name, labels in metrics if name == "waap_cgroup_mode"]
    if not modes:
        pytest.skip("this machine has no cgroups")
    assert modes[0] in ("v1", "v2", "hybrid")
    root = ("cgroup_cpu_usage_seconds_total", frozenset({("cgroup", "/")}))
    assert daemon.metrics()[root] >= metrics[root] > 0
