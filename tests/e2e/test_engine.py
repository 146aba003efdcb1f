"""The engine with collectors that hang, fail, come late, or break the rules."""

import concurrent.futures
import re
import signal
import socket
import threading
import time

import pytest

from running import Waap, wait_until


@pytest.fixture
def fake(fake_binary, started):
    """Starts waap-fake with some of its collectors: fake("slow", "hang", flags...)."""

    def start(*arguments):
        names = [name for name in arguments if not name.startswith("-")]
        flags = [flag for flag in arguments if flag.startswith("-")]
        switches = [f"--collector.{name}" for name in names]
        return started(Waap(fake_binary, "--collector.disable-defaults", *switches, *flags))

    return start


@pytest.fixture
def hang_file(tmp_path):
    file = tmp_path / "hang"
    file.touch()
    yield file
    file.unlink(missing_ok=True)


def success(samples, name):
    return samples.get(f'waap_collector_success{{collector="{name}"}}')


def timeout(seconds):
    return {"X-Prometheus-Scrape-Timeout-Seconds": str(seconds)}


# ---- a collector that hangs ----


def test_a_hanging_collector_delays_nobody(fake, hang_file):
    waap = fake("hang", "zoo", "fail", f"--collector.hang.file={hang_file}")
    first = waap.get("/metrics", timeout(1))
    assert 0.4 < first.seconds < 0.8  # half a second is kept for the way back
    assert "hang_calls_total" not in first.text
    assert 'waap_collector_success{collector="hang"} 0\n' in first.text
    assert 'waap_collector_success{collector="zoo"} 1\n' in first.text
    assert "\nzoo_frames 29.97\n" in first.text

    second = waap.get("/metrics", timeout(1))  # it is not waited for again
    assert second.seconds < 0.2
    assert 'waap_collector_success{collector="hang"} 0\n' in second.text
    assert "\nzoo_frames 29.97\n" in second.text


def test_health_is_answered_while_scrapes_wait(fake, hang_file):
    waap = fake("hang", "slow", "--collector.slow.delay=2s", f"--collector.hang.file={hang_file}")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        scrapes = [pool.submit(waap.get, "/metrics", timeout(2)) for _ in range(4)]
        time.sleep(0.2)
        for path in ("/-/healthy", "/-/ready", "/", "/nowhere"):
            assert waap.get(path).seconds < 0.1
        assert not any(scrape.done() for scrape in scrapes)
        for scrape in scrapes:
            assert 1.3 < scrape.result().seconds < 1.8


def test_a_hanging_collector_comes_back(fake, hang_file):
    waap = fake("hang", f"--collector.hang.file={hang_file}", "--scrape.timeout=1s")
    assert success(waap.samples(), "hang") == "0"
    hang_file.unlink()
    wait_until(lambda: success(waap.samples(), "hang") == "1")
    answer = waap.get("/metrics")
    assert answer.seconds < 0.2
    assert "\nhang_calls_total " in answer.text
    assert "hang: answers again" in waap.output()


def test_a_collector_that_hangs_when_opened(fake, hang_file):
    waap = fake(
        "hang", "zoo", "--collector.hang.in=open", f"--collector.hang.file={hang_file}"
    )
    first = waap.get("/metrics", timeout(1))
    assert first.seconds < 0.8
    assert 'waap_collector_success{collector="hang"} 0\n' in first.text
    assert "\nzoo_frames 29.97\n" in first.text
    assert waap.get("/metrics", timeout(1)).seconds < 0.2
    hang_file.unlink()
    wait_until(lambda: success(waap.samples(timeout(1)), "hang") == "1")


def test_scrapes_of_others_do_not_wait_for_it(fake, hang_file):
    waap = fake("hang", "zoo", f"--collector.hang.file={hang_file}")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waap.get, "/metrics", timeout(2))
        time.sleep(0.2)
        other = waap.get("/metrics?collect[]=zoo")
        assert other.seconds < 0.2
        assert "\nzoo_frames 29.97\n" in other.text
        assert not waiting.done()
        assert 1.3 < waiting.result().seconds < 1.8


