"""Dashboards, recording rules and the cookbook for schedulers, asked of a real Prometheus that scrapes a simulated
Jetson and a simulated server with graphics cards."""

import contextlib
import json
import math
import re
import sys

import pytest
import yaml

from peers import Prometheus, need_program
from promql import OF_PLUGINS, OF_PROMETHEUS, asked
from running import ROOT, Waap, wait_until
from test_readme import listed
from test_rules import PROMETHEUS, RECORDED, RULES, rules_of

sys.path.insert(0, str(ROOT / "grafana"))
import dashboards  # noqa: E402

NAMES = sorted(dashboards.DASHBOARDS)
JETSON, SERVER = "nx", "server"
BOTH = {JETSON, SERVER}
# Rows that are about one kind of machine.
ONLY = {"Jetson": {JETSON}, "Discrete GPU": {SERVER}}
VALUES = {"gpu": ".+", "container": ".+", "plugin": ".+", "__rate_interval": "15s", "__range": "1m"}
KINDS = {"heatmap", "stat", "state-timeline", "table", "timeseries"}
# What comes last: energy by container on both machines, with enough scrapes for every rate.
WARM_UP = "count(plugin:energy_per_frame:joules) == 2 and min(count_over_time(up[1m])) > 12"


def loaded(name):
    return json.loads((ROOT / "grafana/dashboards" / name).read_text())


def panels(dashboard):
    """(title of the row, panel) of each, those of collapsed rows too."""
    title = None
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            title = panel["title"]
            yield from ((title, inner) for inner in panel["panels"])
        else:
            yield title, panel


def filled(text, node):
    """A query as Grafana sends it."""
    for name, value in {**VALUES, "node": node}.items():
        text = re.sub(rf"\$(?:\{{{name}\}}|{name}\b)", value, text)
    assert "$" not in text, text
    return text


def queries():
    for name in NAMES:
        for row, panel in panels(loaded(name)):
            for target in panel["targets"]:
                where = ONLY.get(row, BOTH)
                yield pytest.param(target["expr"], where, id=f"{name}: {panel['title']}: {target['refId']}")


def cookbook():
    tutorial = (ROOT / "docs/prometheus.md").read_text().split("\n## Queries\n")[1].split("\n## ")[0]
    chapter = (ROOT / "grafana/README.md").read_text().split("\n## Queries for schedulers\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^    # .*\n(?:    .*\n)+", tutorial + chapter, flags=re.M)
    assert len(blocks) >= 10
    return [pytest.param(block, id=block.split("\n")[0].strip(" #")) for block in blocks]


def prepare(program):
    """Somebody turns the knob: with even more lines the detector stays below its target."""
    knob = "/api/v1/plugins/object-detector/params/res"
    answer = program.get(knob, method="PUT", body=b'{"value": 840}')
    assert answer.status == 200, answer.text


@pytest.fixture(scope="module")
def fleet(tmp_path_factory, waap_binary):
    """The server, once rates of everything are there."""
    place = tmp_path_factory.mktemp("fleet")
    job, = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["scrape_configs"]
    name = job.pop("job_name")
    with contextlib.ExitStack() as stack:
        job["static_configs"] = []
        for node, demo in ((JETSON, "jetson"), (SERVER, "dgpu")):
            program = stack.enter_context(Waap(waap_binary, f"--demo={demo}", env={"XDG_RUNTIME_DIR": str(place)}))
            prepare(program)
            target = {"targets": [f"127.0.0.1:{program.port}"], "labels": {"node": node}}
            job["static_configs"].append(target)
        rules = {"rule_files": [str(path) for path in RULES]}
        binary = need_program("prometheus", "2.42")
        server = stack.enter_context(Prometheus(binary, place, 0, {name: job}, config=rules))
        wait_until(lambda: server.query(WARM_UP), 90, "rates of everything")
        yield server


@pytest.mark.parametrize("name", NAMES)
def test_dashboards_are_as_their_source_says(name):
    assert (ROOT / "grafana/dashboards" / name).read_text() == dashboards.text(name), "python3 grafana/dashboards.py"


def test_no_dashboard_is_without_source():
    assert sorted(path.name for path in (ROOT / "grafana/dashboards").iterdir()) == NAMES


