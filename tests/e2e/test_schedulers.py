"""Schedulers and autoscalers of Kubernetes find the nodes and plugins: their own requests, sent to a real Prometheus
that scrapes two simulated machines as deploy/prometheus/prometheus.yml says."""

import contextlib
import math
import re

import pytest
import yaml

from kubernetes import KUBERNETES, of_kind
from peers import PROMETHEUS_VERSIONS, Prometheus, need_program
from running import ROOT, Waap, wait_until
from test_rules import PROMETHEUS, RULES

NODES = {"nx": "jetson", "server": "dgpu"}
ADAPTER = yaml.safe_load((KUBERNETES / "autoscaling/prometheus-adapter.yaml").read_text())
# What comes last: rates of all, on both machines.
WARM_UP = " and ".join(f"count({name}) == 2" for name in (
    "plugin:inference_seconds:p95 > 0", "plugin:fps_target:ratio", "cpu_usage_max_avg_1d", "mem_usage_max_avg_1d"))


@pytest.fixture(scope="module", params=PROMETHEUS_VERSIONS)
def server(request, tmp_path_factory, waap_binary):
    place = tmp_path_factory.mktemp("schedulers")
    job, = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["scrape_configs"]
    name = job.pop("job_name")
    job["static_configs"] = []
    with contextlib.ExitStack() as stack:
        for node, demo in NODES.items():
            program = stack.enter_context(Waap(waap_binary, f"--demo={demo}", env={"XDG_RUNTIME_DIR": str(place)}))
            job["static_configs"].append({"targets": [f"127.0.0.1:{program.port}"], "labels": {"node": node}})
        binary = need_program("prometheus", request.param)
        rules = {"rule_files": [str(path) for path in RULES]}
        server = stack.enter_context(Prometheus(binary, place, 0, {name: job}, config=rules))
        wait_until(lambda: server.query(WARM_UP), 90, "rates of everything")
        yield server


def only_value(server, query):
    row, = server.query(query)
    return float(row["value"][1])


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("query", [
    'avg_over_time(clamp_min(100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle",instance="%s"}[5m])) '
    "* 100), 0)[10m:30s])",
    '100 * avg_over_time((1 - node_memory_MemAvailable_bytes{instance="%s"}'
    '/node_memory_MemTotal_bytes{instance="%s"})[10m:30s])',
], ids=["cpu", "memory"])
def test_volcano_finds_each_node(server, query, node):
    # With steps of half a minute the first one may be before the first scrape.
    query = query.replace(":30s]", ":1s]").replace("%s", node)
    wait_until(lambda: server.query(query), what=query)
    assert 0 < only_value(server, query) <= 100


@pytest.mark.parametrize("over", ["avg", "stddev"])
@pytest.mark.parametrize("name", ["instance:node_cpu:ratio", "instance:node_memory_utilisation:ratio"])
def test_trimaran_finds_each_node(server, name, over):
    rows = server.query(f"{over}_over_time({name}[15m])")
    assert {row["metric"]["instance"] for row in rows} == set(NODES)
    assert all(0 <= float(row["value"][1]) <= 1 for row in rows)


@pytest.mark.parametrize("name", ["cpu_usage_avg_5m", "cpu_usage_max_avg_1h", "cpu_usage_max_avg_1d",
                                  "mem_usage_avg_5m", "mem_usage_max_avg_1h", "mem_usage_max_avg_1d"])
def test_crane_finds_each_node(server, name):
    for node in NODES:
        assert 0 < only_value(server, f'{name}{{instance=~"{node}"}} /100') < 1


def documented_query(after):
    """The block of code behind a word in the chapter for schedulers."""
    chapter = (ROOT / "grafana/README.md").read_text().split("\n## Schedulers of Kubernetes\n")[1]
    return re.search(r"^    .*$", chapter.split(after)[1], flags=re.M).group().strip()


def test_the_descheduler_finds_each_node(server):
    rows = server.query(documented_query("LowNodeUtilization"))
    assert {row["metric"]["instance"]: 0 <= float(row["value"][1]) <= 1 for row in rows} == dict.fromkeys(NODES, True)


def rule_of(metric):
    rule, = (rule for rule in ADAPTER["rules"] if rule["name"]["as"] == metric)
    return rule


def asked_by_adapter(server, metric, resource, namespace, names):
    """{object: value}, as prometheus-adapter finds a metric, fills its template and assigns the answer."""
    rule = rule_of(metric)
    labels = {of["resource"]: label for label, of in rule["resources"]["overrides"].items()}
    found = server.api("series", **{"match[]": rule["seriesQuery"]})
    series, = {row["__name__"] for row in found}
    assert all(label in row for row in found for label in labels.values())
    matchers = [f'{labels[resource]}=~"{"|".join(names)}"']
    if namespace is not None:
        matchers.append(f'{labels["namespace"]}="{namespace}"')
    query = rule["metricsQuery"]
    for field, text in (("Series", series), ("LabelMatchers", ",".join(matchers)), ("GroupBy", labels[resource])):
        query = query.replace(f"<<.{field}>>", text)
    assert "<<" not in query
    rows = server.query(query)
    assert len(rows) == len({row["metric"][labels[resource]] for row in rows}), "two values for one object"
    return {row["metric"][labels[resource]]: float(row["value"][1]) for row in rows}


def detectors(server):
    rows = server.query('plugin:fps_target:ratio{plugin="object-detector"}')
    return {row["metric"]["pod"]: float(row["value"][1]) for row in rows}


def test_the_autoscaler_gets_a_metric_of_each_pod(server):
    """At 20 frames per second of 25 the detector wants a quarter more, so one pod becomes two."""
    hpa, = of_kind("autoscaling", "HorizontalPodAutoscaler")
    wanted, = hpa["spec"]["metrics"]
    assert wanted["type"] == "Pods"
    pods = detectors(server)
    assert pods
    target = float(wanted["pods"]["target"]["averageValue"])

    def answer():
        values = asked_by_adapter(server, wanted["pods"]["metric"]["name"], "pod", "ses", list(pods))
        return values if values.keys() == pods.keys() and all(1.1 < value < 2 for value in values.values()) else None

    values = wait_until(answer, 60, "pods that miss their target")
    ratio = sum(values.values()) / len(values) / target
    assert math.ceil(ratio) == 2
    latency = asked_by_adapter(server, "plugin_inference_p95_seconds", "pod", "ses", list(pods))
    assert latency.keys() == pods.keys() and all(0 < value < 1 for value in latency.values())
    assert not asked_by_adapter(server, wanted["pods"]["metric"]["name"], "pod", "elsewhere", list(pods))


@pytest.mark.parametrize("metric", ["node_cpu_usage_avg", "node_memory_usage_avg"])
def test_volcano_finds_each_node_by_the_adapter(server, metric):
    values = asked_by_adapter(server, metric, "node", None, [".+"])
    assert values.keys() == NODES.keys() and all(0 < value < 1 for value in values.values())


def test_plugins_metrics_carry_their_pod(server):
    names = re.findall(r"record: (plugin:\S+)", (PROMETHEUS / "rules/recording.yml").read_text())
    rows = server.query('{__name__=~"plugin:.+",plugin="object-detector"}')
    assert {row["metric"]["__name__"] for row in rows} >= set(names) - {"plugin:energy_per_frame:joules", "plugin:power:watts"}
    assert all(row["metric"]["namespace"] == "ses" and row["metric"]["pod"] and row["metric"]["container"] for row in rows)
