"""All known attacks on one daemon side by side, at default limits: how it serves others meanwhile.

Attackers have low priority and rest between two actions: on a network they would not take the
processors of the node that they attack. Those that measure have the highest priority that the system
grants, so that what they wait for is the daemon. "CPU wait" is the part of the worst time in which the
daemon's main thread was ready to run and the kernel let others run: itself due to the daemon's other
threads, the attackers, or whatever else the machine does.

Memory may grow to twice its idle value plus what the settings allow for those attacks: answers being
sent (web.max-sending-size), bodies being received (web.max-bodies-size), and the one push that is being
read: its body unpacked and its content of 1.5 times that (web.max-body-size). The store is part of the
idle value: it is filled before, and no attack adds to it."""

import concurrent.futures
import contextlib
import gzip
import http.client
import multiprocessing
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

from effort import effort
from loop_turns import chunk
from measure import Watch, running
from paths import BUILD, HERE
from table import count, mebibytes, percent, seconds

# Of the end-to-end tests.
from authority import SECRET
from hostile import (FOREIGN_PAGE, MANY_COOKIES, MANY_PARAMETERS, SlowReader, basic, begin_upload, drop, get_from,
                     write_page)
from large_bodies import BODIES, packed_headers
from plugin import Plugin
from running import Waap

SECONDS = effort(60, 1)
N_GROUPS = effort(240, 5)
N_SERIES = 100  # of each group, of which one names a plugin
PAGE_MIB = effort(12, 1)
N_GUESSERS = effort(30, 3)
N_LOGINS = 30  # from each of two addresses
PUSHES = effort(("json: array", "text: series", "protobuf: families"), ("json: array",))
WORST_HEALTHY = 50e-3
WORST_LOGIN = 1
SCENARIO = HERE.parent / "fixtures/nvml/block.txt"

WRITER, READER, PROBE = (basic(name, "secret") for name in ("writer", "reader", "probe"))
HANG = "0.temperature block 600\n"


def address(n, i=0):
    """Of the attackers of one kind, or of one of them."""
    return f"127.0.{n}.{i + 1}"


