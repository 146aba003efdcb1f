"""Records of runs (samples.jsonl) as `waap run` writes them, with known content."""

import json
import math
import random

BEGAN = 1750000000.0
MIB = 1 << 20

SERIES = {
    "cpu.user_seconds": ("counter", "s", "CPU time in user mode."),
    "cpu.system_seconds": ("counter", "s", "CPU time in the kernel."),
    "memory.bytes": ("gauge", "B", "Working set."),
    "gpu.utilization_ratio": ("gauge", "ratio", "Share of time the GPU was busy."),
    "gpu.memory_bytes": ("gauge", "B", "Memory on the GPU."),
    "power.watts": ("gauge", "W", "Power of the board."),
    "energy.joules": ("counter", "J", "Energy of the board."),
    'temperature.celsius{zone="cpu"}': ("gauge", "celsius", "Temperature."),
    'temperature.celsius{zone="gpu"}': ("gauge", "celsius", "Temperature."),
    "throttled.ratio": ("gauge", "ratio", "Share of time the clocks were held back."),
    "io.read_bytes": ("counter", "B", "Read from disks."),
    "app.fps_total": ("counter", "", "Frames."),
    "app.fps": ("gauge", "", "Frames per second."),
    "app.cars": ("gauge", "", "Cars in the picture."),
    'app.inference_seconds{le="0.02"}': ("histogram_bucket", "s", "Time of one inference."),
    'app.inference_seconds{le="0.04"}': ("histogram_bucket", "s", ""),
    'app.inference_seconds{le="0.08"}': ("histogram_bucket", "s", ""),
    'app.inference_seconds{le="+Inf"}': ("histogram_bucket", "s", ""),
    "app.inference_seconds_sum": ("histogram_sum", "s", ""),
    "app.inference_seconds_count": ("histogram_count", "", ""),
}


class Record:
    """Writes a record line by line; the clock runs as samples are taken."""

    def __init__(self, directory, gates=(), interval=0.1, application="objcounter", environment=None):
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.file = open(directory / "samples.jsonl", "w", encoding="utf-8")
        self.t = 0.0
        self.interval = interval
        self.write(
            "run",
            format="waap-run/1",
            began=BEGAN,
            waap="0.1.0",
            application={"name": application, "version": "1.4.2", "file": "sage.yaml"},
            environment={"board": "Jetson Xavier NX", "power_mode": "MODE_15W_6CORE", "kernel": "5.10.120",
                         **(environment or {})},
            settings={"interval": interval},
            gates=list(gates),
        )
        for key, (kind, unit, text) in SERIES.items():
            self.write("series", key=key, type=kind, unit=unit, help=text)

    def write(self, kind, **fields):
        self.file.write(json.dumps({"kind": kind, **fields}) + "\n")

    def times(self):
        return {"t": round(self.t, 6), "at": round(BEGAN + self.t, 6)}

    def target(self, name, **fields):
        self.write("target", target=name, **{"args": [], "command": [], "timeout": 60, "repeats": 1, "warmup": 0, **fields})

    def phase(self, target, run, phase):
        self.write("phase", target=target, run=run, phase=phase, **self.times())

    def sample(self, target, run, values):
        self.t += self.interval
        self.write("sample", target=target, run=run, **self.times(), values=values)

    def end(self, target, run, wall, **fields):
        self.write(
            "end", target=target, run=run, **self.times(), wall_seconds=wall,
            **{"exit": 0, "signal": 0, "timed_out": False, "stopped_by": "itself", **fields},
        )

    def finish(self, interrupted=False):
        self.write("finished", **self.times(), interrupted=interrupted)
        self.file.close()
        return self.directory


