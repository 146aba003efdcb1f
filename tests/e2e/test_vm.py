"""The container and cgroup collectors on a kernel of their own, with cgroup v2: what they export,
against what a load did and measured itself."""

import collections
import json
import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from machine import TOP, Load, boot
from waiting import pace, wait_until

MIB = 1 << 20
RUNTIMES = [None, "crun", "runc"]


@pytest.fixture(scope="module")
def machine(tmp_path_factory, waap_binary):
    with boot(tmp_path_factory.mktemp("vm"), waap_binary) as machine:
        yield machine
        assert machine.shell("cat /run/waap.log") == ""


@pytest.fixture(scope="class", params=RUNTIMES, ids=lambda runtime: runtime or "bare")
def load(machine, request):
    load = Load(machine, request.param, "a")
    yield load
    load.remove()
    wait_until(lambda: values(machine, load) == {}, what="no trace of it")


@pytest.fixture
def limited(machine):
    """limited(file="text", …): a load of its own in a cgroup with those limits."""
    loads = []

    def start(**files):
        names = {name.replace("_", "."): text for name, text in files.items()}
        loads.append(Load(machine, None, "0123456789"[len(loads)], **names))
        return loads[-1]

    yield start
    for load in loads:
        load.remove()


def samples(page):
    assert 'waap_collector_success{collector="container"} 1' in page
    return [sample for family in text_string_to_metric_families(page) for sample in family.samples]


def values(machine, load):
    """{metric: value} of one container; of those with more labels, the last."""
    return {sample.name: sample.value for sample in samples(machine.page())
            if sample.labels.get("id") == f"/docker/{load.id}"}


def value(machine, load, name):
    return values(machine, load)[name]


def total(machine, name):
    return sum(sample.value for sample in samples(machine.page()) if sample.name == name)


def keyed(text):
    return {key: int(value) for key, value in (line.split() for line in text.splitlines())}


def pressure(text):
    return {line.split()[0]: int(line.rsplit("total=", 1)[1]) / 1e6 for line in text.splitlines()}


def test_no_containers(machine):
    page = machine.page("container", "cgroup")
    assert 'waap_cgroup_mode{mode="v2"} 1' in page
    assert "container_last_seen{" not in page


class TestLoad:
    """In a bare cgroup, then in containers of two runtimes."""

    def test_cpu_seconds(self, machine, load):
        name = "container_cpu_usage_seconds_total"
        load.order("burn 0")  # the first time everything takes longer, answering too
        began, before = load.order("burn 0"), value(machine, load, name)
        ended, after = load.order("burn 2"), values(machine, load)
        told = ended - began
        assert told >= 2
        assert after[name] - before == pytest.approx(told, rel=0.02)
        parts = [after[f"container_cpu_{part}_seconds_total"] for part in ("user", "system")]
        assert sum(parts) == pytest.approx(after[name], abs=2e-6)
        # One that it used all the time, of the two there are; samples are not quite evenly spaced.
        assert 0.5 < after["container_cpu_usage_peak_cores"] < 3

    def test_memory_bytes(self, machine, load):
        name = "container_memory_rss"
        before = values(machine, load)
        load.order(f"hold {32 * MIB}")

        # The kernel adds up the last few pages every two seconds, or later.
        def grown_by(size):
            return abs(value(machine, load, name) - before[name] - size) < MIB / 4

        wait_until(lambda: grown_by(32 * MIB), what="32 MiB more")
        after = values(machine, load)
        used = after["container_memory_usage_bytes"]
        assert used - before["container_memory_usage_bytes"] > 31.75 * MIB
        assert after["container_memory_max_usage_bytes"] >= used
        load.order("release")
        wait_until(lambda: grown_by(0), what="as much as before")
        assert value(machine, load, "container_memory_max_usage_bytes") >= 32 * MIB

    def test_disk_bytes(self, machine, load):
        names = [f"container_fs_{what}_total" for what in ("reads_bytes", "writes_bytes")]

        def moved():
            return [sum(sample.value for sample in samples(machine.page()) if sample.name == name
                        and sample.labels["id"] == f"/docker/{load.id}"
                        and sample.labels["device"] == "/dev/vda") for name in names]

        read, written = moved()
        load.order(f"write /dev/vda {5 * MIB}")
        load.order(f"read /dev/vda {3 * MIB}")
        assert moved() == [read + 3 * MIB, written + 5 * MIB]

    def test_tasks(self, machine, load):
        load.order("threads 5")
        load.order("processes 3")
        after = values(machine, load)
        assert after["container_processes"] == 4
        assert after["container_threads"] == 9

    def test_start_time(self, machine, load):
        now, page = float(machine.shell("date +%s")), values(machine, load)
        assert now - 600 < page["container_start_time_seconds"] < now + 1
        assert page["container_last_seen"] == pytest.approx(now, abs=5)