class Stage:
    """What attackers and those who measure know of the daemon."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.socket = self.directory / "push.sock"
        self.scenario = self.directory / "scenario"
        self.pages = self.directory / "pages"
        self.pages.mkdir()
        self.set_scenario(SCENARIO.read_text().replace(HANG, ""))
        names = ("writer", "reader", "probe", *map(login, range(2 * N_LOGINS)))
        users = "".join(f"  {name}: {SECRET}\n" for name in names)
        (self.directory / "web.yaml").write_text(f"basic_auth_users:\n{users}")
        self.bodies = {name: gzip.compress(BODIES[name][1]()) for name in PUSHES}
        self.port = self.pid = self.end = None

    def set_scenario(self, text):
        fresh = self.scenario.with_suffix(".new")
        fresh.write_text("watch\n" + text)
        fresh.rename(self.scenario)

    def flags(self):
        collectors = ("host", "nvml", "push", "textfile")
        return ("--collector.disable-defaults", *(f"--collector.{name}" for name in collectors),
                f"--collector.nvml.library={BUILD}/tests/fakes/libnvidia-ml.so.1",
                f"--collector.textfile.directory={self.pages}", f"--push.socket={self.socket}",
                f"--push.table={self.directory}/table", "--push.user=writer",
                f"--web.config.file={self.directory}/web.yaml")

    def is_over(self):
        return time.monotonic() >= self.end

    def left(self):
        return max(0.1, self.end - time.monotonic())

    def rest(self, seconds):
        time.sleep(min(seconds, self.left()))

    def connect(self, source, timeout=None):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout or self.left() + 1,
                                          source_address=(source, 0))


def login(i):
    return f"user{i}"


def status_of(connection, path, headers):
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


class Client:
    def __init__(self, number):
        self.number = number
        self.n_made = 0


def clients(stage, n, act, pause):
    """Lets `n` clients act again and again; returns how many attacks they have made."""

    def run_client(client):
        while not stage.is_over():
            with contextlib.suppress(OSError, http.client.HTTPException):
                act(client)
            stage.rest(pause)
        return client.n_made

    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        return sum(pool.map(run_client, map(Client, range(n))))


# ---- attacks ----


def dropped_heads(stage):
    heads = (MANY_PARAMETERS, MANY_COOKIES)

    def act(client):
        drop(stage.port, heads[client.n_made % 2], 20)
        client.n_made += 1

    return 20 * clients(stage, 1, act, 0.1)


def hellos(stage):
    chunks = (chunk(*({"hello": {"plugin": f"v{i}"}} for i in range(100))), chunk({"hello": {"plugin": "victim"}}))

    def act(client):
        with Plugin(stage.socket, timeout=stage.left() + 1) as plugin:
            while not stage.is_over():
                plugin.send(chunks[client.number % 2])
                plugin.settle()
                client.n_made += 1
                stage.rest(0.05)

    return clients(stage, 4, act, 0.1)


def changing_page(stage):
    def act(client):
        client.n_made += 1
        write_page(stage.pages, client.n_made, PAGE_MIB)

    return clients(stage, 1, act, 1)


def slow_readers(stage):
    def act(client):
        reader = SlowReader(stage.port, address(6, client.number), READER, "/metrics?collect[]=textfile")
        client.n_made += 1
        with contextlib.closing(reader):
            while not stage.is_over() and reader.socket.recv(1000):
                stage.rest(1)

    return clients(stage, 60, act, 1)


def packed_pushes(stage):
    def act(client):
        name = PUSHES[client.number]
        with contextlib.closing(stage.connect(address(7))) as connection:
            connection.request("POST", BODIES[name][0], stage.bodies[name], {**packed_headers(name), **WRITER})
            connection.getresponse().read()
            client.n_made += 1

    return clients(stage, len(PUSHES), act, 0.1)


def guesses(stage):
    def act(client):
        client.n_made += 1
        password = f"{client.number} {client.n_made}"
        if get_from(stage.port, address(8), basic(login(0), password), "/metrics") == 200:
            raise RuntimeError("a wrong password was accepted")

    return clients(stage, N_GUESSERS, act, 0.05)


def foreign_pages(stage):
    def act(client):
        headers = {**FOREIGN_PAGE, **WRITER, "Host": "node.example"} if client.n_made % 2 else FOREIGN_PAGE
        with contextlib.closing(stage.connect(address(9))) as connection:
            connection.request("POST", "/api/v1/push", b'{"metric":"a","type":"gauge","set":1}', headers)
            if connection.getresponse().status == 200:
                raise RuntimeError("a foreign page could push")
            client.n_made += 1

    return clients(stage, 4, act, 0.1)


def idle_uploads(stage):
    def act(client):
        with contextlib.closing(stage.connect(address(11))) as connection:
            begin_upload(connection, "/api/v1/push", WRITER)
            client.n_made += 1
            while not stage.is_over():
                stage.rest(1)
                connection.send(b" ")

    return clients(stage, 20, act, 0.1)


def scrapers(stage):
    def act(client):
        headers = {**READER, **({"Accept-Encoding": "gzip"} if client.number % 2 else {})}
        with contextlib.closing(stage.connect(address(12))) as connection:
            while not stage.is_over():
                status_of(connection, "/metrics?collect[]=push", headers)
                client.n_made += 1
                stage.rest(0.05)

    return clients(stage, 60, act, 0.5)


def patient_scrapes(stage):
    """A collector hangs from now on; scrapes that wait for it begin one after the other."""
    stage.set_scenario(SCENARIO.read_text())

    def act(client):
        stage.rest(0 if client.n_made else client.number / 4)
        with contextlib.closing(stage.connect(address(13))) as connection:
            client.n_made += 1
            connection.request("GET", "/metrics", headers={**READER, "X-Prometheus-Scrape-Timeout-Seconds": "120"})
            connection.getresponse().read(1000)

    return clients(stage, 40, act, 1)


ATTACKS = {
    "requests with too many parameters or cookies": dropped_heads,
    "64 KiB of hellos": hellos,
    "versions of the page": changing_page,
    "slow readers of the page": slow_readers,
    "packed pushes of 10 MiB": packed_pushes,
    "wrong passwords": guesses,
    "pushes of foreign pages": foreign_pages,
    "idle uploads": idle_uploads,
    "scrapes from one address": scrapers,
    "scrapes that wait for a hanging collector": patient_scrapes,
}


# ---- those who measure ----


class Times:
    """How long answers took, each with the daemon's wait for a processor in it."""

    def __init__(self):
        self.answered = []
        self.n_unanswered = 0

    @property
    def worst(self):
        return max(self.answered, default=(float("inf"), 0))

    @property
    def median(self):
        return statistics.median(taken for taken, _ in self.answered) if self.answered else float("inf")

    @property
    def share(self):
        return len(self.answered) / max(1, len(self.answered) + self.n_unanswered)


