"""How a test waits: for a condition. No test passes or fails by how long something took.

Programs that a test starts import it as well, by interpreters from 3.6 on: it needs nothing else."""

import time

# Against hangs only.
LIMIT = 120


def wait_until(condition, seconds=LIMIT, what="the condition"):
    """Asks again and again; returns the first answer that is true."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.02)


def wait_undisturbed(check):
    """Measures again until the check holds: a loaded machine may disturb one measurement, but not every one."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > end:
                raise


def pace(seconds):
    """The rate at which a client acts, or a delay that a fake adds; nothing is decided by it."""
    time.sleep(seconds)


def wait_idle(cpu_seconds, seconds=0.3):
    """Until a process that has used `cpu_seconds()` so far rests: in the given time it computes for a
    tenth of it at most. One that polls without a pause never does."""

    def is_idle():
        before = cpu_seconds()
        pace(seconds)
        return cpu_seconds() - before < seconds / 10

    wait_until(is_idle, what="a process that rests")