class Model:
    """An application on a small board: its counters, with a little noise that is the same every time."""

    def __init__(self, fps=20.0, cpu=1.6, memory=400 * MIB, gpu=0.55, watts=9.0, noise=0.02, seed=1):
        self.fps, self.cpu, self.memory, self.gpu, self.watts = fps, cpu, memory, gpu, watts
        self.random = random.Random(seed)
        self.noise = noise
        self.user = self.system = self.joules = self.frames = self.read = 0.0
        self.heat = 41.0
        self.observed = [0, 0, 0, 0]
        self.sum = 0.0

    def about(self, value):
        return value * (1 + self.noise * self.random.gauss(0, 1))

    def sample(self, dt, busy):
        """The values after `dt` more seconds, idle or busy."""
        watts = self.about(self.watts if busy else 4.0)
        self.joules += watts * dt
        self.heat += ((62 if busy else 41) - self.heat) * min(1, dt / 25)
        values = {
            "power.watts": round(watts, 4),
            "energy.joules": round(self.joules, 5),
            'temperature.celsius{zone="cpu"}': round(self.heat, 1),
            'temperature.celsius{zone="gpu"}': round(self.heat - 2.5, 1),
            "throttled.ratio": 1.0 if self.heat > 60 else 0.0,
            "gpu.utilization_ratio": round(min(1, max(0, self.about(self.gpu))) if busy else 0.0, 3),
        }
        if busy:
            values.update(self.application(dt))
        return values

    def application(self, dt):
        self.user += self.about(self.cpu * 0.85) * dt
        self.system += self.about(self.cpu * 0.15) * dt
        before = int(self.frames)
        self.frames += self.about(self.fps) * dt
        self.read += 4096 * dt
        for _ in range(before, int(self.frames)):
            seconds = min(0.2, math.exp(self.random.gauss(math.log(0.6 / self.fps), 0.25)))
            self.sum += seconds
            for i, bound in enumerate((0.02, 0.04, 0.08, math.inf)):
                self.observed[i] += seconds <= bound
        buckets = dict(zip(("0.02", "0.04", "0.08", "+Inf"), self.observed))
        return {
            "cpu.user_seconds": round(self.user, 5),
            "cpu.system_seconds": round(self.system, 5),
            "memory.bytes": round(self.about(self.memory)),
            "gpu.memory_bytes": 210 * MIB,
            "io.read_bytes": round(self.read),
            "app.fps_total": int(self.frames),
            "app.fps": round(self.about(self.fps), 2),
            "app.cars": self.random.randint(0, 9),
            **{f'app.inference_seconds{{le="{le}"}}': n for le, n in buckets.items()},
            "app.inference_seconds_sum": round(self.sum, 6),
            "app.inference_seconds_count": self.observed[-1],
        }


def record_run(record, target, run, model, seconds, baseline=2.0, phase="run", **end):
    """One run: baseline, the application, a moment of cool-down."""
    dt = record.interval

    def samples(length, busy):
        for _ in range(round(length / dt)):
            record.sample(target, run, model.sample(dt, busy))

    if baseline:
        record.phase(target, run, "baseline")
        samples(baseline, False)
    record.phase(target, run, phase)
    samples(seconds, True)
    fields = {"user_seconds": round(model.user, 5), "system_seconds": round(model.system, 5),
              "peak_memory_bytes": round(model.memory * 1.1), "peak_memory_source": "memory.peak",
              "overhead_seconds": 0.002 * seconds, "frames": int(model.frames)}
    record.end(target, run, seconds, **{**fields, **end})
    record.phase(target, run, "cooldown")
    samples(1.0, False)


def make_record(directory, targets=("cpu",), repeats=3, warmup=0, seconds=10.0, gates=(), seed=1, knobs=None,
                interval=0.1, environment=None, **model):
    """A whole record; `knobs` gives the knobs of a target of a sweep, `model` what Model takes or, by target, a dict."""
    record = Record(directory, gates, interval, environment=environment)
    for number, target in enumerate(targets):
        more = {"knobs": knobs[target]} if knobs else {}
        record.target(target, repeats=repeats, warmup=warmup, args=["--input", "sample.mp4"], **more)
        for run in range(1, warmup + repeats + 1):
            options = {name: value[target] if isinstance(value, dict) else value for name, value in model.items()}
            one = Model(seed=seed * 1000 + number * 100 + run, **options)
            record_run(record, target, run, one, seconds, phase="warmup" if run <= warmup else "run")
    return record.finish()
