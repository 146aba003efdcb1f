"""The connection to the exporter: JSON lines both ways, totals up, knobs down. No call waits; the
client's lock is held in all of them."""

import binascii
import json
import os
import random
import socket

from waap._series import Mistake

FIRST_WAIT, LONGEST_WAIT = 0.1, 2.0  # seconds between attempts to connect
FORK_WAIT = 0.01  # before an attempt while another thread forks
STABLE = 1.0  # a connection that has lasted is worth a quick second try
REFUSED_WAIT = 5.0  # a series that was refused is offered again
AWAY = 5.0  # without an exporter, which is told
CHUNK = 64 * 1024  # bytes on their way at a time
MAX_LINE = 64 * 1024


def is_open(fd, inode):
    """Whether the descriptor still is what it was: a program that turns into a daemon may have closed
    all it found, and opened others."""
    try:
        return os.fstat(fd).st_ino == inode
    except OSError:
        return False


def safe_repr(thing):
    """For exceptions of others, of which any method may raise."""
    try:
        return repr(thing)
    except Exception:
        return type(thing).__name__


class Lost(Exception):
    """The connection is over."""


class Session:
    def __init__(self, settings, series, params, open_lock):
        self._settings = settings
        self._series = series
        self._params = params
        self._open_lock = open_lock
        self._random = random.Random()  # the module's own numbers are the application's
        self._start = binascii.hexlify(os.urandom(8)).decode()
        self._sock = None
        self._wait = FIRST_WAIT
        self._retry_at = 0.0
        self._open_fault = None
        self._away_at = None  # since when there is no exporter
        self.asked = self.answered = 0  # numbers of rounds to be confirmed
        self.n_lost = self.n_connects = self.n_lines = self.n_errors = 0
        self.errors = []  # texts for the application
        self.calls = []  # params whose on_change is due
        self._forget()

    def _forget(self):
        self._out, self._in = bytearray(), bytearray()
        self._next = None  # the index of the series at which the round goes on
        self._round_asked = 0
        self._asked_here = False
        for series in self._series:
            series.sent = series.refused_at = None
        for param in self._params:
            param.forget()

    def close(self):
        """Leaves the connection; what was on its way is sent again on the next."""
        self._forget()
        if self._sock is not None and not is_open(self._sock.fileno(), self._inode):
            self._sock.detach()
        elif self._sock is not None:
            self._sock.close()
        self._sock = None  # last: a child that is forked meanwhile closes its own

    @property
    def sock(self):
        return self._sock

    @property
    def full(self):
        return bool(self._out)

    def ask(self):
        """Asks for a round with an acknowledgement; returns its number."""
        self._asked_here = False
        if self._sock is None:
            self._retry_at = 0.0
        self.asked += 1
        return self.asked

    def turn(self, now):
        """Does what can be done. Returns how many seconds the next turn may wait."""
        if self._sock is not None or now >= self._retry_at:
            try:
                self._work(now)
            except (Lost, OSError) as error:
                self._lost(now, error)
            except Exception as error:
                if self._sock is not None:
                    self._fault("connection", error)
                self._lost(now, error)
        return max(0.0, (self._retry_at if self._sock is None else self._round_at) - now)

    def _lost(self, now, error):
        if self._sock is None:
            reason = "connect {}: {}".format(self._settings.socket, error)
            if reason != self._open_fault:
                self.errors.append(reason)
            self._open_fault = reason
            self._note_absence(now, error)
        elif now - self._opened_at >= STABLE:
            self._wait = FIRST_WAIT
        self.close()
        self.n_lost += 1
        # Plugins of one node shall not all knock at once.
        self._retry_at = now + self._wait * self._random.uniform(0.75, 1)
        self._wait = min(2 * self._wait, LONGEST_WAIT)

    def _note_absence(self, now, error):
        if self._away_at is None:
            self._away_at = now
        if now - self._away_at >= AWAY and not self._settings.absence_told:
            self._settings.absence_told = True
            path = self._settings.socket
            self.errors.append(Mistake(
                "nobody listens on {} ({}): is waap running, is {} mounted into this container, and is "
                "WAAP_PUSH_SOCKET right?".format(path, getattr(error, "strerror", None) or error,
                                                 os.path.dirname(path) or ".")))

    def _work(self, now):
        if self._sock is None and not self._try_open(now):
            return
        if not is_open(self._sock.fileno(), self._inode):
            self._sock.detach()
            self._sock = None
            raise Lost("the socket was closed by others")
        self._receive(now)
        while True:
            self._send()
            if self._out:
                return
            self._compose(now)
            if not self._out and self._next is None and not self._due(now):
                return

    def _try_open(self, now):
        if not self._open_lock.acquire(False):
            self._retry_at = now + FORK_WAIT
            return False
        try:
            self._open(now)
        finally:
            self._open_lock.release()
        return True

    def _open(self, now):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.connect(self._settings.socket)
        except Exception:
            sock.close()
            raise
        self._sock = sock
        self._inode = os.fstat(sock.fileno()).st_ino
        self._opened_at = self._round_at = now
        self._open_fault = self._away_at = None
        self._settings.absence_told = False
        self.n_connects += 1
        hello = {"plugin": self._settings.plugin, "start": self._start}
        if self._settings.job:
            hello["job"] = self._settings.job
        if self._settings.labels:
            hello["labels"] = self._settings.labels
        self._say({"hello": hello})

    def _say(self, line):
        self._out += json.dumps(line, separators=(",", ":")).encode() + b"\n"
        self.n_lines += 1

    def _send(self):
        while self._out:
            try:
                # Python ignores SIGPIPE, but an embedding program may not.
                n = self._sock.send(self._out, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            del self._out[:n]

    def _receive(self, now):
        try:
            data = self._sock.recv(MAX_LINE)
        except BlockingIOError:
            return
        if not data:
            raise Lost("the exporter has left")
        self._in += data
        *lines, rest = self._in.split(b"\n")
        self._in = rest
        for line in lines:
            if line.strip():
                self._try("not taken: {!r}".format(bytes(line[:100])), self._take, line, now)
        if len(self._in) > MAX_LINE:
            raise Lost("a line without end")

    def _take(self, text, now):
        try:
            line = json.loads(text.decode("utf-8", "replace"))
            assert isinstance(line, dict)
        except (ValueError, AssertionError, RecursionError):
            self._complain("not understood: {!r}".format(bytes(text[:100])))
            return
        if "error" in line:
            self._complain(str(line["error"]))
            for series in self._series:
                if series.name == line.get("metric"):
                    series.sent, series.refused_at = None, now
        elif "param" in line and "value" in line:
            self._turn_param(line["param"], line["value"])
        ack = line.get("ack")
        if isinstance(ack, (int, float)) and self.answered < ack <= self.asked:
            self.answered = int(ack)
            self._wait = FIRST_WAIT

    def _complain(self, text):
        self.n_errors += 1
        if len(self.errors) < 16:
            self.errors.append(text)

    def _fault(self, what, error):
        self._complain("{}: {}".format(what, safe_repr(error)))

    def _try(self, what, step, *arguments):
        """One message: a fault of its own is told, and no other's."""
        try:
            step(*arguments)
        except Exception as error:
            self._fault(what, error)

    def _turn_param(self, name, value):
        for param in self._params:
            if param.name == name:
                try:
                    if param.turn(value):
                        self.calls.append(param)
                except ValueError as error:
                    self._complain("param {}".format(error))
                return
        self._complain("param {}: is not known".format(name))

    def _ack_due(self):
        """Whether an acknowledgement is wanted that this connection has not been asked for."""
        return self.asked > self.answered and not self._asked_here

    def _due(self, now):
        """Whether it is time to look at the series."""
        return self._next is None and (self._ack_due() or now >= self._round_at)

    def _compose(self, now):
        for param in self._params:
            self._try(param.name, self._tell, param)
        if self._due(now):
            self._next = 0
            self._round_asked = self.asked if self._ack_due() else 0
            self._round_at = now + self._settings.interval
        if self._next is None:
            return
        while self._next < len(self._series) and len(self._out) < CHUNK:
            series = self._series[self._next]
            self._try(series.name, self._offer, series, now)
            self._next += 1
        if self._next >= len(self._series):
            self._next = None
            if self._round_asked:
                self._asked_here = self._round_asked == self.asked
                self._say({"seq": self._round_asked})

    def _tell(self, param):
        for line in param.lines():
            self._say(line)

    def _offer(self, series, now):
        """Says a series that has changed, or that would soon be forgotten."""
        reading = series.read()
        rests = series.refused_at is not None and now - series.refused_at < REFUSED_WAIT
        if reading is None or (rests and not self._round_asked):
            return
        if reading != series.sent or now - series.sent_at >= series.refresh_seconds():
            try:
                self._say(series.line(reading))
            except Exception:
                series.refused_at = now
                raise
            series.sent, series.sent_at = reading, now
