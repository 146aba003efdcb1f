"""The same pushes, one after the other over one connection, to us and to Debian's pushgateway."""

import socket

from measure import Load, running
from paths import BUILD
from peers import Pushgateway, find_program
from running import Waap
from table import rate, seconds

N_GROUPS = 100
N_SERIES = 10
ROUNDS = 5
BUDGET = 50  # DESIGN: pushes per CPU second


def body(turn):
    lines = ["# TYPE frames_total counter", "# HELP frames_total Frames seen"]
    lines += [f'frames_total{{camera="{i}",stage="detect"}} {turn * 7 + i}' for i in range(N_SERIES)]
    return ("\n".join(lines) + "\n").encode()


def push(program, n):
    """n pushes, group after group, each with figures of its own; head and body in one packet, as
    Go's clients send them."""
    with socket.create_connection(("127.0.0.1", program.port), 60) as connection:
        for turn in range(n):
            text = body(turn)
            head = (
                f"POST /metrics/job/bench/instance/{turn % N_GROUPS} HTTP/1.1\r\nHost: bench\r\n"
                f"Content-Type: text/plain; version=0.0.4\r\nContent-Length: {len(text)}\r\n\r\n"
            )
            connection.sendall(head.encode() + text)
            answer = connection.recv(4096)
            if not answer.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(answer.decode())
    return n


def run(table):
    table.heading("pushes over HTTP, one client", theirs="pushgateway")
    if find_program("prometheus-pushgateway") is None:
        table.skip("pushes", "no pushgateway")
        return
    flags = ("--collector.disable-defaults", "--collector.push")
    with running(
        Waap(BUILD / "exporter/waap", *flags)
    ) as ours, running(Pushgateway("--persistence.file=", "--log.level=error")) as theirs:
        push(ours, N_GROUPS)
        push(theirs, N_GROUPS)
        rounds = [
            (Load(ours, lambda: push(ours, 3000)), Load(theirs, lambda: push(theirs, 300)))
            for _ in range(ROUNDS)
        ]
    what = f"{N_GROUPS} groups of {N_SERIES} series"
    table.versus(
        f"{what}: CPU per push",
        seconds,
        [load.cpu for load, _ in rounds],
        [load.cpu for _, load in rounds],
        least=BUDGET,
    )
    table.versus(
        f"{what}: pushes/s",
        rate,
        [1 / load.seconds for load, _ in rounds],
        [1 / load.seconds for _, load in rounds],
        more_is_better=True,
    )
