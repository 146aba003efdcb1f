#!/usr/bin/env python3
"""Counts objects in a camera's pictures, or would: detection takes as long as it would on a small board,
so the larger `res` is, the fewer frames a second. Turn it while it runs:

    curl -X PUT localhost:9090/api/v1/plugins/objcounter/params/res -d '{"value": 480}'
"""

import argparse
import random
import time

from waap import plugin

fps = plugin.metric("fps", help="Pictures looked at.")
objects = plugin.counter("objects_total", help="Objects seen.", labels=["kind"])
queue = plugin.gauge("queue_length", help="Pictures that wait.")
res = plugin.param("res", default=720, min=240, max=1080, step=120, unit="pixels", help="Lines of a picture.")
mode = plugin.param("mode", default="good", values=["fast", "good"], help="How carefully to look.")


def detect(lines, careful):
    """Takes time by the number of pixels, about 30 ms for 720 lines; returns what it has seen."""
    time.sleep((0.03 if careful else 0.015) * (lines / 720) ** 2)
    return [kind for kind in ("car", "person", "bicycle") if random.random() < lines / 2000]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long to run")
    end = time.monotonic() + parser.parse_args().seconds
    while time.monotonic() < end:
        with plugin.timeit("inference"):
            seen = detect(res.get(), mode.get() == "good")
        for kind in seen:
            objects.labels(kind=kind).inc()
        queue.set(random.randrange(4))
        fps.inc()


if __name__ == "__main__":
    main()
