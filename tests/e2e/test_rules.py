"""The rules under deploy/prometheus, checked and run by promtool, and their names by our own list."""

import pathlib
import re

import pytest
import yaml

from peers import PROMETHEUS_VERSIONS, promtool
from promql import OF_PLUGINS, OF_PROMETHEUS, asked
from test_readme import listed

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy/prometheus"
RULES = sorted((PROMETHEUS / "rules").glob("*.yml"))
TESTS = sorted((ROOT / "tests/rules").glob("*.yml"))

every_version = pytest.mark.parametrize("version", PROMETHEUS_VERSIONS)


def judge(version, *arguments):
    code, said = promtool(version, *arguments)
    assert code == 0, said


def rules_of(path):
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


RECORDED = {rule["record"] for path in RULES for rule in rules_of(path) if "record" in rule}


@pytest.mark.parametrize("query, names", [
    ("up", {"up"}),
    ('sum by (node, le) (rate(a_total{b="c"}[1m])) / on (node) group_left (d) e:f:g', {"a_total", "e:f:g"}),
    ('label_replace(a{x="b(c) or d"}, "e", "$1", "f", "") unless h offset 15m', {"a", "h"}),
    ("a # b\n  > 2e3 and on (node) (c or d) == bool 1", {"a", "c", "d"}),
])
def test_names_in_queries_are_found(query, names):
    assert asked(query) == names


@every_version
def test_configuration_is_sound(version):
    judge(version, "check", "config", PROMETHEUS / "prometheus.yml")


def test_every_target_is_a_node_that_keeps_its_labels():
    for job in yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["scrape_configs"]:
        assert job["honor_labels"] is True
        assert all(targets["labels"]["node"] for targets in job["static_configs"])
        assert job["relabel_configs"] == [{"source_labels": ["node"], "target_label": "instance"}]


@every_version
@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_rules_are_sound(version, path):
    judge(version, "check", "rules", path)


@every_version
@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_rules_do_what_they_should(version, path, tmp_path):
    """Prometheus 3 rounds otherwise in the last digit, and has a word for not minding that."""
    if version == "3":
        tests = path.read_text().replace("../../deploy", str(ROOT / "deploy"))
        path = tmp_path / path.name
        path.write_text("fuzzy_compare: true\n" + tests)
    judge(version, "test", "rules", path)


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_every_rule_has_its_test(path):
    tests = yaml.safe_load((ROOT / "tests/rules" / path.name).read_text())["tests"]
    tested = {case["alertname"] for test in tests for case in test.get("alert_rule_test", [])}
    for test in tests:
        for case in test.get("promql_expr_test", []):
            tested |= asked(case["expr"])
    # A rule that others are made of is tested by them.
    used = set().union(*(asked(rule["expr"]) for rule in rules_of(path)))
    assert {rule.get("record") or rule["alert"] for rule in rules_of(path)} <= tested | used


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_rules_ask_for_what_there_is(path, waap_binary):
    names = {row[0] for row in listed(waap_binary)} | OF_PLUGINS | OF_PROMETHEUS | RECORDED
    for rule in rules_of(path):
        assert asked(rule["expr"]) and asked(rule["expr"]) <= names, rule


def test_alerts_say_what_is_wrong():
    for rule in rules_of(PROMETHEUS / "rules/alerts.yml"):
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert "$labels.node" in rule["annotations"]["summary"]
        assert rule["annotations"]["description"].endswith(".")


def test_the_contract_is_complete():
    """The table for schedulers has every series that recording.yml makes, and no other."""
    section = (ROOT / "grafana/README.md").read_text().split("\n## What a scheduler may rely on\n")[1]
    rows = [line for line in section.split("\n## ")[0].splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([a-z]+:[a-z0-9_]+:[a-z0-9]+)`", row)}
    recorded = {rule["record"] for rule in rules_of(PROMETHEUS / "rules/recording.yml")}
    assert named == recorded
