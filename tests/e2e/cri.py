"""Kubernetes' side of a container runtime (CRI): what the kubelet would do, on the runtime's socket.

Messages are nested lists of (number of the field, value); the numbers are those of api.proto."""

import socket
import struct

import h2.config
import h2.connection
import h2.events

SERVICE = "/runtime.v1.RuntimeService/"


def varint(number):
    text = b""
    while number >= 0x80:
        text += bytes([number & 0x7F | 0x80])
        number >>= 7
    return text + bytes([number])


def encode(message):
    text = b""
    for number, value in message:
        if isinstance(value, int):
            text += varint(number << 3) + varint(value)
            continue
        if isinstance(value, list):
            value = encode(value)
        elif isinstance(value, str):
            value = value.encode()
        text += varint(number << 3 | 2) + varint(len(value)) + value
    return text


def mapping(number, entries):
    """A map, which is a list of messages of key and value."""
    return [(number, [(1, key), (2, value)]) for key, value in entries.items()]


def framed(message):
    """As gRPC sends it: not packed, length, message."""
    return b"\0" + struct.pack(">I", len(message)) + message


def first_text(answer):
    """The first field of an answer, a text of less than 128 bytes."""
    return answer[2:2 + answer[1]].decode() if answer else ""


class Runtime:
    """A client, with a connection of its own for each call."""

    def __init__(self, path):
        self.path = str(path)

    def call(self, method, message, timeout=30):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(timeout)
            peer.connect(self.path)
            return self.exchange(peer, method, message)

    def exchange(self, peer, method, message):
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        connection.initiate_connection()
        connection.send_headers(1, [
            (":method", "POST"), (":scheme", "http"), (":path", SERVICE + method),
            (":authority", "localhost"), ("te", "trailers"), ("content-type", "application/grpc")])
        connection.send_data(1, framed(encode(message)), end_stream=True)
        answer, headers = b"", {}
        while True:
            peer.sendall(connection.data_to_send())
            received = peer.recv(65536)
            assert received, f"{method}: the runtime hung up"
            for event in connection.receive_data(received):
                if isinstance(event, h2.events.DataReceived):
                    answer += event.data
                    connection.acknowledge_received_data(event.flow_controlled_length, 1)
                elif isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                    headers.update(event.headers)
                elif isinstance(event, h2.events.StreamEnded):
                    failure = headers.get(b"grpc-message", headers.get("grpc-message", b""))
                    assert answer, f"{method}: {failure}"
                    return answer[5:]

    def run_pod(self, name, uid, namespace, labels, cgroup_parent, host_network=False):
        options = [(1, [(1, 2)])] if host_network else []
        config = [(1, [(1, name), (2, uid), (3, namespace)]), *mapping(6, labels),
                  (8, [(1, cgroup_parent), (2, options)])]
        return first_text(self.call("RunPodSandbox", [(1, config)])), config

    def run_container(self, sandbox, name, image, command, labels=None):
        id, pod = sandbox
        config = [(1, [(1, name)]), (2, [(1, image)]), *((3, word) for word in command),
                  *mapping(9, labels or {})]
        request = [(1, id), (2, config), (3, pod)]
        container = first_text(self.call("CreateContainer", request))
        self.call("StartContainer", [(1, container)])
        return container

    def remove_container(self, id):
        self.call("StopContainer", [(1, id)])
        self.call("RemoveContainer", [(1, id)])

    def remove_pod(self, id):
        self.call("StopPodSandbox", [(1, id)])
        self.call("RemovePodSandbox", [(1, id)])