def test_throttling_and_pressure(machine, limited):
    load = limited(cpu_max="20000 100000")
    load.order("burn 0.5")
    exported, told = values(machine, load), keyed(load.file("cpu.stat"))
    assert exported["container_spec_cpu_quota"] == 20000
    assert exported["container_spec_cpu_period"] == 100000
    assert exported["container_cpu_cfs_throttled_periods_total"] == told["nr_throttled"] > 10
    assert exported["container_cpu_cfs_throttled_seconds_total"] == told["throttled_usec"] / 1e6 > 1
    waiting = exported["container_pressure_cpu_waiting_seconds_total"]
    # A fifth of a CPU: it has waited for about four times as long as it ran.
    assert 1 < waiting <= pressure(load.file("cpu.pressure"))["some"] < waiting + 0.5


def test_memory_that_runs_out(machine, limited):
    load = limited(memory_max=16 * MIB, memory_swap_max=0)
    machine.shell(f"(echo 0 >{load.cgroup}/cgroup.procs; exec tail /dev/zero) || true")
    exported, told = values(machine, load), keyed(load.file("memory.events"))
    assert exported["container_oom_events_total"] == told["oom_kill"] == 1
    assert exported["container_memory_failcnt"] == told["max"] > 0
    assert 15 * MIB < exported["container_memory_max_usage_bytes"] <= 16 * MIB
    assert exported["container_spec_memory_limit_bytes"] == 16 * MIB
    assert exported["container_processes"] == 1
    waiting = exported["container_pressure_memory_waiting_seconds_total"]
    assert waiting == pressure(load.file("memory.pressure"))["some"]


def test_limits_that_are_set_later(machine, limited):
    """As runtimes do: first the cgroup, then its limits."""
    load = limited()
    assert values(machine, load)["container_spec_memory_limit_bytes"] == 0
    machine.shell(f"echo {64 * MIB} >{load.cgroup}/memory.max")
    wait_until(lambda: value(machine, load, "container_spec_memory_limit_bytes") == 64 * MIB,
               what="the limit")


def test_files_that_come_and_go(machine, limited):
    """The kernel takes the pressure files away and, back again, they are others."""
    load = limited()
    name = "container_pressure_cpu_waiting_seconds_total"
    assert name in values(machine, load)
    machine.shell(f"echo 0 >{load.cgroup}/cgroup.pressure")
    assert name not in values(machine, load)
    machine.shell(f"echo 1 >{load.cgroup}/cgroup.pressure")
    wait_until(lambda: name in values(machine, load), what="the pressure")


def test_nested_and_frozen(machine, limited):
    load = limited()
    machine.shell(f"mkdir {load.cgroup}/inner\n"
                  f"for pid in $(cat {load.cgroup}/cgroup.procs); do\n"
                  f"    echo $pid >{load.cgroup}/inner/cgroup.procs\ndone\n"
                  f"echo 1 >{load.cgroup}/cgroup.freeze")
    frozen = values(machine, load)
    assert frozen["container_processes"] == frozen["container_threads"] == 1
    assert values(machine, load)["container_cpu_usage_seconds_total"] == (
        frozen["container_cpu_usage_seconds_total"])
    machine.shell(f"echo 0 >{load.cgroup}/cgroup.freeze\n"
                  f"for pid in $(cat {load.cgroup}/inner/cgroup.procs); do\n"
                  f"    echo $pid >{load.cgroup}/cgroup.procs\ndone\nrmdir {load.cgroup}/inner")


