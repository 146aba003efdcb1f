"""A plugin's own metrics and knobs.

    from waap import plugin

    fps = plugin.metric("fps")
    res = plugin.param("res", default=720, min=240, max=1080)
    while True:
        img = grab(res.get())
        with plugin.timeit("inference"):
            detect(img)
        fps.inc()

Nothing has to be started or stopped: the first metric or parameter starts one thread, which sends
what has changed a few times a second, reconnects when the exporter was away, and sends the rest when
the program ends. Recording never waits and never fails because of the exporter. Counts are kept as
totals, so an exporter that was away misses nothing. A forked child counts from 0 on a connection of
its own; one that leaves by os._exit() should call flush() before. So should a function that records and
was given to atexit before this module was imported: it runs when the rest was sent.

The environment says where and who: WAAP_PUSH_SOCKET (/run/waap/push.sock), WAAP_PLUGIN_NAME (the
program's name), WAAP_JOB. Records that cannot be counted are written to standard error, once per metric;
with WAAP_DEBUG set, also what the exporter rejects.
"""

import functools
import time

from waap import _client, _params, _series

__all__ = ["configure", "counter", "flush", "gauge", "histogram", "metric", "metrics", "param", "stats", "timeit"]

_shared = _client.create()
_timed = {}  # histograms by the name that timeit knows, to be quick in a loop


class _Family:
    """A metric whose labels have names, but no values yet."""

    def __init__(self, name, names, series):
        self._name = name
        self._order = list(names)
        self._names = sorted(names)
        self._series = series

    def labels(self, *values, **labels):
        """By their names, or the values in the order in which the names were given."""
        if values and not labels and len(values) == len(self._order):
            labels = dict(zip(self._order, values))
        elif values:
            raise ValueError("{}: expected the values of {}, got {}".format(
                self._name, ", ".join(self._order), ", ".join(map(repr, values))))
        if sorted(labels) != self._names:
            raise ValueError("{}: expected the labels {}, got {}".format(
                self._name, ", ".join(self._names), ", ".join(sorted(labels)) or "none"))
        return self._series(labels)

    def _record(self, *_):
        values = ", ".join(name + "=..." for name in self._names)
        raise ValueError("{}: has labels: .labels({}) comes before a record".format(self._name, values))

    dec = inc = observe = set = update = _record


def configure(**settings):
    """Sets what is not to be taken from the environment, before the first metric or parameter:
    socket, plugin, job, labels (a dict), interval (seconds between sendings), max_series, and
    on_error, called with a text on the library's thread."""
    _shared.configure(**settings)


def metric(name, type=None, help=None, labels=None, ttl=None, buckets=None):
    """The series of that name and labels, made at the first call. Characters that Prometheus does not
    allow in names become "_". Without a type, the first record decides: inc() makes it a rate, set() or
    update(value) a gauge; a mix is a ValueError. A rate, say fps, is exported as the counter fps_total and
    the gauge fps, its mean over 10 s. `ttl` is how many seconds the series outlives its plugin, 0: for ever. `labels` is a
    dict; or a list of names, whose values then come with each record: frames.labels(cam="top").inc()."""
    try:
        kind = _series.ByUse if type is None else _series.KINDS[type]
    except KeyError:
        raise ValueError("{}: no type {!r}, but {}".format(name, type, ", ".join(_series.KINDS))) from None
    if labels is None or isinstance(labels, dict):
        return _shared.series(kind, name, help, labels, ttl, buckets)
    if isinstance(labels, str):
        raise ValueError("{}: labels are a dict, or a list of names, not {!r}".format(name, labels))
    return _Family(name, list(labels),
                   lambda chosen: _shared.series(kind, name, help, chosen, ttl, buckets))


def _update(name, value):
    metric(name).update(value)


metric.update = _update  # plugin.metric.update("acc", 0.9)


class _Metrics:
    """plugin.metrics.fps(...) is plugin.metric("fps", ...)."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return functools.partial(metric, name)


metrics = _Metrics()


def counter(name, help=None, labels=None, ttl=None):
    """What only goes up: inc(n). Exported with "_total" at its end."""
    return metric(name, "counter", help, labels, ttl)


def gauge(name, help=None, labels=None, ttl=None):
    """What goes up and down: set(value), inc(n), dec(n)."""
    return metric(name, "gauge", help, labels, ttl)


def histogram(name, help=None, labels=None, ttl=None, buckets=None):
    """How values are distributed: observe(value). `buckets` are ascending upper bounds."""
    return metric(name, "histogram", help, labels, ttl, buckets)


class _Span:
    """Measures a block or, as a decorator, every call of a function."""

    __slots__ = ("_histogram", "_began")

    def __init__(self, histogram):
        self._histogram = histogram

    def __enter__(self):
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_):
        self._histogram.observe(time.perf_counter() - self._began)

    def __call__(self, function):
        @functools.wraps(function)
        def timed(*arguments, **named):
            with _Span(self._histogram):
                return function(*arguments, **named)

        return timed


def timeit(name, help=None, labels=None, buckets=None):
    """with timeit("inference"): …, or @timeit("inference") before a function: how long it takes, as the
    histogram inference_seconds."""
    plain = help is None and labels is None and buckets is None
    known = _timed.get(name) if plain else None
    if known is None:
        full = name if name.endswith("_seconds") else name + "_seconds"
        known = histogram(full, help, labels, buckets=buckets)
        if plain and len(_timed) < _shared.max_series():
            _timed[name] = known
    return _Span(known)


def param(name, default=None, min=None, max=None, step=None, unit=None, help=None, values=None, type=None,
          on_change=None):
    """Declares a knob that others turn while the plugin runs; get() is its value. The type is that of
    `default` (int, float, bool, str), or an enum where `values` are given. Without a default, get() is None
    until somebody turns the knob; without anything but a name, to any number, bool or string, and a later
    declaration may say more. The exporter hears that a
    value is applied when get() has read it or, with `on_change`, when on_change(value) has returned;
    that is called on the library's thread."""
    return _shared.param(_params.Param(_shared, name, default, min, max, step, unit, help, values, type,
                                       on_change))


def flush(timeout=5.0):
    """Waits until the exporter has confirmed all that was recorded before. False: it has not within
    `timeout` seconds; everything is kept and sent later."""
    return _shared.flush(timeout)


def stats():
    """connected, connects, lines (sent), errors (refusals), dropped (records that are no number),
    series: as a dict."""
    return _shared.stats()