@pytest.mark.parametrize("place", ("collect", "open"))
def test_stops_in_time_with_a_hanging_collector(place, fake, hang_file):
    waap = fake(
        "hang", "zoo", f"--collector.hang.file={hang_file}", f"--collector.hang.in={place}"
    )
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waap.get, "/metrics", timeout(30))
        time.sleep(0.3)
        code, seconds = waap.stop()
        assert code == 0
        assert seconds < 2
        # Who waits gets what there is.
        assert "\nzoo_frames 29.97\n" in waiting.result().text


# ---- rounds ----


def test_scrapes_at_the_same_time_share_a_round(fake):
    waap = fake("slow", "--collector.slow.delay=500ms")
    before = int(waap.samples()["slow_calls_total"])
    barrier = threading.Barrier(16)

    def scrape(_):
        barrier.wait()
        answer = waap.get("/metrics")
        return answer.text.split("\nslow_calls_total ")[1].split("\n")[0]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        calls = {int(text) for text in pool.map(scrape, range(16))}
    assert calls == {before + 1}
    assert int(waap.samples()["slow_calls_total"]) == before + 2


def test_each_scrape_has_its_own_deadline(fake):
    waap = fake("slow", "zoo", "--collector.slow.delay=1500ms")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        short = pool.submit(waap.get, "/metrics", timeout(1))
        long = pool.submit(waap.get, "/metrics", timeout(10))
        filtered = pool.submit(waap.get, "/metrics?exclude[]=slow", timeout(10))
        assert filtered.result().seconds < 0.3
        assert 0.4 < short.result().seconds < 0.9
        assert 'waap_collector_success{collector="slow"} 0\n' in short.result().text
        assert 1.4 < long.result().seconds < 2
        assert "\nslow_calls_total 1\n" in long.result().text


@pytest.mark.parametrize("text", ("", "soon", "-1", "nan", "1e400", "0"))
def test_odd_timeouts_do_no_harm(text, fake):
    waap = fake("zoo")
    answer = waap.get("/metrics", timeout(text))
    assert answer.status in (200, 400)
    assert waap.get("/metrics").status == 200


# ---- filters ----


@pytest.mark.parametrize(
    "query, families",
    (
        ("", {"zoo", "fail", "slow"}),
        ("?collect[]=zoo", {"zoo"}),
        ("?collect%5B%5D=zoo&collect[]=slow", {"zoo", "slow"}),
        ("?exclude[]=zoo", {"fail", "slow"}),
        ("?exclude[]=zoo&exclude[]=fail", {"slow"}),
        ("?exclude[]=zoo&exclude[]=fail&exclude[]=slow", set()),
    ),
)
def test_filters(query, families, fake):
    waap = fake("fail", "slow", "zoo", "--collector.slow.delay=1ms")
    samples = waap.samples(path="/metrics" + query)
    assert {name.split("_")[0] for name in samples} & {"zoo", "fail", "slow"} == families
    asked = {name for name in ("zoo", "fail", "slow") if success(samples, name) is not None}
    assert asked == families


@pytest.mark.parametrize(
    "query",
    (
        "?collect[]=zoo&exclude[]=fail",
        "?collect[]=nonsense",
        "?exclude[]=nonsense",
        "?collect[]=",
        "?collect[]=hang",  # known, but not switched on
    ),
)
def test_filters_that_make_no_sense(query, fake):
    waap = fake("zoo", "fail")
    answer = waap.get("/metrics" + query)
    assert answer.status == 400
    assert answer.text.strip() != ""


# ---- collectors that fail or are absent ----


def test_a_failing_collector_spoils_nothing_else(fake):
    waap = fake("fail", "zoo")
    samples = waap.samples()
    assert success(samples, "fail") == "0"
    assert success(samples, "zoo") == "1"
    assert samples["fail_attempts_total"] == "1"  # what came before the fault is served
    assert 'waap_collector_last_success_timestamp_seconds{collector="fail"}' not in samples
    waap.samples()
    output = waap.output()
    assert "Input/output error" in output
    assert output.count("fail: read the") == 1  # a repeating fault is logged where it begins


def test_a_collector_that_fails_every_other_time(fake):
    waap = fake("fail", "--collector.fail.every=2")
    seen = [success(waap.samples(), "fail") for _ in range(6)]
    assert seen == ["1", "0"] * 3


