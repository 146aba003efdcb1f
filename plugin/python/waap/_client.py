"""The one client of a process: its thread, its series and parameters, what happens at fork and exit."""

import atexit
import os
import select
import sys
import threading
import time

from waap._series import ByUse, Counter, Gauge, GaugeByUse, Histogram, Mistake, clean_buckets, clean_labels, clean_name, clean_text, clean_value
from waap._session import Session, is_open, safe_repr

EXIT_SECONDS = 1.0
FAULT_SECONDS = 1.0
FORK_SECONDS = 1.0  # that a fork may wait; the thread opens its socket far quicker
LONGEST_SECONDS = 3600.0  # that poll() or a lock is asked to wait
SHORTEST_INTERVAL = 0.001  # seconds; a round ends before the next is due
MAX_PARAMS = 100
MAX_TEXTS = 16
MAX_TOLD = 1000  # names of metrics with mistakes


class Settings:
    def __init__(self, socket=None, plugin=None, job=None, labels=None, interval=0.25, max_series=1000,
                 on_error=None):
        def first(value, variable, fallback=None):
            return clean_text(value or os.environ.get(variable) or fallback or "")

        self.socket = first(socket, "WAAP_PUSH_SOCKET", "/run/waap/push.sock")
        self.plugin = first(plugin, "WAAP_PLUGIN_NAME", program_name())
        self.job = first(job, "WAAP_JOB")
        self.labels = clean_labels(labels)
        self.interval = clean_value(interval)
        if self.interval is None or not 0 < self.interval < float("inf"):
            raise ValueError("interval: {!r} is no number of seconds above 0".format(interval))
        self.interval = max(self.interval, SHORTEST_INTERVAL)
        self.max_series = clean_value(max_series)
        if self.max_series is None or not self.max_series >= 0:
            raise ValueError("max_series: {!r} is no number".format(max_series))
        if on_error is not None and not callable(on_error):
            raise ValueError("on_error: {!r} cannot be called".format(on_error))
        self.on_error = on_error
        self.absence_told = False  # also for forked children
        self.debug = os.environ.get("WAAP_DEBUG", "") not in ("", "0")


def program_name():
    """objcounter for /app/objcounter.py, app for /app/__main__.py as `python -m app` runs it."""
    program = (getattr(sys, "argv", None) or [""])[0]  # an embedded interpreter may have none
    path = program if isinstance(program, str) and program != "-c" else ""
    name, _ = os.path.splitext(os.path.basename(path))
    try:
        return os.path.basename(os.path.dirname(os.path.abspath(path))) if name == "__main__" else name or "python"
    except OSError:  # the working directory is gone
        return name


class Full:
    """Stands in for the client in a series beyond the limit: every record is one that is lost."""

    running = False

    def __init__(self, client):
        self.start = client.count_dropped
        self.series = client.series

    def drop(self, name, mistake):
        pass

    def decide(self, series, kind):
        series.become(kind)