def test_cgroup_collector(machine):
    machine.shell("mkdir /sys/fs/cgroup/batch\n"
                  "(echo 0 >/sys/fs/cgroup/batch/cgroup.procs; timeout 1 yes >/dev/null) || true")
    told = keyed(machine.shell("cat /sys/fs/cgroup/batch/cpu.stat"))
    exported = {sample.name: sample.value for sample in samples(machine.page("container", "cgroup"))
                if sample.labels.get("cgroup") == "/batch"}
    machine.shell("rmdir /sys/fs/cgroup/batch")
    assert exported["cgroup_cpu_usage_seconds_total"] == told["usage_usec"] / 1e6 > 0.5


def checked_page(machine, is_known, kinds):
    """Scrapes and finds nothing false: success, no series twice, none of what never was, and of
    each container all series or none."""
    page = samples(machine.page("container", "cgroup"))
    series = [(sample.name, frozenset(sample.labels.items())) for sample in page]
    assert len(series) == len(set(series))
    names = collections.defaultdict(set)
    for sample in page:
        assert sample.value == sample.value and sample.value >= 0, sample
        id = sample.labels.get("id")
        if id is not None:
            assert is_known(id), id
            names[id].add(sample.name)
    for id, there in names.items():
        assert kinds <= there, (id, kinds - there)
    return len(names)


def scraped_while(machine, is_known, work):
    """Scrapes until the work is done; returns what the work did and on how many pages how many
    containers were seen."""
    # Whatever a container has at any moment of its life.
    kinds = {f"container_{name}" for name in (
        "cpu_usage_seconds_total", "last_seen", "memory_usage_bytes", "memory_working_set_bytes",
        "oom_events_total", "pressure_cpu_waiting_seconds_total", "processes", "start_time_seconds",
        "threads")}
    result, pages = [], []
    worker = threading.Thread(target=lambda: result.append(work()))
    worker.start()
    try:
        while worker.is_alive():
            pages.append(checked_page(machine, is_known, kinds))
            pace(0.02)
    finally:
        worker.join()
    assert result, "the work failed"
    return result[0], pages


def held(machine):
    """Descriptors of the daemon's, and KiB of its own and of the kernel's memory."""
    text = machine.shell("pid=$(cat /run/waap.pid)\nls /proc/$pid/fd | wc -l\n"
                         "awk '/VmRSS/ { print $2 }' /proc/$pid/status\n"
                         "awk '/slab_unreclaimable/ { print $2 / 1024 }' "
                         "/sys/fs/cgroup/waap/memory.stat")
    return [float(word) for word in text.split()]


def test_a_thousand_kills_while_scraping(machine):
    cycles = 1000

    def churn(n):
        words = machine.shell(f"churn {TOP} {n} 50", timeout=300).split()
        return int(words[0]), float(words[1])

    churn(100)
    machine.page()
    descriptors, own_kib, kernel_kib = held(machine)
    finished = total(machine, "container_finished_total")
    used = total(machine, "container_finished_cpu_usage_seconds_total")
    known = {f"/docker/{n:064x}" for n in range(cycles)}
    (ended, told), pages = scraped_while(machine, known.__contains__, lambda: churn(cycles))
    assert ended == cycles
    assert sum(pages) > 0
    assert "container_last_seen{" not in machine.page()
    # How many of them are seen before they end depends on the machine; none is counted twice.
    assert 0 < total(machine, "container_finished_total") - finished <= cycles
    counted = total(machine, "container_finished_cpu_usage_seconds_total") - used
    assert 0 < counted <= told * 1.02
    # Folders that last may be kept open since; of a thousand kills nothing is.
    wait_until(lambda: held(machine)[0] < descriptors + 10, what="as many descriptors as before")
    assert held(machine)[1] <= own_kib + 512
    wait_until(lambda: held(machine)[2] <= kernel_kib + 256, what="as much of the kernel's memory")


