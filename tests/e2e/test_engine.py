"""The engine with collectors that hang, fail, come late, or break the rules."""

import concurrent.futures
import contextlib
import re
import signal
import socket
import time

import pytest

from running import Waap, wait_reached
from waiting import LIMIT, wait_until


@pytest.fixture
def fake(fake_binary, started):
    """Starts waap-fake with some of its collectors: fake("slow", "hang", flags...)."""

    def start(*arguments):
        names = [name for name in arguments if not name.startswith("-")]
        flags = [flag for flag in arguments if flag.startswith("-")]
        switches = [f"--collector.{name}" for name in names]
        return started(Waap(fake_binary, "--collector.disable-defaults", *switches, *flags))

    return start


def wait_scrapes(waap, n):
    """Until so many scrapes wait for a collector while the zoo has been collected."""

    def waiting():
        page = waap.samples(path="/metrics?collect[]=zoo")
        return int(page["waap_scrapes_in_flight"]) - 1 == n

    wait_until(waiting, what=f"{n} scrapes that wait")


def success(samples, name):
    return samples.get(f'waap_collector_success{{collector="{name}"}}')


# More than the client waits: a scrape that takes its whole time fails the test.
ENDLESS = 10 * LIMIT


def timeout(seconds):
    return {"X-Prometheus-Scrape-Timeout-Seconds": str(seconds)}


# ---- a collector that hangs ----


def test_a_hanging_collector_delays_nobody(fake, hang_file):
    waap = fake("hang", "zoo", "fail", f"--collector.hang.file={hang_file}")
    first = waap.get("/metrics", timeout(1))
    assert first.seconds > 0.4
    assert "hang_calls_total" not in first.text
    assert 'waap_collector_success{collector="hang"} 0\n' in first.text
    assert 'waap_collector_success{collector="zoo"} 1\n' in first.text
    assert "\nzoo_frames 29.97\n" in first.text

    second = waap.get("/metrics", timeout(ENDLESS))  # it is not waited for again
    assert 'waap_collector_success{collector="hang"} 0\n' in second.text
    assert "\nzoo_frames 29.97\n" in second.text


@contextlib.contextmanager
def scrapes_of_one_address(waap, targets):
    """Connections of 127.0.0.7, each with a scrape that asks for all the time there is."""
    headers = f"Host: x\r\nAccept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: {ENDLESS}\r\n"
    with contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection(("127.0.0.1", waap.port), 30, ("127.0.0.7", 0)))
            for _ in targets]
        for connection, target in zip(connections, targets):
            connection.sendall(f"GET {target} HTTP/1.1\r\n{headers}\r\n".encode())
        yield connections


def test_one_address_does_not_keep_others_out(fake, hang_file):
    waap = fake("hang", "zoo", f"--collector.hang.file={hang_file}", "--web.max-requests=10")
    with scrapes_of_one_address(waap, ["/metrics"] * 30) as connections:
        wait_reached(hang_file)
        # Twenty too many are answered at once; each of these takes the place of one more.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            others = [pool.submit(waap.get, "/metrics", timeout(1)) for _ in range(4)]
            assert [answer.result().status for answer in others] == [200] * 4
        hang_file.unlink()
        answers = [connection.recv(100) for connection in connections]
    n_refused = sum(answer.startswith(b"HTTP/1.1 503 ") for answer in answers)
    assert 20 <= n_refused <= 24
    assert sum(answer.startswith(b"HTTP/1.1 200 ") for answer in answers) == 30 - n_refused


def test_nor_while_its_pages_are_built(fake):
    """Distinct pages, so that most of the scrapes wait for the one worker that builds them."""
    names = ["fail", "sampled", "slow", "zoo"]
    waap = fake("bench", *names, "--collector.bench.series=20000", "--web.max-requests=4")
    sets = [names[:i] + names[j:] for i in range(3) for j in range(i + 1, 4)]
    targets = ["/metrics?collect[]=bench" + "".join(f"&collect[]={name}" for name in some) for some in sets]
    for _ in range(10):
        with scrapes_of_one_address(waap, targets):
            assert waap.get("/metrics?collect[]=zoo").status == 200


def test_time_is_kept_for_the_way_back(fake, hang_file):
    waap = fake("hang", f"--collector.hang.file={hang_file}")

    def is_early():
        hang_file.touch()
        answer = waap.get("/metrics", timeout(1))
        assert 'waap_collector_success{collector="hang"} 0\n' in answer.text
        hang_file.unlink()
        wait_until(lambda: success(waap.samples(), "hang") == "1")
        return answer.seconds < 1

    # A loaded machine may use up what is kept, but not every time.
    wait_until(is_early, what="an answer before the client gives up")