class Client:
    def __init__(self):
        self._own_lock = threading.RLock()  # guards all that follows, but not while waiting or calling out
        self._turned = threading.Condition(self._own_lock)
        self._open_lock = threading.RLock()  # held to open a socket, and to fork; only a fork waits for it
        self._alone = self._exiting = False
        self._settings = None
        self._session = None
        self._series = []
        self._by_key = {}
        self._kinds = {}  # {name: (kind, buckets)}: all series of a name are alike
        self._params = []
        self._dropped = 0
        self._dropped_series = None
        self._texts = []  # for on_error, which may record itself: it is called without the lock
        self._told = set()  # names of metrics with a mistake, told once; "": too many series
        self._telling = False
        self._last_error = None
        self._n_connects = 0
        self._wake_fds = None
        self._wake_inode = None
        self._thread = None
        self._start_at = 0.0  # when the thread may be tried again that could not be started
        self._pid = os.getpid()
        self.running = False
        atexit.register(self._at_exit)

    @property
    def _lock(self):
        """The lock. When the interpreter ends, the last thread goes on with locks that nobody has: the
        others were stopped where they were, and __del__ of something may still record."""
        if sys.is_finalizing() and not self._alone:
            self._alone = True
            self._renew_locks()
        return self._own_lock

    def _renew_locks(self):
        self._own_lock = threading.RLock()
        self._turned = threading.Condition(self._own_lock)
        self._open_lock = threading.RLock()
        for series in self._series:
            series.renew_lock()

    # What is recorded.

    def configure(self, **settings):
        with self._lock:
            if self._settings is not None:
                raise RuntimeError("configure() comes before the first metric or parameter")
            self._settings = Settings(**settings)

    def series(self, kind, name, help, labels, ttl, buckets):
        try:
            known = self._by_key.get((kind, name, tuple(sorted(labels.items())) if labels else ()))
        except TypeError:  # a label's value that cannot be a key: as text it can
            known = None
        if known is not None and (buckets is None or buckets is known._buckets):
            return known
        if kind is Histogram:
            buckets = clean_buckets(buckets)
        elif buckets is not None:
            raise ValueError("{}: a {} has no buckets".format(name, kind.kind))
        return self._make_series(kind, clean_name(name), help, clean_labels(labels), ttl, buckets)

    def _make_series(self, kind, name, help, labels, ttl, buckets):
        label_key = tuple(sorted(labels.items()))
        with self._lock:
            self._settle()
            wanted, kind = kind, self._agree(name, kind, buckets)
            key = (kind, name, label_key)
            series = self._by_key.get(key)
            if series is None:
                full = len(self._series) >= self._settings.max_series
                series = kind(Full(self) if full else self, name, help, labels, ttl, buckets)
                if full:
                    self._tell_mistake("", "{}: more than {:g} series".format(name, self._settings.max_series))
                elif self._by_key.setdefault(key, series) is series:
                    self._kinds[name] = (kind, buckets)
                    self._series.append(series)
                else:  # a signal handler came first
                    series = self._by_key[key]
            if wanted is not kind and self._by_key.get(key) is series:
                self._by_key[wanted, name, label_key] = series
        self.start()
        return series

    def _agree(self, name, kind, buckets):
        """The kind that a series of that name has when `kind` is asked for."""
        known, known_buckets = self._kinds.get(name, (kind, buckets))
        if kind is ByUse and known is not Histogram:
            return known
        if known is ByUse and kind is not Histogram or known is GaugeByUse and kind is Gauge:
            self._decide(name, kind)
        elif kind is not known or buckets != known_buckets:
            raise ValueError("{}: is a {} already{}".format(
                name, known.kind, ", with other buckets" if kind is known else ""))
        return kind

    def _decide(self, name, kind):
        """All series of the name, which were to be decided by use or were decided so."""
        self._kinds[name] = (kind, None)
        for (_, other, labels), series in list(self._by_key.items()):
            if other == name:
                self._by_key[kind, name, labels] = series
                if type(series) is ByUse:
                    series.become(kind)
                else:
                    series.__class__ = kind

    def decide(self, series, kind):
        """The first record decides, unless another of that name came first."""
        with self._lock:
            if type(series) is ByUse:
                self._decide(series.name, kind)

    def max_series(self):
        """Known as soon as there is a series."""
        return self._settings.max_series

    def param(self, param):
        with self._lock:
            self._settle()
            for known in self._params:
                if known.name == param.name:
                    if known.is_bare and not param.is_bare:
                        known.refine(param)
                        break
                    if not param.is_bare and known.declaration() != param.declaration():
                        raise ValueError("{}: is declared already, and otherwise".format(param.name))
                    return known
            else:
                if len(self._params) >= MAX_PARAMS:
                    raise ValueError("{}: more than {} parameters".format(param.name, MAX_PARAMS))
                self._params.append(param)
                known = param
        self.start()
        self.wake()
        return known

    def count_dropped(self):
        """Counts a record that is lost."""
        with self._lock:
            self._dropped += 1

    def drop(self, name, mistake):
        with self._lock:
            self._dropped += 1
            self._tell_mistake(name, mistake)

    def _tell_mistake(self, name, text):
        if name not in self._told and len(self._told) < MAX_TOLD:
            self._told.add(name)
            self._complain(Mistake(text))

    def stats(self):
        with self._lock:
            session = self._session
            return {
                "connected": session is not None and session.sock is not None,
                "connects": session.n_connects if session else 0,
                "lines": session.n_lines if session else 0,
                "errors": session.n_errors if session else 0,
                "dropped": self._dropped,
                "series": len(self._series),
            }

    def flush(self, timeout, give_up=False):
        """With give_up, an exporter that is away is not waited for."""
        # A caller that waits must not wait for the next attempt as well.
        self._start_at = min(self._start_at, time.monotonic())
        self.start()
        end = time.monotonic() + timeout
        with self._lock:
            if not self._series and not self._params:
                return True
            session = self._session
            if session is None or self._alone or self._thread in (None, threading.current_thread()):
                return False
            number, n_lost = session.ask(), session.n_lost
            self.wake()
            while session.answered < number and not (give_up and session.n_lost != n_lost):
                left = end - time.monotonic()
                if not left > 0:  # nor where the time is no number
                    return False
                self._turned.wait(min(left, LONGEST_SECONDS))
            return session.answered >= number

    # The thread.

    def _settle(self):
        if self._settings is None:
            self._settings = Settings()

    def start(self):
        """Starts the thread. Every record does so where it does not run, as in a forked child."""
        with self._lock:
            if self._alone:  # where a thread would never begin, and be waited for
                self.running = True
            if self._thread is not None or self._alone or not (self._series or self._params):
                return
            now = time.monotonic()
            if now < self._start_at:
                return
            self._settle()
            self._session = self._session or Session(self._settings, self._series, self._params,
                                                     self._open_lock)
            try:
                self._open_wake()
                self._thread = threading.Thread(target=self._run, name="waap-plugin", daemon=True)
                self._thread.start()
                self._flush_in_children()
                self.running = not self._exiting
            except (OSError, RuntimeError) as error:  # no descriptors, no threads, or at exit
                self._thread = None
                self._start_at = now + FAULT_SECONDS
                self._complain("no thread: {}".format(error))
        if self._thread is None:  # nobody else would tell
            self._tell_texts()

    def _open_wake(self):
        """The pipe that wakes the thread, its own in every process. Without its other end, the one to be
        read would be ready for ever."""
        if self._wake_fds is None or not all(is_open(fd, self._wake_inode) for fd in self._wake_fds):
            fds = os.pipe()
            for fd in fds:
                os.set_blocking(fd, False)
            self._close_wake()
            self._wake_inode = os.fstat(fds[0]).st_ino
            self._wake_fds = fds

    def _close_wake(self):
        for fd in self._wake_fds or ():
            if is_open(fd, self._wake_inode):
                os.close(fd)

    def _flush_in_children(self):
        """Processes of multiprocessing leave without atexit; this is what they call instead."""
        util = sys.modules.get("multiprocessing.util")
        if hasattr(util, "Finalize"):  # not while another thread imports it
            util.Finalize(None, self._at_exit, exitpriority=100)

    def wake(self):
        if self._wake_fds is not None and is_open(self._wake_fds[1], self._wake_inode):
            try:
                os.write(self._wake_fds[1], b".")
            except OSError:  # full, so it wakes anyway
                pass

    def _run(self):
        # In a child that on_change has forked, this is another thread than the client's.
        while self._pid == os.getpid() and self._thread is threading.current_thread():
            try:
                self._tell_texts()  # before flush() returns
                wait, sock, full = self._turn()
                self._call_out()
                self._wait(None if full else min(wait, LONGEST_SECONDS), sock, full)
            except Exception as error:  # whatever it is, the next turn may do better
                self._complain(safe_repr(error))
                self._tell_texts()
                time.sleep(FAULT_SECONDS)

    def _wait(self, seconds, sock, full):
        poll = select.poll()
        poll.register(self._wake_fds[0], select.POLLIN)
        if sock is not None:
            poll.register(sock, select.POLLIN | (select.POLLOUT if full else 0))
        poll.poll(None if seconds is None else 1000 * seconds + 1)
        self._open_wake()
        try:
            os.read(self._wake_fds[0], 4096)
        except BlockingIOError:
            pass

    def _turn(self):
        with self._lock:
            self._tell_dropped()
            session = self._session
            wait = session.turn(time.monotonic())
            self._turned.notify_all()
            return wait, session.sock, session.full

    def _tell_dropped(self):
        """Dropped records are a series of their own, from the first one on."""
        if self._dropped and self._dropped_series is None:
            help = "What the plugin recorded that is no number or not of the metric's kind."
            self._dropped_series = Counter(self, "plugin_records_dropped_total", help, {}, None, None)
            self._series.append(self._dropped_series)
        if self._dropped_series is not None:
            self._dropped_series._value = self._dropped

    def _call_out(self):
        with self._lock:
            errors, self._session.errors = self._session.errors, []
            calls, self._session.calls = self._session.calls, []
            self._texts += errors
            n_connects, self._n_connects = self._n_connects, self._session.n_connects
        if self._n_connects > n_connects:
            self._debug("connected to {} as plugin {}".format(self._settings.socket, self._settings.plugin))
        self._tell_texts()
        for param in calls:
            try:
                param.call()
            except BaseException as error:  # sys.exit() would end just this thread
                self._complain("param {}: on_change: {}".format(param.name, safe_repr(error)))
        if calls:
            self._tell_texts()
            self.wake()

    def _complain(self, text):
        """Queues a text for a caller without locks; the thread prints the first one."""
        if len(self._texts) < MAX_TEXTS:
            self._texts.append(text)
        if len(self._texts) == 1 and self._thread is not threading.current_thread():
            self.wake()

    def _tell_texts(self):
        if self._telling:  # on_error itself met a fault: it is told at another time
            return
        self._telling = True
        try:
            with self._lock:
                texts, self._texts = self._texts, []
            for text in texts:
                if isinstance(text, Mistake):
                    self._write(text)
                elif text != self._last_error:
                    self._debug(text)
                self._last_error = text
                self._tell(text)
        finally:
            self._telling = False

    def _tell(self, text):
        try:
            if self._settings.on_error is not None:
                self._settings.on_error(text)
        except BaseException as error:
            self._debug("on_error: {}".format(safe_repr(error)))
            if self._thread is not threading.current_thread() and not isinstance(error, Exception):
                raise

    def _debug(self, text):
        if self._settings.debug:
            self._write(text)

    def _write(self, text):
        try:
            sys.stderr.write("waap: {}\n".format(text))
        except Exception:  # none, closed, or a pipe that nobody reads
            pass

    # Its end.

    def _before_fork(self):
        """No other thread shall be opening a socket that the child would keep without knowing. The client's
        lock is not held: hooks of others take theirs next, whose holders may be about to record."""
        self._open_lock.acquire(timeout=FORK_SECONDS)

    def _after_fork_in_parent(self):
        try:
            self._open_lock.release()
        except RuntimeError:  # it was not to be had
            pass

    def _after_fork(self):
        """In a child: nothing recorded, nothing connected; locks that nobody holds."""
        # Another thread may have been about to append one.
        self._series[:] = dict.fromkeys(self._by_key.values())
        if self._dropped_series is not None:
            self._series.append(self._dropped_series)
        self._renew_locks()
        self._exiting = False
        self._dropped = 0
        self._texts = []
        self._telling = False
        self._n_connects = 0
        self._thread = None
        self._start_at = 0.0
        for series in self._series:
            series.zero()
        if self._session is not None:
            self._session.close()
            self._session = None
        self._close_wake()
        self._wake_fds = None
        self.running = False
        self._pid = os.getpid()  # last: what others record from here on stays

    def _at_exit(self):
        if self._pid == os.getpid():
            if self._thread is not None or self._start_at:
                self.flush(EXIT_SECONDS, give_up=True)
                self._tell_texts()
                end = time.monotonic() + EXIT_SECONDS
                while self._telling and time.monotonic() < end:  # the thread, which is not waited for
                    time.sleep(0.001)
            self._exiting = True
            self.running = False  # so that every record comes by start(), which sees the end


class ClientByPid(Client):
    """For Python 3.6, which does not tell of a fork: the first to record sees it, and the child's other
    threads wait for it."""

    _fork_locks = {}  # {pid: lock}: the child's own cannot be held by threads that it has not

    def _see_fork(self):
        with self._fork_locks.setdefault(os.getpid(), threading.RLock()):
            if self._pid != os.getpid():
                self._after_fork()

    @property
    def _lock(self):
        if self._pid != os.getpid():
            self._see_fork()
        return super()._lock

    @property
    def running(self):
        if self._pid != os.getpid():
            self._see_fork()
        return self._running

    @running.setter
    def running(self, value):
        self._running = value


def create():
    if not hasattr(os, "register_at_fork"):
        return ClientByPid()
    client = Client()
    os.register_at_fork(before=client._before_fork, after_in_parent=client._after_fork_in_parent,
                        after_in_child=client._after_fork)
    return client
