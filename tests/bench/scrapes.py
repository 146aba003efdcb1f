"""Many series with three labels, scraped from us and from Debian's pushgateway, which holds the
same ones. Those of the pushgateway never change. Ours are constant, too, or all of them change with
every scrape: whole numbers, or fractions with all their digits."""

import statistics

from effort import effort
from measure import Load, curl, running
from paths import BUILD
from peers import Pushgateway, find_program
from running import Waap
from table import rate, seconds

ROUNDS = effort(5, 1)
SIZES = effort(
    (
        (1000, "whole"),
        (10000, "whole"),
        (100000, "constant"),
        (100000, "whole"),
        (100000, "fraction"),
    ),
    ((1000, "constant"), (1000, "whole"), (1000, "fraction")),
)
BUDGETS = {(100000, False): 40, (100000, True): 8}  # DESIGN: CPU per scrape over HTTP


def start_ours(n_series, value):
    return Waap(
        BUILD / "tests/fakes/waap-fake",
        "--collector.disable-defaults",
        "--collector.bench",
        f"--collector.bench.series={n_series}",
        f"--collector.bench.value={value}",
        "--web.disable-exporter-metrics",
    )


def fill(pushgateway, page):
    """The labels job and instance, its own, stand in for two of ours: equal lines, equally long."""
    page = page.replace('method="GET",', "").replace(',node="edge-17"', "")
    answer = pushgateway.get("/metrics/job/GET/instance/edge-17", method="PUT", body=page.encode())
    if answer.status != 200:
        raise RuntimeError(answer.text)


def measure(table, n_series, value, ours, theirs, gzip):
    # As many scrapes per round as keep both sides busy for a while.
    n_ours = effort(max(10, 1000000 // n_series), 10)
    n_theirs = effort(max(2, 100000 // n_series), 2)
    curl(ours, 2, gzip)
    curl(theirs, 1, gzip)
    rounds = [
        (
            Load(ours, lambda: curl(ours, n_ours, gzip)),
            Load(theirs, lambda: curl(theirs, n_theirs, gzip)),
        )
        for _ in range(ROUNDS)
    ]
    what = f"{n_series // 1000} k series, {value}, {'gzip' if gzip else 'plain'}"
    table.versus(
        f"{what}: CPU per scrape",
        seconds,
        [load.cpu for load, _ in rounds],
        [load.cpu for _, load in rounds],
        least=BUDGETS.get((n_series, gzip)),
    )
    table.versus(
        f"{what}: series/s",
        rate,
        [n_series / load.seconds for load, _ in rounds],
        [n_series / load.seconds for _, load in rounds],
        more_is_better=True,
    )
    return statistics.median(load.cpu for _, load in rounds)


def run(table):
    """Leaves the pushgateway's CPU seconds per series of the largest plain page to other benchmarks."""
    table.heading("scrapes, one client", theirs="pushgateway")
    if find_program("prometheus-pushgateway") is None:
        table.skip("many series", "no pushgateway")
        return
    for n_series, value in SIZES:
        with running(start_ours(n_series, value)) as ours, running(
            Pushgateway("--persistence.file=")
        ) as theirs:
            fill(theirs, ours.get("/metrics").text)
            cpu = measure(table, n_series, value, ours, theirs, False)
            measure(table, n_series, value, ours, theirs, True)
        if value == "whole":
            table.peer_per_series = cpu / n_series