def waited(pid):
    """Seconds in which the main thread was ready to run and did not."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def measure(stage, ask, pause):
    """Asks again and again; True is an answer as it should be."""
    times = Times()
    while not stage.is_over():
        waited_before, begin = waited(stage.pid), time.monotonic()
        good = False
        with contextlib.suppress(OSError, http.client.HTTPException):
            good = ask()
        taken = time.monotonic() - begin
        if good:
            times.answered.append((taken, waited(stage.pid) - waited_before))
        else:
            times.n_unanswered += 1
        stage.rest(pause)
    return times


def health(stage):
    """Over one connection; where the daemon has closed it, over the next."""
    connection = stage.connect("127.0.0.1")

    def ask():
        try:
            return status_of(connection, "/-/healthy", PROBE) == 200
        except (OSError, http.client.HTTPException):
            connection.close()
            return status_of(connection, "/-/healthy", PROBE) == 200

    with contextlib.closing(connection):
        return measure(stage, ask, 0.02)


def health_afresh(stage):
    def ask():
        with contextlib.closing(stage.connect("127.0.0.1")) as connection:
            return status_of(connection, "/-/healthy", PROBE) == 200

    return measure(stage, ask, 0.02)


def logins(stage, source, numbers):
    """Right passwords that were not checked before."""
    names = map(login, numbers)
    return measure(stage, lambda: get_from(stage.port, source, basic(next(names), "secret")) == 200,
                   SECONDS / N_LOGINS + 0.1)


def logins_among_guesses(stage):
    return logins(stage, address(8), range(N_LOGINS))


def other_logins(stage):
    return logins(stage, "127.0.0.2", range(N_LOGINS, 2 * N_LOGINS))


def other_scraper(stage):
    def ask():
        with contextlib.closing(stage.connect("127.0.0.2", timeout=10)) as connection:
            return status_of(connection, "/metrics", {**READER, "X-Prometheus-Scrape-Timeout-Seconds": "2"}) == 200

    return measure(stage, ask, 1)


PROBES = (health, health_afresh, other_logins, logins_among_guesses, other_scraper)


def be_first():
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


# ---- all of it ----


def fill(stage, daemon):
    for i in range(N_GROUPS):
        text = f'n{{plugin="v{i}"}} 1\n' + "".join(f'n{{i="{k}"}} {k}\n' for k in range(N_SERIES - 1))
        answer = daemon.get(f"/metrics/job/group-{i}", WRITER, "PUT", body=text.encode())
        if answer.status not in (200, 202):
            raise RuntimeError(answer.text)
    write_page(stage.pages, 0, PAGE_MIB)
    for headers in (PROBE, READER, {**READER, "Accept-Encoding": "gzip"}):
        if daemon.get("/metrics", headers).status != 200:
            raise RuntimeError("no page")


def attack(stage):
    """Returns how often each attack was made, and what was measured meanwhile."""
    context = multiprocessing.get_context("fork")
    pool = concurrent.futures.ProcessPoolExecutor
    with pool(len(PROBES), context, be_first) as first, pool(len(ATTACKS), context, os.nice, (19,)) as last:
        stage.end = time.monotonic() + SECONDS
        probes = [first.submit(probe, stage) for probe in PROBES]
        made = {name: last.submit(run_attack, stage) for name, run_attack in ATTACKS.items()}
        return {name: done.result() for name, done in made.items()}, [probe.result() for probe in probes]


def limits():
    """Bytes that the settings allow for what the attackers do."""
    text = subprocess.run([BUILD / "exporter/waap", "serve", "--list-settings"], capture_output=True, text=True,
                          check=True).stdout

    def size(name):
        n, unit = re.search(rf"^web\.{name} .* (\d+)([KMG])iB ", text, re.M).groups()
        return int(n) << {"K": 10, "M": 20, "G": 30}[unit]

    return size("max-sending-size") + size("max-bodies-size") + 2.5 * size("max-body-size")


def show_times(table, what, times, most):
    worst, waited_then = times.worst
    table.line(what, seconds(worst), seconds(times.median), seconds(waited_then), f"<= {seconds(most)}", worst <= most)


def show_share(table, what, times):
    table.line(what, percent(times.share), budget="100 %", good=times.share == 1)


def show_memory(table, most, idle):
    allowed = 2 * idle + limits()
    table.heading("the same: memory", ours="most", theirs="idle")
    table.line("RSS", mebibytes(most), mebibytes(idle), "", f"<= {mebibytes(allowed)}", most <= allowed)


def run(table):
    table.heading("attacks side by side", ours="worst", theirs="median", ratio="CPU wait")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:  # a tmpfs, where the store belongs
        stage, watch = Stage(directory), Watch(directory)
        environment = {**watch.env, "FAKE_NVML": str(stage.scenario)}
        with running(Waap(BUILD / "exporter/waap", *stage.flags(), env=environment)) as daemon:
            stage.port, stage.pid = daemon.port, daemon.process.pid
            fill(stage, daemon)
            idle = daemon.rss_kib() << 10
            daemon.reset_peak()
            watch.begin()
            made, (healthy, afresh, others, among_guesses, scrapes) = attack(stage)
            turn, most = watch.longest(), daemon.rss_kib("VmHWM") << 10
    show_times(table, "/-/healthy over one connection", healthy, WORST_HEALTHY)
    show_times(table, "/-/healthy over a new connection", afresh, WORST_HEALTHY)
    table.line("turn of the event loop", seconds(turn), budget=f"<= {seconds(WORST_HEALTHY)}",
               good=turn <= WORST_HEALTHY)
    show_times(table, "right password", others, WORST_LOGIN)
    show_times(table, "right password from the address of wrong ones", among_guesses, WORST_LOGIN)
    show_share(table, "/-/healthy answered, one connection", healthy)
    show_share(table, "/-/healthy answered, new connections", afresh)
    show_share(table, "right passwords accepted", others)
    show_share(table, "the same from the address of wrong ones", among_guesses)
    show_share(table, "scrapes from another address answered", scrapes)
    show_memory(table, most, idle)
    table.heading("the same: attacks made", ours="number", theirs="")
    for name, n in made.items():
        table.line(name, count(n))