@pytest.mark.parametrize("runtime, cycles", [
    ("crun", 4), ("runc", 2),
    pytest.param("crun", 900, marks=pytest.mark.long),
    pytest.param("runc", 100, marks=pytest.mark.long)])
def test_real_containers_killed_while_scraping(machine, runtime, cycles):
    load = Load(machine, runtime, "b")
    machine.shell(f"{runtime} delete -f {load.id}")
    machine.page()
    descriptors = held(machine)[0]
    finished = total(machine, "container_finished_total")
    script = (f"cd {load.place}\nfor n in $(seq {cycles}); do\n"
              f"{runtime} run --no-pivot -d {load.id} >{load.place}/log 2>&1\n"
              f"{runtime} kill {load.id} KILL\n{runtime} delete -f {load.id}\ndone\n")
    _, pages = scraped_while(machine, {f"/docker/{load.id}"}.__contains__,
                             lambda: machine.shell(script, timeout=3600))
    assert sum(pages) > 0
    machine.shell(f"rm -r {load.place}")
    assert total(machine, "container_finished_total") - finished == cycles
    wait_until(lambda: held(machine)[0] <= descriptors, what="as many descriptors as before")


def test_short_lives_are_accounted(machine):
    """Each lives for 300 ms, and no scrape happens meanwhile."""
    machine.page()
    finished = total(machine, "container_finished_total")
    used = total(machine, "container_finished_cpu_usage_seconds_total")
    told = 0
    for _ in range(5):
        load = Load(machine, None, "c")
        told += load.order("burn 0.3")
        load.remove()
    assert total(machine, "container_finished_total") - finished == 5
    counted = total(machine, "container_finished_cpu_usage_seconds_total") - used
    # The shell that became the load and the killing of it are not in what the load knows.
    assert counted == pytest.approx(told, rel=0.05)


@pytest.mark.parametrize("home, enter, source", [
    ("", "", "memory.peak"),
    pytest.param("shared", "sleep 600 >/dev/null 2>&1 & echo $! >cgroup.procs", "rusage", marks=pytest.mark.long),
    ("alone", "", "memory.peak"),
])
def test_profile_of_a_command(machine, home, enter, source):
    """In the root, which hands its controllers down; in a cgroup that cannot, as others are in it; and in one that
    can once `waap run` has stepped aside."""
    lines = machine.shell(f"""
        mkdir -p /sys/fs/cgroup/{home}
        cd /sys/fs/cgroup/{home}
        {enter}
        echo "profiling: {{sampling: {{baseline: 0, cooldown: 0}}}}" >/tmp/sage.yaml
        for work in "burn 1" "hold {5 * MIB}" "hold {35 * MIB}"; do
            sh -c 'echo 0 >cgroup.procs; exec waap run /tmp/sage.yaml --force --out=/tmp/run -- load / "$0"' "$work" >/dev/null
            cat /tmp/run/output/1-1.log
            grep '"kind":"end"' /tmp/run/samples.jsonl
        done
        rm -r /tmp/run
        find /sys/fs/cgroup -name 'waap-run-[0-9]*'
        """).splitlines()
    assert len(lines) == 6
    own, burn, small, large = float(lines[0]), *(json.loads(line) for line in lines[1::2])
    # What became the load and its end are not in what it knows, and take long on a machine that is emulated.
    assert burn["user_seconds"] + burn["system_seconds"] == pytest.approx(own, rel=0.05)
    assert large["peak_memory_bytes"] - small["peak_memory_bytes"] == pytest.approx(30 * MIB, rel=0.02)
    assert large["peak_memory_source"] == source