def check_variables(dashboard):
    first, *others = dashboard["templating"]["list"]
    assert (first["type"], first["query"], first["name"]) == ("datasource", "prometheus", "datasource")
    for variable in others:
        assert variable["type"] == "query" and variable["label"]


def check_panel(panel):
    assert panel["type"] in KINDS
    assert panel["title"] and panel["description"].endswith(".")
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert [target["refId"] for target in panel["targets"]] == list("ABCDEFGH"[:len(panel["targets"])])
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"] and defaults["thresholds"]["steps"][0]["value"] is None
    place = panel["gridPos"]
    assert 0 <= place["x"] and place["x"] + place["w"] <= 24 and place["h"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_dashboards_have_what_grafana_wants(name):
    dashboard = loaded(name)
    assert dashboard["uid"] == "waap-" + name.split(".")[0]
    assert dashboard["schemaVersion"] >= 36 and dashboard["tags"] == ["waap"] and dashboard["links"]
    check_variables(dashboard)
    everything = [panel for _, panel in panels(dashboard)]
    for panel in everything:
        check_panel(panel)
    heads = [panel for panel in dashboard["panels"] if panel["type"] == "row"]
    numbers = [panel["id"] for panel in everything + heads]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("name", NAMES)
def test_panels_do_not_overlap(name):
    cells = set()
    for _, panel in panels(loaded(name)):
        place = panel["gridPos"]
        mine = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & mine, panel["title"]
        cells |= mine


def test_links_lead_to_dashboards_and_their_variables():
    known = {loaded(name)["uid"]: {v["name"] for v in loaded(name)["templating"]["list"]} for name in NAMES}
    found = re.findall(r"/d/([a-z-]+)\?([^\"]*)", "".join(dashboards.text(name) for name in NAMES))
    assert found
    for uid, parameters in found:
        assert set(re.findall(r"var-(\w+)=", parameters)) <= known[uid]


def test_dashboards_ask_for_what_there_is(waap_binary):
    names = {row[0] for row in listed(waap_binary)} | OF_PLUGINS | OF_PROMETHEUS | RECORDED
    for query, _ in (param.values for param in queries()):
        assert asked(query) <= names, query


def numbers(fleet, query):
    """The values of an answer, without those that are none."""
    values = [float(row["value"][1]) for row in fleet.query(query)]
    return [value for value in values if not math.isnan(value)]


@pytest.mark.parametrize("query, where", queries())
def test_panels_have_data(fleet, query, where):
    assert {node for node in BOTH if numbers(fleet, filled(query, node))} >= where


def test_all_nodes_can_be_shown_at_once(fleet):
    for name in ("containers.json", "fleet.json", "plugin.json"):
        for _, panel in panels(loaded(name)):
            for target in panel["targets"]:
                assert numbers(fleet, filled(target["expr"], f"{JETSON}|{SERVER}")), panel["title"]


@pytest.mark.parametrize("name", NAMES)
def test_variables_have_values(fleet, name):
    for variable in loaded(name)["templating"]["list"][1:]:
        metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()
        values = fleet.api(f"label/{label}/values", **{"match[]": filled(metric, JETSON)})
        assert values, variable["name"]


@pytest.mark.parametrize("rule", [rule for path in RULES for rule in rules_of(path) if "record" in rule],
                         ids=lambda rule: rule["record"])
def test_rules_record(fleet, rule):
    assert numbers(fleet, rule["record"])


def test_rules_have_no_trouble(fleet):
    groups = fleet.api("rules")["groups"]
    assert {group["name"] for group in groups} >= {"nodes", "containers_and_plugins", "waap", "hardware", "plugins"}
    assert not [rule for group in groups for rule in group["rules"] if rule["health"] == "err"]


def test_nothing_but_the_missed_target_is_alarming(fleet):
    assert len(fleet.query('ALERTS{alertname="PluginBelowTarget",alertstate="pending"}')) == 2
    assert not fleet.query('ALERTS{alertstate="firing"}')


@pytest.mark.parametrize("query", cookbook())
def test_cookbook_answers(fleet, query):
    assert numbers(fleet, query)
