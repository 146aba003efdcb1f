"""Reading the characteristics of a model of half a gigabyte, beside Debian's python3-onnx."""

import statistics
import subprocess
import tempfile

import paths
from effort import effort
from table import mebibytes, seconds

ROUNDS = effort(9, 1)
OFFICIAL = "import onnx, sys; onnx.load(sys.argv[1])"


# A child's peak begins with what its parent holds, so the parent is a small one.
MEASURE = """
import os, subprocess, sys
program = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(program.pid, 0)
program.returncode = os.waitstatus_to_exitcode(status)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
sys.exit(program.returncode)
"""


def cost(*command):
    """CPU seconds and bytes that a program took from its start to its end."""
    small = ["/usr/bin/python3", "-c", MEASURE, *command]
    done = subprocess.run(small, stdout=subprocess.PIPE, text=True, check=True)
    cpu, memory = done.stdout.split()
    return float(cpu), int(memory)


def run(table):
    table.heading("waap model, 550 MB", theirs="python")
    try:
        import onnx_models
    except ImportError:
        table.skip("CPU per model, start of the program included", "no python3-onnx")
        return
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx_models.write_large(onnx_models.vgg16(), file.name)
        ours = [cost(paths.BUILD / "exporter/waap", "model", file.name)
                for _ in range(ROUNDS)]
        theirs = cost("/usr/bin/python3", "-c", OFFICIAL, file.name)
    taken = statistics.median(cpu for cpu, _ in ours)
    table.limit("CPU per model, start of the program included", seconds, taken, theirs[0], 10e-3)
    peak = max(memory for _, memory in ours)
    table.limit("peak memory", mebibytes, peak, theirs[1], 32 << 20)
