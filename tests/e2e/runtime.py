"""A container runtime that tells what it is told to."""

import json
import socket
import threading


class Runtime:
    """Docker's side of its socket: the list of containers, and events. Silent: it only accepts."""

    def __init__(self, path, containers, silent=False):
        self.containers = containers
        self.silent = silent
        self.listeners = []
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
            if self.silent:
                continue
            request = peer.recv(65536).decode()
            peer.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n")
            if request.startswith("GET /events"):
                self.listeners.append(peer)
            else:
                peer.sendall(json.dumps(self.containers).encode())
                peer.close()

    def tell(self, action, id, **attributes):
        event = {"Type": "container", "Action": action,
                 "Actor": {"ID": id, "Attributes": attributes}}
        for peer in self.listeners:
            peer.sendall(json.dumps(event).encode() + b"\n")

    def close(self):
        self.socket.close()
        for peer in self.kept:
            peer.close()
