"""The container collector beside runtimes that answer Kubernetes oddly, or not at all. Their side of
HTTP/2 is that of a library."""

import contextlib
import shutil
import socket
import struct
import threading

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import pytest

import cri
from waiting import pace, wait_until

A, B = "a" * 64, "b" * 64
POD = "/kubepods/burstable/pod2b0c4f5a-11d2-4c3e-9d7e-aa00bb11cc22"
JOB = 'container_label_job="cars"'


def lists(n_others=0):
    """The two answers, with as many pods and containers before ours."""
    pods = [(1, [(1, f"{i:064x}"), (2, [(1, f"pod-{i}"), (2, "u"), (3, "ses")]),
                 *cri.mapping(6, {"note": "x" * 300})]) for i in range(n_others)]
    containers = [(1, [(1, f"{i:063x}f"), (2, f"{i:064x}"), (3, [(1, "app")]), (6, 1)])
                  for i in range(n_others)]
    pods.append((1, [(1, B), (2, [(1, "cam"), (2, "u"), (3, "ses")]),
                     *cri.mapping(5, {"job": "cars"})]))
    containers.append((1, [(1, A), (2, B), (3, [(1, "app")]), (4, [(1, "waggle/app:1")]), (6, 1)]))
    return {"ListPodSandbox": cri.encode(pods), "ListContainers": cri.encode(containers)}


class Server:
    """Answers every call. `piece`: how many bytes are sent at once."""

    def __init__(self, path, answers=None, piece=None, raw=None, refused=()):
        self.answers, self.piece, self.raw, self.refused = answers, piece, raw, refused
        self.asked = []
        self.kept = []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            self.kept.append(peer)
            with contextlib.suppress(OSError, h2.exceptions.ProtocolError):
                self.talk(peer)

    def talk(self, peer):
        if self.raw is not None:
            peer.sendall(self.raw)
            return
        config = h2.config.H2Configuration(client_side=False)
        connection = h2.connection.H2Connection(config)
        connection.initiate_connection()
        waiting = {}
        while True:
            self.flush(peer, connection)
            received = peer.recv(65536)
            if not received:
                return
            for event in connection.receive_data(received):
                if isinstance(event, h2.events.RequestReceived):
                    waiting[event.stream_id] = dict(event.headers)
                elif isinstance(event, h2.events.StreamEnded):
                    headers = waiting[event.stream_id]
                    path = headers.get(b":path", headers.get(":path"))
                    path = path.decode() if isinstance(path, bytes) else path
                    self.answer(peer, connection, event.stream_id, path)

    def answer(self, peer, connection, stream, path):
        self.asked.append(path)
        if any(word in path for word in self.refused):
            connection.send_headers(stream, [
                (":status", "200"), ("content-type", "application/grpc"), ("grpc-status", "12"),
                ("grpc-message", "unknown service")], end_stream=True)
            return
        connection.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
        text = cri.framed(self.answers[path.rsplit("/", 1)[1]])
        while text:
            room = min(connection.local_flow_control_window(stream), 16384)
            assert room > 0, "the window is too small"
            connection.send_data(stream, text[:room])
            text = text[room:]
            self.flush(peer, connection)
        connection.ping(b"12345678")
        connection.send_headers(stream, [("grpc-status", "0"), ("grpc-message", "")],
                                end_stream=True)

    def flush(self, peer, connection):
        data = connection.data_to_send()
        piece = self.piece or max(1, len(data))
        for at in range(0, len(data), piece):
            peer.sendall(data[at:at + piece])
            if self.piece:
                pace(0.001)

    def close(self):
        self.socket.close()
        for peer in self.kept:
            peer.close()


@pytest.fixture
def place(tmp_path, source_root):
    """A root directory with recorded cgroups of one pod: its sandbox and a container."""
    recorded = source_root / "tests/fixtures/cgroup/v2"
    for id in (A, B):
        shutil.copytree(recorded / "system.slice", tmp_path / f"cgroup{POD}/{id}",
                        ignore=shutil.ignore_patterns("*.service", "*.scope"))
    shutil.copy(recorded / "cgroup.controllers", tmp_path / "cgroup")
    (tmp_path / "run/containerd").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def server(place):
    """server(…): listens where containerd does; ends with the test."""
    started = []
    path = place / "run/containerd/containerd.sock"
    yield lambda **options: started.append(Server(path, **options)) or started[-1]
    for one in started:
        one.close()


@pytest.fixture
def daemon(waap, place):
    return lambda *more: waap(
        "--collector.disable-defaults", "--collector.container", f"--path.rootfs={place}",
        f"--path.cgroupfs={place / 'cgroup'}", "--collector.container.label-include=job", *more)


def page(daemon):
    answer = daemon.get("/metrics")
    assert 'waap_collector_success{collector="container"} 1' in answer.text
    return answer.text


def wait_for_labels(daemon):
    text = wait_until(lambda: (text := page(daemon)) and JOB in text and text, what="the labels")
    assert f'id="{POD}/{A}",name="{A}",image="waggle/app:1",container="app",namespace="ses",' \
           f'pod="cam",{JOB}' in text
    assert f'id="{POD}/{B}",name="{B}",namespace="ses",pod="cam",{JOB}' in text


def test_answers(daemon, server):
    runtime = server(answers=lists())
    one = daemon()
    wait_for_labels(one)
    asked = len(runtime.asked)
    for _ in range(20):
        page(one)
    one.stop()
    assert len(runtime.asked) == asked == 2, "asked again although all is known"


def test_in_pieces(daemon, server):
    server(answers=lists(), piece=7)
    wait_for_labels(daemon())


def test_huge(daemon, server):
    """Far beyond every window that a client has unless it asks for more."""
    answers = lists(3000)
    assert len(answers["ListPodSandbox"]) > 1e6
    server(answers=answers)
    wait_for_labels(daemon())


def test_older_version(daemon, server):
    runtime = server(answers=lists(), refused=("runtime.v1.",))
    wait_for_labels(daemon())
    assert runtime.asked[-1].startswith("/runtime.v1alpha2.RuntimeService/")


def names(text):
    return f'id="{POD}/{A}",name="{A}"' in text and JOB not in text


@pytest.mark.parametrize("raw", [
    b"",  # silence
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
    b"\xff" * 100000,
    b"\0\0\0\4\0\0\0\0\0" + b"\0\0\x08\6\0\0\0\0\0ABCDEFGH" * 100000,
    b"\0\0\0\4\0\0\0\0\0" + struct.pack(">IBI", 8 << 8 | 7, 0, 0) + b"\0" * 8,
], ids=["silence", "http1", "garbage", "pings", "goaway"])
def test_nonsense_delays_nothing(daemon, server, raw):
    runtime = server(raw=raw)
    one = daemon()
    wait_until(lambda: runtime.kept, what="a connection")
    for _ in range(10):
        assert names(page(one))
        pace(0.05)


def test_refused_altogether(daemon, server):
    runtime = server(answers=lists(), refused=("runtime.",))
    one = daemon()
    wait_until(lambda: len(runtime.asked) >= 4, what="both versions asked for")
    assert names(page(one))


def test_off(daemon, server):
    runtime = server(answers=lists())
    one = daemon("--collector.container.cri-socket=off")
    for _ in range(5):
        assert names(page(one))
    one.stop()
    assert runtime.asked == [] and runtime.kept == []


def test_comes_later(daemon, server, place):
    one = daemon()
    assert names(page(one))
    server(answers=lists())
    wait_for_labels(one)
