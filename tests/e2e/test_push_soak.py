"""Plugins come and go, and the daemon does not grow."""

import pathlib
import tempfile
import time

import pytest

from plugin import Plugin
from waiting import pace, wait_until

ALONE = ("--collector.disable-defaults", "--collector.push")
N_SERIES = 40  # of each plugin
SPARE_KIB = 1024  # the heap settles slowly; the series of a third of the plugins would take 40 MiB


def visit(path, number):
    """A short life: series of its own, a histogram, a rate, totals; a knob every now and then."""
    with Plugin(path, {"plugin": f"visitor{number}", "start": str(number)}) as plugin:
        lines = [
            {"metric": f"family{number % 50}_{i % 4}", "type": "gauge", "set": i, "labels": {"i": str(i)}}
            for i in range(N_SERIES)
        ]
        lines += [
            {"metric": "frames", "type": "counter", "total": 7},
            {"metric": "fps", "type": "rate", "inc": 3},
            {"metric": "inference_seconds", "type": "histogram", "observe": [0.1, 0.2, 30]},
            {"metric": "wrong", "type": "counter", "set": 1},
        ]
        if number % 20 == 0:
            lines.append({"param": "res", "type": "int", "default": 720, "min": 240, "max": 1080})
        plugin.say(*lines)
        heard = plugin.settle()
        assert [item["metric"] for item in heard if "error" in item] == ["wrong"]


def soak(waap, seconds):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        place = pathlib.Path(directory)
        flags = (f"--push.table={place}/table", f"--push.socket={place}/push.sock", "--push.ttl=1s")
        daemon = waap(*ALONE, *flags)
        begin = time.monotonic()
        sizes = []
        number = 0
        table_bytes = 0
        while time.monotonic() < begin + seconds:
            for _ in range(10):
                number += 1
                visit(place / "push.sock", number)
            page = daemon.samples()
            table_bytes = max(table_bytes, float(page["waap_push_table_bytes"]))
            sizes.append(daemon.rss_kib())
            pace(0.1)
        wait_until(lambda: float(daemon.samples()["waap_push_expired_series_total"]) > number * N_SERIES / 4)
        third = len(sizes) // 3
        middle, last = max(sizes[third : 2 * third]), max(sizes[2 * third :])
        print(f"{number} plugins, {sizes[0]} KiB, then {middle} KiB, {last} KiB; table {table_bytes:.0f}")
        assert last <= middle + SPARE_KIB, sizes
        assert table_bytes < 16 << 20


def test_plugins_come_and_go(waap):
    soak(waap, 60)


@pytest.mark.long
def test_plugins_come_and_go_for_ten_minutes(waap):
    soak(waap, 600)
