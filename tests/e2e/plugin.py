"""A plugin's end of the plugin channel, byte by byte as a test wants it."""

import json
import socket

from waiting import LIMIT


class Plugin:
    def __init__(self, path, hello=None, timeout=LIMIT, connected=None):
        """`connected` is a connection that another process has made."""
        self.socket = connected or socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        if connected is None:
            self.socket.connect(str(path))
        self.received = b""
        self.seq = 0
        if hello is not None:
            self.say({"hello": hello})

    def send(self, data):
        self.socket.sendall(data)

    def say(self, *objects):
        self.send(b"".join(json.dumps(item).encode() + b"\n" for item in objects))

    def hear(self):
        """The next line that the exporter says; None at the end."""
        while b"\n" not in self.received:
            data = self.socket.recv(65536)
            if not data:
                return None
            self.received += data
        line, self.received = self.received.split(b"\n", 1)
        return json.loads(line)

    def settle(self):
        """Waits until everything so far was taken; returns what was said meanwhile."""
        self.seq += 1
        self.say({"seq": self.seq})
        heard = []
        while True:
            item = self.hear()
            assert item is not None, "the exporter hung up"
            if item == {"ack": self.seq}:
                return heard
            heard.append(item)

    def tell(self, *objects):
        """Says it; nothing may be wrong with it."""
        self.say(*objects)
        heard = [item for item in self.settle() if "error" in item]
        assert heard == []

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