def test_health_is_answered_while_scrapes_wait(fake, hang_file):
    waap = fake("hang", "zoo", f"--collector.hang.file={hang_file}")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        scrapes = [pool.submit(waap.get, "/metrics", timeout(ENDLESS)) for _ in range(4)]
        wait_scrapes(waap, 4)
        for path in ("/-/healthy", "/-/ready", "/", "/nowhere"):
            waap.get(path)
        assert not any(scrape.done() for scrape in scrapes)
        hang_file.unlink()
        for scrape in scrapes:
            assert "\nhang_calls_total " in scrape.result().text


def test_a_hanging_collector_comes_back(fake, hang_file):
    waap = fake("hang", f"--collector.hang.file={hang_file}", "--scrape.timeout=1s")
    assert success(waap.samples(), "hang") == "0"
    hang_file.unlink()
    wait_until(lambda: success(waap.samples(), "hang") == "1")
    assert "\nhang_calls_total " in waap.get("/metrics").text
    assert "hang: responds again" in waap.output()


def test_a_collector_that_hangs_when_opened(fake, hang_file):
    waap = fake(
        "hang", "zoo", "--collector.hang.in=open", f"--collector.hang.file={hang_file}"
    )
    first = waap.get("/metrics", timeout(1))
    assert 'waap_collector_success{collector="hang"} 0\n' in first.text
    assert "\nzoo_frames 29.97\n" in first.text
    assert waap.get("/metrics", timeout(ENDLESS)).status == 200
    hang_file.unlink()
    wait_until(lambda: success(waap.samples(timeout(1)), "hang") == "1")


def test_scrapes_of_others_do_not_wait_for_it(fake, hang_file):
    waap = fake("hang", "zoo", f"--collector.hang.file={hang_file}")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waap.get, "/metrics", timeout(ENDLESS))
        wait_reached(hang_file)
        other = waap.get("/metrics?collect[]=zoo")
        assert "\nzoo_frames 29.97\n" in other.text
        assert not waiting.done()
        hang_file.unlink()
        assert "\nhang_calls_total " in waiting.result().text


@pytest.mark.parametrize("place", ("collect", "open"))
def test_stops_in_time_with_a_hanging_collector(place, fake, hang_file):
    waap = fake(
        "hang", "zoo", f"--collector.hang.file={hang_file}", f"--collector.hang.in={place}"
    )
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waap.get, "/metrics", timeout(ENDLESS), timeout=ENDLESS)
        wait_reached(hang_file)
        wait_scrapes(waap, 1)
        assert waap.stop()[0] == 0
        # Waiting scrapes get what there is.
        assert "\nzoo_frames 29.97\n" in waiting.result().text


# ---- rounds ----


def test_scrapes_at_the_same_time_share_a_round(fake, hang_file):
    waap = fake("hang", "zoo", f"--collector.hang.file={hang_file}")
    with contextlib.ExitStack() as stack:
        scrapes = [stack.enter_context(contextlib.closing(waap.connect())) for _ in range(16)]
        for scrape in scrapes:
            scrape.request("GET", "/metrics", headers=timeout(ENDLESS))
        wait_scrapes(waap, len(scrapes))
        hang_file.unlink()
        for scrape in scrapes:
            assert b"\nhang_calls_total 1\n" in scrape.getresponse().read()
    assert waap.samples()["hang_calls_total"] == "2"


def test_each_scrape_has_its_own_deadline(fake, hang_file):
    waap = fake("hang", "zoo", f"--collector.hang.file={hang_file}")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        long = pool.submit(waap.get, "/metrics", timeout(ENDLESS))
        wait_reached(hang_file)
        filtered = waap.get("/metrics?exclude[]=hang", timeout(ENDLESS))
        assert "hang" not in filtered.text and "\nzoo_frames 29.97\n" in filtered.text
        short = waap.get("/metrics", timeout(1))
        assert short.seconds > 0.4
        assert 'waap_collector_success{collector="hang"} 0\n' in short.text
        assert not long.done()
        hang_file.unlink()
        assert "\nhang_calls_total 1\n" in long.result().text


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
    begin = time.monotonic()
    before = int(waap.samples()["sampled_samples_total"])
    after = wait_until(lambda: (page := waap.samples())
                       and int(page["sampled_samples_total"]) >= before + 50 and page)
    # Never more often than that; a loaded machine may leave some out.
    assert int(after["sampled_samples_total"]) - before <= 50 * (time.monotonic() - begin) + 2
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
    assert waap.stop(signal=signal.SIGINT)[0] == 0
