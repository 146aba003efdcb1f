"""Series: what is recorded, and the lines that say it.

A value changes under the lock of its series, held for a few instructions. The lock can be taken again
by the thread that has it, so a signal handler may record, too; where it interrupts a record of the same
series, one of the two may be lost before Python 3.10. It is taken to record only: the thread, which holds
the client's lock when it reads, would wait for a record whose signal handler waits for the client."""

import math
import re
import threading
from bisect import bisect_left

USUAL_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
MAX_TEXT = 4096
MAX_LABELS = 32
MAX_BUCKETS = 200
HUGE = 1e300  # what is beyond is no measurement, and sums of it would not stay finite


def clean_value(value):
    """The number that float() sees in it; None where it is none, or one that no float can hold."""
    try:
        return float(value)
    except Exception:  # a tensor of several elements has a RuntimeError
        return None


def clean_text(text):
    """What can be sent: lone surrogates, as file names have them, become "?"."""
    # The text of an Enum that is a str is its value, under which it also is found in a dict.
    text = str.__str__(text) if isinstance(text, str) else str(text)
    return text.encode("utf-8", "replace").decode("utf-8")


def clean_name(name, allowed="a-zA-Z0-9_:"):
    if not isinstance(name, str) or not name or len(name) > MAX_TEXT:
        raise ValueError("not a name: {!r}".format(name))
    name = re.sub("[^" + allowed + "]", "_", name)
    return "_" + name if name[0].isdigit() else name


def clean_labels(labels):
    clean = {clean_name(name, "a-zA-Z0-9_"): clean_text(text) for name, text in (labels or {}).items()}
    if len(clean) > MAX_LABELS or sum(map(len, clean.values())) > MAX_TEXT:
        raise ValueError("too many or too long labels")
    return clean


def clean_buckets(buckets):
    bounds = [clean_value(bound) for bound in (USUAL_BUCKETS if buckets is None else buckets)]
    if None in bounds:
        raise ValueError("buckets must be numbers: {!r}".format(buckets))
    if bounds and bounds[-1] == math.inf:
        bounds.pop()
    rising = all(low < high for low, high in zip(bounds, bounds[1:]))
    if not bounds or len(bounds) > MAX_BUCKETS or not rising or not all(map(math.isfinite, bounds)):
        raise ValueError("buckets must be finite and ascending: {!r}".format(buckets))
    return bounds


def brief(value):
    """A value as messages show it; any method of others' types may raise."""
    try:
        text = repr(value)
    except Exception:
        text = type(value).__name__
    return text if len(text) <= 40 else text[:40] + "..."


class Mistake(str):
    """A text that is written to standard error without being asked for."""


class Series:
    """One series of any kind."""

    kind = "metric"

    def __init__(self, client, name, help, labels, ttl, buckets):
        self._client = client
        self.name = name
        self._help = None if help is None else clean_text(help)[:MAX_TEXT]
        self._labels = labels
        self._ttl = None if ttl is None else clean_value(ttl)
        if ttl is not None and (self._ttl is None or not 0 <= self._ttl < HUGE):
            raise ValueError("{}: ttl: {!r} is no number of seconds".format(name, ttl))
        self._buckets = buckets
        # As last sent on this connection.
        self.sent = None
        self.sent_at = 0.0
        self.refused_at = None
        self.renew_lock()
        self.zero()

    def renew_lock(self):
        """A lock that no thread holds which is not there any more."""
        self._lock = threading.RLock()

    def zero(self):
        """As if nothing had been recorded."""
        self._value = 0

    def labels(self, **labels):
        """The same metric with these labels more."""
        if not self._labels:
            raise ValueError("{0}: labels({1}): was declared without labels; with: {2}({0!r}, labels=[{3}])".format(
                self.name, ", ".join(name + "=..." for name in labels), self.kind, ", ".join(map(repr, labels))))
        merged = dict(self._labels)
        merged.update(labels)
        return self._client.series(type(self), self.name, self._help, merged, self._ttl, self._buckets)

    def read(self):
        """The value to compare with `sent`; None: there is nothing to say yet."""
        return self._value

    def refresh_seconds(self):
        return min(60.0, self._ttl / 3) if self._ttl else 60.0

    def line(self, reading):
        """The line that tells a reading."""
        line = {"metric": self.name}
        if self.sent is None:
            line["type"] = self.kind
            if self._help is not None:
                line["help"] = self._help
            if self._buckets is not None:
                line["buckets"] = self._buckets
        if self._labels:
            line["labels"] = self._labels
        if self._ttl is not None:
            line["ttl"] = self._ttl
        line.update(self.told(reading))
        return line

    def told(self, reading):
        return {"total": reading}

    def drop(self, call, value):
        """A record that cannot be added up."""
        number = clean_value(value)
        if number is None:
            reason = "is not a number"
        elif not -HUGE < number < HUGE:
            reason = "is not a finite number"
        else:
            reason = "a {} cannot go down".format(self.kind)
        self._client.drop(self.name, "{}: {}({}): {}".format(self.name, call, brief(value), reason))

    def reject(self, call, value, advice):
        """A call that this kind of metric does not have."""
        raise ValueError("{}: {}({}): is a {}: {}".format(self.name, call, brief(value), self.kind, advice))


