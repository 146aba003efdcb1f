"""The exporter's end of the plugin channel as a test wants it: it adds up totals as the daemon does,
and remembers them over connections that it ends as rudely as asked."""

import collections
import fcntl
import json
import os
import selectors
import socket
import struct
import termios
import threading


class PushPeer:
    def __init__(self, path):
        self.path = str(path)
        self.lines = []  # (connection number, line) in order
        self.hellos = []
        self.last = collections.defaultdict(dict)  # {start: {series: total}}
        self.sums = collections.Counter()  # {series: sum of the differences}
        self.gauges = {}
        self.piece = 65536  # reads and writes that many bytes at a time
        self.never_reads = False
        self.never_acks = False
        self.answer = b""  # sent after each hello
        self.on_line = lambda connection, line: None
        self._lock = threading.RLock()
        self._selector = selectors.DefaultSelector()
        self._listener = None
        self._connections = {}
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.listen()
        self._thread.start()

    def listen(self):
        """Back again."""
        with self._lock:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(self.path)
            self._listener.listen(16)
            self._selector.register(self._listener, selectors.EVENT_READ)

    def kill(self):
        """Gone, with all that was not read yet."""
        with self._lock:
            for connection in list(self._connections.values()):
                self._drop(connection)
            if self._listener is not None:
                self._selector.unregister(self._listener)
                self._listener.close()
                self._listener = None
                os.unlink(self.path)

    def send(self, data):
        """To every plugin."""
        with self._lock:
            for connection in list(self._connections.values()):
                connection.send(data)

    def unread(self):
        """How many bytes plugins have sent that it has not read."""
        with self._lock:
            size = struct.Struct("i")
            asked = [fcntl.ioctl(fd, termios.FIONREAD, bytes(size.size)) for fd in self._connections]
            return sum(size.unpack(answer)[0] for answer in asked)

    def has_heard_all(self):
        """Whether nobody is connected or knocks: those who have left were heard to their end."""
        with self._lock:
            return self.never_reads or not self._connections and not self._selector.select(0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stopping = True
        self._thread.join()
        self.kill()

    def _run(self):
        while not self._stopping:
            for key, _ in self._selector.select(0.02):
                with self._lock:
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.fd in self._connections and not self.never_reads:
                        self._read(self._connections[key.fd])

    def _accept(self):
        sock, _ = self._listener.accept()
        connection = Connection(self, sock)
        self._connections[sock.fileno()] = connection
        if not self.never_reads:
            self._selector.register(sock, selectors.EVENT_READ)

    def _drop(self, connection):
        del self._connections[connection.sock.fileno()]
        if not self.never_reads:
            self._selector.unregister(connection.sock)
        connection.sock.close()

    def _read(self, connection):
        try:
            data = connection.sock.recv(self.piece)
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
            return
        *lines, connection.rest = (connection.rest + data).split(b"\n")
        for line in lines:
            self._take(connection, json.loads(line))

    def _take(self, connection, line):
        self.lines.append(line)
        if "hello" in line:
            connection.hello = line["hello"]
            self.hellos.append(connection.hello)
            connection.send(self.answer)
        elif "metric" in line:
            if "type" in line:
                connection.declared.add(line["metric"])
            assert line["metric"] in connection.declared, "a value before its type"
            self._apply(connection.hello["start"], line)
        self.on_line(connection, line)
        if "seq" in line and not self.never_acks:
            connection.send(b'{"ack": %d}\n' % line["seq"])

    def _apply(self, start, line):
        series = line["metric"] + (json.dumps(line["labels"], sort_keys=True) if "labels" in line else "")
        if "set" in line:
            self.gauges[series] = line["set"]
            return
        total = line["total"]
        if not isinstance(total, dict):
            total = {"": total}
        else:
            buckets = {f"_bucket_{i}": count for i, count in enumerate(total["counts"])}
            total = {"_count": total["count"], "_sum": total["sum"], **buckets}
        last = self.last[start]
        for suffix, value in total.items():
            self.sums[series + suffix] += value - last.get(series + suffix, 0)
            last[series + suffix] = value


class Connection:
    def __init__(self, peer, sock):
        self.peer = peer
        self.sock = sock
        self.rest = b""
        self.hello = None
        self.declared = set()

    def send(self, data):
        try:
            for at in range(0, len(data), self.peer.piece):
                self.sock.sendall(data[at : at + self.peer.piece])
        except OSError:
            pass
