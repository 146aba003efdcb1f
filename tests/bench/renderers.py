"""Rendering alone, without HTTP: ours beside what programs in Go use for it."""

import os
import shutil
import subprocess

from effort import effort
from paths import BUILD, HERE
from table import seconds

ROUNDS = effort(3, 1)
SOURCES = "/usr/share/gocode"  # where Debian's golang-*-dev packages put them
PROGRAM = BUILD / "tests/bench/render_go"
# DESIGN: how much better ours is, all values changed since the last page.
BUDGETS = {"prometheus": 100, "victoriametrics": 10}
OURS = "one series to the page, whole numbers"


def missing():
    """What there has to be and is not, or None."""
    if shutil.which("go") is None:
        return "no go"
    packages = ("prometheus/client_golang", "VictoriaMetrics/metrics")
    there = all(os.path.isdir(f"{SOURCES}/src/github.com/{package}") for package in packages)
    return None if there else "no Go packages"


def build():
    cache = str(BUILD / "go-cache")
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": SOURCES, "GOCACHE": cache}
    command = ["go", "build", "-o", PROGRAM, HERE / "render.go"]
    subprocess.run(command, env=environment, check=True)


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def ours():
    rows = (line.split("\t") for line in output(BUILD / "tests/bench/bench_exposition").splitlines())
    return float({what: value for what, value, *_ in rows}[OURS])


def run(table):
    table.heading("rendering 100 k series, CPU per series", theirs="in Go")
    if (what := missing()) is not None:
        table.skip("beside Go's clients", what)
        return
    build()
    for name, least in BUDGETS.items():
        rounds = [(ours(), float(output(PROGRAM, name))) for _ in range(ROUNDS)]
        table.versus(name, seconds, *zip(*rounds), least=least)