class ByUse(Series):
    """A metric whose kind its first record decides."""

    def read(self):
        return None

    def inc(self, n=1):
        self._client.decide(self, Rate)
        self.inc(n)

    def set(self, value):
        self._client.decide(self, GaugeByUse)
        self.set(value)

    update = set

    def dec(self, n=1):
        self.reject("dec", n, "begin with set(), or declare a gauge")

    def observe(self, value):
        self.reject("observe", value, "declare a histogram")

    def become(self, kind):
        self._value = None if issubclass(kind, Gauge) else 0
        self.__class__ = kind  # last: from here on, others record


class Counter(Series):
    kind = "counter"

    def set(self, value):
        self.reject("set", value, "use inc()")

    update = set

    def inc(self, n=1):
        """Adds n, which is not below 0."""
        if not self._client.running:
            self._client.start()
        number = n if type(n) is int else clean_value(n)
        if number is not None and 0 <= number < HUGE:
            with self._lock:
                self._value += number
        else:
            self.drop("inc", n)


class Rate(Counter):
    kind = "rate"


class Gauge(Series):
    kind = "gauge"

    def zero(self):
        super().zero()
        self._value = None

    def set(self, value):
        if not self._client.running:
            self._client.start()
        number = clean_value(value)
        if number is not None:
            with self._lock:  # or an inc() that has read the value before forgets this one
                self._value = number
        else:
            self.drop("set", value)

    update = set

    def inc(self, n=1):
        if not self._client.running:
            self._client.start()
        number = clean_value(n)
        if number is not None and -HUGE < number < HUGE:
            with self._lock:
                self._value = (self._value or 0.0) + number
        else:
            self.drop("inc", n)

    def dec(self, n=1):
        number = clean_value(n)  # first, as the negative of an unsigned number is another one
        self.inc(n if number is None else -number)

    def read(self):
        value = self._value
        if value is None or math.isfinite(value):
            return value
        # JSON has no such numbers: the exporter takes words for them.
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"

    def told(self, reading):
        return {"set": reading}


class GaugeByUse(Gauge):
    """Only inc() as the first record would have made it a rate."""

    def inc(self, n=1):
        self.reject("inc", n, "use set(), or declare it a gauge")

    def dec(self, n=1):
        self.reject("dec", n, "use set(), or declare it a gauge")


class Histogram(Series):
    kind = "histogram"

    def zero(self):
        super().zero()
        self._counts = [0] * (len(self._buckets) + 1)
        self._sum = 0.0

    def observe(self, value):
        if not self._client.running:
            self._client.start()
        number = clean_value(value)
        if number is not None and -HUGE < number < HUGE:
            with self._lock:
                self._sum += number  # first: see read()
                self._counts[bisect_left(self._buckets, number)] += 1
        else:
            self.drop("observe", value)

    def read(self):
        counts = tuple(self._counts)
        # May be ahead of the counts, never behind; when those have caught up they differ from what was sent.
        return counts, self._sum

    def told(self, reading):
        counts, total = reading
        cumulative, n = [], 0
        for count in counts:
            n += count
            cumulative.append(n)
        return {"total": {"counts": cumulative[:-1], "count": n, "sum": total}}


KINDS = {kind.kind: kind for kind in (Counter, Gauge, Histogram, Rate)}
