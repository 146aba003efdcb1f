"""What a record costs a plugin, in C and in Python."""

from paths import HERE
from programs import printed, program
from table import seconds

# Seconds that an inc() may take.
MOST = {"plugin, C: inc()": 200e-9, "plugin, Python": 2e-6}


def run(table):
    table.heading("a plugin's own records, CPU time")
    for command in ([program("plugin")], ["/usr/bin/python3", str(HERE / "bench_plugin.py")]):
        for what, taken in printed(*command):
            most = [limit for name, limit in MOST.items() if what.startswith(name) and "inc()" in what]
            if most:
                table.line(what, seconds(float(taken)), budget=f"<= {seconds(most[0])}", good=float(taken) <= most[0])
            else:
                table.line(what, seconds(float(taken)))
