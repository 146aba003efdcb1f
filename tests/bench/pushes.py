"""The same pushes over connections that stay open, to us and to Debian's pushgateway."""

import contextlib
import socket

from effort import effort
from measure import Load, running
from paths import BUILD
from peers import Pushgateway, find_program
from programs import program
from running import Program, Waap
from table import rate, seconds

N_GROUPS = 100
N_SERIES = 10
N_CLIENTS = 10
ROUNDS = effort(5, 1)
N_OURS, N_THEIRS = effort((3000, 300), (100, 20))
BUDGET = 50  # DESIGN: pushes per CPU second


def body(turn):
    lines = ["# TYPE frames_total counter", "# HELP frames_total Frames seen"]
    lines += [f'frames_total{{camera="{i}",stage="detect"}} {turn * 7 + i}' for i in range(N_SERIES)]
    return ("\n".join(lines) + "\n").encode()


def request(turn):
    """Head and body in one packet, as Go's clients send them; each has figures of its own."""
    text = body(turn)
    head = (
        f"POST /metrics/job/bench/instance/{turn % N_GROUPS} HTTP/1.1\r\nHost: bench\r\n"
        f"Content-Type: text/plain; version=0.0.4\r\nContent-Length: {len(text)}\r\n\r\n"
    )
    return head.encode() + text


def push(peer, n, n_clients):
    """n pushes, group after group: every client sends one and waits for its answer."""
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", peer.port), 60))
            for _ in range(n_clients)
        ]
        for turn in range(0, n, n_clients):
            for i, client in enumerate(clients):
                client.sendall(request(turn + i))
            for client in clients:
                answer = client.recv(4096)
                if not answer.startswith(b"HTTP/1.1 200 "):
                    raise RuntimeError(answer.decode())
    return n


def measure(peer, n, n_clients):
    return Load(peer, lambda: push(peer, n, n_clients))


def bare_calls():
    """A server that answers and does nothing else."""
    server = Program([program("answer")], None)
    server.url = server.wait_log("http://")
    return server


def compare(table, what, ours, theirs, n_clients, least=None):
    rounds = [
        (measure(ours, N_OURS, n_clients), measure(theirs, N_THEIRS, n_clients)) for _ in range(ROUNDS)
    ]
    table.versus(
        f"{what}: CPU per push",
        seconds,
        [load.cpu for load, _ in rounds],
        [load.cpu for _, load in rounds],
        least=least,
    )
    table.versus(
        f"{what}: pushes/s",
        rate,
        [1 / load.seconds for load, _ in rounds],
        [1 / load.seconds for _, load in rounds],
        more_is_better=True,
    )


def run(table):
    """One client that waits for each answer measures the kernel, which puts both sides to sleep
    and wakes them: no budget, but how much of it the bare calls take."""
    table.heading(f"pushes over HTTP, {N_GROUPS} groups of {N_SERIES} series", theirs="pushgateway")
    if find_program("prometheus-pushgateway") is None:
        table.skip("pushes", "no pushgateway")
        return
    flags = ("--collector.disable-defaults", "--collector.push")
    with running(
        Waap(BUILD / "exporter/waap", *flags)
    ) as ours, running(Pushgateway("--persistence.file=", "--log.level=error")) as theirs:
        push(ours, N_GROUPS, 1)
        push(theirs, N_GROUPS, 1)
        compare(table, f"{N_CLIENTS} clients", ours, theirs, N_CLIENTS, least=BUDGET)
        compare(table, "one client", ours, theirs, 1)
        with running(bare_calls()) as bare:
            loads = [(measure(ours, N_OURS, 1), measure(bare, N_OURS, 1)) for _ in range(ROUNDS)]
    table.versus(
        "one client: CPU per push (epoll_wait, recv, send)",
        seconds,
        [load.cpu for load, _ in loads],
        [load.cpu for _, load in loads],
    )
