"""The dashboards, as literals of the types that Grafana publishes (@grafana/schema), checked by tsc:
what Grafana does not know is an error, and so is what it misses."""

import json
import re
import shutil
import subprocess

import pytest

from running import ROOT
from test_dashboards import NAMES, loaded, panels

PLACE = ROOT / "build/deps/grafana-schema"
RAW = f"{PLACE}/node_modules/@grafana/schema/dist/esm/raw"
TSC = PLACE / "node_modules/typescript/bin/tsc"

# Where the options of a kind of panel are described.
KINDS = {
    "heatmap": ("Heatmap", "heatmap"),
    "stat": ("Stat", "stat"),
    "state-timeline": ("StateTimeline", "statetimeline"),
    "table": ("Table", "table"),
    "timeseries": ("TimeSeries", "timeseries"),
}
# Enumerations stand in JSON by their values. Of a panel's options all have defaults.
HEADER = """
type Json<T> = T extends string ? `${T}` : T extends (infer U)[] ? Json<U>[]
    : T extends object ? {[K in keyof T]: Json<T[K]>} : T;
type Part<T> = T extends (infer U)[] ? Part<U>[] : T extends object ? {[K in keyof T]?: Part<T[K]>} : T;
"""


def imports():
    yield f'import type {{Dashboard, Panel, RowPanel}} from "{RAW}/dashboard/x/dashboard_types.gen";'
    for name, directory in KINDS.values():
        file = f"{RAW}/composable/{directory}/panelcfg/x/{name}PanelCfg_types.gen"
        yield f'import type * as {name} from "{file}";'
    yield HEADER


def literals(name):
    """(type, value) of the dashboard, of its rows, and of its panels with their options."""
    dashboard = loaded(name)
    yield "Json<Dashboard>", {**dashboard, "panels": []}
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield "Json<RowPanel>", {**panel, "panels": []}
    for _, panel in panels(dashboard):
        kind = KINDS[panel["type"]][0]
        yield "Json<Panel>", panel
        yield f"Json<Part<{kind}.Options>>", panel["options"]
        if panel["fieldConfig"]["defaults"]["custom"]:
            yield f"Json<Part<{kind}.FieldConfig>>", panel["fieldConfig"]["defaults"]["custom"]


def complaints(file, values):
    """[(type, value, what tsc has to say about it)]"""
    lines = "\n".join(imports()).split("\n")
    before = len(lines)
    lines += [f"export const v{i}: {kind} = {json.dumps(value)};" for i, (kind, value) in enumerate(values)]
    file.write_text("\n".join(lines) + "\n")
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--target", "es2022"]
    command = ["node", TSC, *options, "--moduleResolution", "bundler", file]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    found = re.findall(r"^\S*\((\d+),\d+\): (error .*)", said, flags=re.M)
    assert bool(found) == bool(said), said
    return [(*values[int(line) - before - 1], text) for line, text in found]


# They show that tsc would find others.
MISTAKES = [
    ("Json<Dashboard>", {**loaded("fleet.json"), "panels": [], "grafTooltip": 1}),
    ("Json<Part<Stat.Options>>", {"graphMode": "mountain"}),
    ("Json<RowPanel>", {"type": "row", "title": "no number"}),
]


def test_grafana_knows_all_of_it(tmp_path):
    if shutil.which("node") is None or not TSC.exists():
        pytest.skip("no node, @grafana/schema and typescript on this machine (make deps)")
    values = [value for name in NAMES for value in literals(name)]
    found = complaints(tmp_path / "dashboards.ts", values + MISTAKES)
    assert [(kind, value) for kind, value, _ in found] == MISTAKES, found