def test_an_absent_source_is_looked_for_again(fake, tmp_path):
    file = tmp_path / "source"
    waap = fake(
        "absent", "zoo", f"--collector.absent.file={file}", "--collector.reprobe-interval=1s"
    )
    samples = waap.samples()
    assert "absent_present" not in samples
    assert success(samples, "absent") != "1"
    assert success(samples, "zoo") == "1"
    file.touch()
    wait_until(lambda: waap.samples().get("absent_present") == "1")
    assert success(waap.samples(), "absent") == "1"
    # It goes and comes back.
    file.unlink()
    assert success(waap.samples(), "absent") != "1"
    file.touch()
    wait_until(lambda: waap.samples().get("absent_present") == "1")
    assert waap.output().count("level=warn") <= 1


def test_duplicates_are_counted_for_whoever_loses_them(fake):
    waap = fake("fail", "garbage", "zoo")
    samples = waap.samples()
    assert samples['garbage_piles{size="big"}'] == "1"
    assert samples["garbage_piles"] == "4"
    assert samples["fail_attempts_total"] == "1"
    assert samples["zoo_frames"] == "10"  # garbage stands before zoo in the table

    def lost(name):
        return int(waap.samples()[f'waap_duplicate_series_total{{collector="{name}"}}'])

    garbage, zoo = lost("garbage"), lost("zoo")
    assert lost("garbage") - garbage == 6 * 2  # of two scrapes, the zoo's included
    assert lost("zoo") - zoo >= 1
    assert lost("fail") == 0


# ---- large pages ----


def turns(page):
    """The collections a bench page comes from: its values are the series' number plus the turn."""
    pattern = r'^bench_requests_total\{method="GET",path="/api/v1/item/(\d+)",.*\} (\d+)$'
    numbers = [(int(i), int(value)) for i, value in re.findall(pattern, page, re.MULTILINE)]
    assert [i for i, _ in numbers] == list(range(len(numbers)))
    return len(numbers), {value - i for i, value in numbers}


@pytest.mark.parametrize("n_series", (1, 49, 20000))
def test_large_pages_arrive_whole(n_series, fake):
    waap = fake("bench", "zoo", f"--collector.bench.series={n_series}")
    for accept in ("text/plain", "application/openmetrics-text;version=1.0.0"):
        for encoding in ("identity", "gzip"):
            answer = waap.get("/metrics", {"Accept": accept, "Accept-Encoding": encoding})
            count, turn = turns(answer.text)
            assert count == n_series
            assert len(turn) == 1
            assert answer.text.endswith("# EOF\n") == ("openmetrics" in accept)
            assert "\nzoo_frames 29.97\n" in answer.text


def test_a_slow_reader_gets_the_page_it_asked_for(fake):
    n_series = 100000  # more than the kernel would take off our hands at once
    waap = fake("bench", f"--collector.bench.series={n_series}")
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(20)
        client.connect(("127.0.0.1", waap.port))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received = [client.recv(4096)]
        for _ in range(5):  # other rounds, which must not write over what is still being sent
            assert waap.get("/metrics").status == 200
            received.append(client.recv(65536))
        while piece := client.recv(1 << 20):
            received.append(piece)
    count, turn = turns(b"".join(received).decode())
    assert count == n_series
    assert turn == {0}


# ---- samplers ----


def test_samplers_run_between_scrapes_and_never_at_once(fake):
    waap = fake("sampled", "--sample.hz=50")
    before = int(waap.samples()["sampled_samples_total"])
    begin = time.monotonic()
    while time.monotonic() < begin + 1:
        waap.samples()
    after = waap.samples()
    due = 50 * (time.monotonic() - begin)
    assert due / 2 < int(after["sampled_samples_total"]) - before <= due + 2
    assert after["sampled_overlaps_total"] == "0"


# ---- endurance ----


def test_memory_does_not_grow(fake, hang_file):
    waap = fake(
        "hang",
        "fail",
        "zoo",
        "garbage",
        "bench",
        "--collector.bench.series=100",
        f"--collector.hang.file={hang_file}",
        "--scrape.timeout=600ms",
    )

    def scrape(n):
        for i in range(n):
            headers = {} if i % 2 else {"Accept-Encoding": "gzip"}
            assert waap.get("/metrics", headers).status == 200

    scrape(300)
    before = waap.rss_kib()
    scrape(2000)
    assert waap.rss_kib() - before < 256


def test_signals_end_it_cleanly(fake):
    waap = fake("zoo", "sampled", "bench")
    waap.samples()
    assert waap.stop(2, signal.SIGINT)[0] == 0
