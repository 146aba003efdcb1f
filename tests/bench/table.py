"""The table that `make bench` prints, row by row as they are measured."""

import statistics

# A row's columns: what, ours, theirs, ratio, budget, verdict.
LAYOUT = "{:<52} {:>11} {:>11} {:>9} {:>11}  {}"


def scaled(value, steps, unit):
    for factor, prefix in steps:
        if abs(value) >= factor:
            break
    value /= factor
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {prefix}{unit}"


def seconds(value):
    return scaled(value, ((1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")), "s")


def rate(value):
    return scaled(value, ((1e6, "M"), (1e3, "k"), (1, "")), "/s")


def mebibytes(value):
    return f"{value / 2**20:.1f} MiB"


def percent(value):
    return f"{100 * value:.2f} %"


def count(value):
    return f"{value:,.0f}"


class Table:
    def __init__(self, judged):
        """Not judged: figures of the short form say nothing about budgets."""
        self.judged = judged
        self.n_rows = 0
        self.n_missed = 0
        self.skipped = {}
        # CPU seconds that the pushgateway needs for a series, HTTP included; None: unknown.
        self.peer_per_series = None

    def heading(self, what, ours="ours", theirs="peer", ratio="ratio"):
        print("\n" + LAYOUT.format(what, ours, theirs, ratio, "budget", "").rstrip())

    def line(self, what, ours="", theirs="", ratio="", budget="", good=None):
        """One row; `good` says whether the budget is kept, None: there is none."""
        good = good if self.judged else None
        self.n_rows += 1
        self.n_missed += good is False
        verdict = {None: "", True: "ok", False: "MISS"}[good]
        print(LAYOUT.format(what, ours, theirs, ratio, budget, verdict).rstrip(), flush=True)

    def skip(self, what, why):
        self.skipped[what] = why
        self.line(what, "SKIP", budget=why)

    def versus(self, what, unit, ours, theirs, least=None, more_is_better=False):
        """Both sides as lists, one value per round. The ratio says how much better ours is: the
        median of the rounds' own, as what disturbs a round disturbs both sides."""
        better = [o / t if more_is_better else t / o for o, t in zip(ours, theirs)]
        ratio = statistics.median(better)
        self.line(
            what,
            unit(statistics.median(ours)),
            unit(statistics.median(theirs)),
            f"{ratio:.3g} x",
            f">= {least} x" if least else "",
            ratio >= least if least else None,
        )

    def limit(self, what, unit, ours, theirs, most):
        """A value of ours that must not exceed `most`; that of the peer just stands by."""
        self.line(what, unit(ours), unit(theirs), "", f"<= {unit(most)}", ours <= most)
