"""CPU time of one record in a Python plugin, its thread included, with no exporter there; prints as the
C benchmarks do. Any interpreter can run it: python3.6 tests/bench/bench_plugin.py"""

import os
import sys
import timeit
from time import process_time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../plugin/python"))
os.environ["WAAP_PUSH_SOCKET"] = "/nonexistent/push.sock"

from waap import plugin  # noqa: E402

N_RECORDS, N_ROUNDS = (100, 1) if "BENCH_SHORT" in os.environ else (50000, 5)
NAMES = {
    "counter": plugin.counter("frames_total"),
    "gauge": plugin.gauge("queue_length"),
    "histogram": plugin.histogram("inference_seconds"),
    "param": plugin.param("res", default=720, min=240, max=1080),
    "plugin": plugin,
}
RECORDS = (
    ("inc()", "counter.inc()"),
    ("set()", "gauge.set(1.5)"),
    ("observe(), 13 buckets", "histogram.observe(0.02)"),
    ("get()", "param.get()"),
    ("with timeit():", "with plugin.timeit('inference'): pass"),
)

for what, statement in RECORDS:
    timer = timeit.Timer(statement, globals=NAMES, timer=process_time)
    seconds = min(timer.repeat(N_ROUNDS, N_RECORDS)) / N_RECORDS
    print("plugin, Python {}.{}: {}\t{:.3g}".format(sys.version_info[0], sys.version_info[1], what, seconds))
