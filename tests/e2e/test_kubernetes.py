"""deploy/kubernetes without a cluster: kubectl puts the manifests together, their parts fit each other, waap takes its
flags and answers its probes, and every object is as the published schemas want it."""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
import yaml

from kubernetes import KUBERNETES, built, of_kind, runs_on, selects
from placing import Place
from running import ROOT
from test_rules import RULES, rules_of

sys.path.insert(0, str(KUBERNETES))
import prometheusrule  # noqa: E402

MODELS = ROOT / "build/deps/kubernetes-models"
KUSTOMIZATIONS = sorted(str(path.parent.relative_to(KUBERNETES)) for path in KUBERNETES.rglob("kustomization.yaml"))
LINUX = {"kubernetes.io/os": "linux"}
PLUGIN = {"role": "plugin"}


def load(path):
    return yaml.safe_load(path.read_text())


def pods():
    """The labels of waap's pods, with and without a GPU."""
    return [item["spec"]["template"]["metadata"]["labels"] for item in of_kind("all", "DaemonSet")]


def container(daemonset):
    one, = daemonset["spec"]["template"]["spec"]["containers"]
    return one


@pytest.fixture
def daemonset(request):
    overlay, i = request.param
    return of_kind(overlay, "DaemonSet")[i]


each_daemonset = pytest.mark.parametrize("daemonset", [("base", 0), ("overlays/gpu", 0), ("overlays/gpu", 1)],
                                         indirect=True, ids=["base", "others", "gpu"])


@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_manifests_can_be_put_together(name):
    objects = [(item["kind"], item["metadata"]["name"], item["metadata"].get("namespace")) for item in built(name)]
    assert objects and len(objects) == len(set(objects))


@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_no_file_is_forgotten(name):
    directory = KUBERNETES / name
    parts = load(directory / "kustomization.yaml")
    files = [file.split("=")[-1] for part in parts.get("configMapGenerator", []) for file in part["files"]]
    used = {*parts.get("resources", []), *(patch["path"] for patch in parts.get("patches", [])), *files}
    assert {path.name for path in directory.glob("*.yaml")} - {"kustomization.yaml"} <= used


def test_all_has_everything():
    names = [name for name in KUSTOMIZATIONS if name.startswith(("base", "overlays", "plugins"))]
    everything = {(item["kind"], item["metadata"]["name"]) for item in built("all")}
    for name in set(names) - {"base/daemonset", "overlays/gpu/nodes"}:
        assert {(item["kind"], item["metadata"]["name"]) for item in built(name)} <= everything


def test_nothing_is_without_namespace():
    for item in built("all"):
        if item["kind"] not in ("Namespace", "RuntimeClass"):
            wanted = "default" if item["metadata"]["name"] == "plugin-to-waap" else "waap"
            assert item["metadata"]["namespace"] == wanted


@each_daemonset
def test_pods_belong_to_their_daemonset(daemonset):
    labels = daemonset["spec"]["template"]["metadata"]["labels"]
    others = [other for other in of_kind("overlays/gpu", "DaemonSet")
              if other["metadata"]["name"] != daemonset["metadata"]["name"]]
    assert selects(daemonset["spec"]["selector"], labels)
    assert not [other for other in others if selects(other["spec"]["selector"], labels)]


@pytest.mark.parametrize("name", ["base", "overlays/gpu"])
@pytest.mark.parametrize("node", [{}, {"resource.gpu": "true"}, {"resource.gpu": "false"}], ids=str)
def test_every_node_has_one(name, node):
    running = [item for item in of_kind(name, "DaemonSet") if runs_on(item, {**LINUX, **node})]
    assert len(running) == 1
    nvidia = running[0]["spec"]["template"]["spec"].get("runtimeClassName") == "nvidia"
    assert nvidia == (name == "overlays/gpu" and node.get("resource.gpu") == "true")


def test_the_runtime_class_is_there():
    wanted = {item["spec"]["template"]["spec"].get("runtimeClassName") for item in of_kind("all", "DaemonSet")}
    assert wanted - {None} == {item["metadata"]["name"] for item in of_kind("all", "RuntimeClass")}


@each_daemonset
def test_mounts_and_volumes_fit(daemonset):
    spec = daemonset["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"]}
    mounts = {mount["name"]: mount for mount in container(daemonset)["volumeMounts"]}
    assert volumes.keys() == mounts.keys()
    writable = {volumes[name] for name, mount in mounts.items() if not mount.get("readOnly")}
    assert writable == {"/run/waap", "/run/waap-store"}
    # Where flags point is what is mounted.
    for flag in container(daemonset)["args"][1:]:
        name, _, value = flag.partition("=")
        if name.startswith("--path."):
            assert (value + "/").startswith(mounts["root"]["mountPath"] + "/")


@each_daemonset
def test_it_may_do_no_more_than_it_needs(daemonset):
    spec = daemonset["spec"]["template"]["spec"]
    security = container(daemonset)["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]} and security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False and security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostIPC"} & spec.keys() and "privileged" not in security
    account, = of_kind("base", "ServiceAccount")
    assert account["automountServiceAccountToken"] is False
    assert account["metadata"]["name"] == spec["serviceAccountName"]
    assert not [item for item in built("all") if "Role" in item["kind"]]


@each_daemonset
def test_waap_takes_its_flags_and_answers_its_probes(daemonset, waap):
    part = container(daemonset)
    command, *flags = part["args"]
    assert command == "serve"
    daemon = waap(*flags)
    port, = part["ports"]
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = part[name]["httpGet"]
        assert probe["port"] == port["name"]
        assert daemon.get(probe["path"]).status == 200
    assert load(ROOT / "deploy/waap.yaml")["web"]["listen_address"] == [f":{port['containerPort']}"]
    assert f'mountPath": "{load(ROOT / "deploy/waap.yaml")["push"]["socket"][0].rsplit("/", 1)[0]}"' in json.dumps(part)


@each_daemonset
def test_waap_knows_the_name_of_its_node(daemonset, waap):
    part = container(daemonset)
    variable, = part["env"]
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    # Nothing is mounted at /host here.
    flags = [flag for flag in part["args"][1:] if not flag.startswith("--path.")]
    daemon = waap(*flags, env={variable["name"]: "edge-17"})
    assert 'char_node_name="edge-17"' in daemon.get("/metrics").text


def test_the_placement_service_takes_its_arguments_and_answers_its_probes():
    deployment, = of_kind("placement", "Deployment")
    service, = of_kind("placement", "Service")
    part = container(deployment)
    assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    assert [(row["port"], row["targetPort"]) for row in service["spec"]["ports"]] == [(7001, part["ports"][0]["name"])]
    assert part["ports"][0]["containerPort"] == 7001
    command, *flags = part["args"]
    assert command == "place"
    with contextlib.closing(Place(*flags, env={row["name"]: row["value"] for row in part["env"]})) as place:
        for name in ("readinessProbe", "livenessProbe"):
            assert place.get(part[name]["httpGet"]["path"]).status == 200
        assert part["env"][0]["value"] in place.ask().text


def test_ports_and_selectors_lead_to_waap():
    port = container(of_kind("base", "DaemonSet")[0])["ports"][0]
    service, = of_kind("base", "Service")
    assert [(row["targetPort"], row["port"]) for row in service["spec"]["ports"]] == [(port["name"], 9090)]
    monitor, = of_kind("overlays/podmonitor", "PodMonitor")
    assert [row["port"] for row in monitor["spec"]["podMetricsEndpoints"]] == [port["name"]]
    for labels in pods():
        assert service["spec"]["selector"].items() <= labels.items()
        assert selects(monitor["spec"]["selector"], labels)
        # Alerts ask for this job.
        assert labels[monitor["spec"]["jobLabel"]] == "waap"


def test_plugins_reach_waap_and_nothing_else_does():
    policies = {item["metadata"]["name"]: item for item in of_kind("all", "NetworkPolicy")}
    ours, theirs = policies["waap"]["spec"], policies["plugin-to-waap"]["spec"]
    namespace, = of_kind("all", "Namespace")
    outward, = theirs["egress"]
    peer, = outward["to"]
    assert selects(theirs["podSelector"], PLUGIN)
    assert selects(peer["namespaceSelector"], {"kubernetes.io/metadata.name": namespace["metadata"]["name"]})
    assert [row["port"] for row in outward["ports"]] == [9090]
    for labels in pods():
        assert selects(peer["podSelector"], labels) and selects(ours["podSelector"], labels)
    inward, = ours["ingress"]
    assert [row for row in inward["from"] if selects(row.get("podSelector", {}), PLUGIN)]
    assert not [row for row in inward["from"] if "podSelector" not in row and not row.get("namespaceSelector")]
    assert [row["port"] for row in inward["ports"]] == ["metrics"]
    assert "Egress" in ours["policyTypes"] and "egress" not in ours


def test_scraped_series_keep_their_labels():
    monitor, = of_kind("overlays/podmonitor", "PodMonitor")
    endpoint, = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True
    *names, drop = endpoint["relabelings"]
    assert names == [{"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": label}
                     for label in ("node", "instance")]
    assert drop["action"] == "labeldrop"
    assert [label for label in ("container", "endpoint", "namespace", "pod", "node", "job", "instance")
            if re.fullmatch(drop["regex"], label)] == ["container", "endpoint", "namespace", "pod"]


def test_rules_are_those_of_prometheus():
    assert prometheusrule.TARGET.read_text() == prometheusrule.text(), "python3 deploy/kubernetes/prometheusrule.py"
    rules = [rule for item in of_kind("overlays/prometheusrule", "PrometheusRule")
             for group in item["spec"]["groups"] for rule in group["rules"]]
    assert rules == [rule for path in RULES for rule in rules_of(path)]


def test_dashboards_are_those_of_grafana():
    config, = of_kind("overlays/dashboards", "ConfigMap")
    files = {path.name: path.read_text() for path in (ROOT / "grafana/dashboards").glob("*.json")}
    assert config["data"] == files
    # What an object may hold.
    assert sum(map(len, files.values())) < 1 << 20


# Prints the numbers of the objects that their schemas refuse.
VALIDATE = """
const check = async (item, i) => {
  const {[item.kind]: Model} = await import(item.model);
  try {
    delete item.model;
    new Model(item).validate();
  } catch {
    console.log(i);
  }
};
JSON.parse(require("fs").readFileSync(0)).forEach(check);
"""


def model(item):
    """The module that describes such an object."""
    package = "@kubernetes-models/prometheus-operator" if "coreos" in item["apiVersion"] else "kubernetes-models"
    return f"{package}/{item['apiVersion']}/{item['kind']}"


def refused_by_schemas(objects):
    text = json.dumps([{**item, "model": model(item)} for item in objects])
    done = subprocess.run(["node", "-e", VALIDATE], input=text, capture_output=True, text=True, timeout=120, cwd=MODELS)
    assert done.returncode == 0, done.stderr
    return sorted(map(int, done.stdout.split()))


def refused_by_types(objects):
    """By tsc, which finds what the schemas pass over: keys that Kubernetes does not know."""
    lines = [f'import type {{I{item["kind"]} as T{i}}} from "{model(item)}"; '
             f"export const item{i}: T{i} = {json.dumps(item)};" for i, item in enumerate(objects)]
    with tempfile.TemporaryDirectory(dir=MODELS) as place:
        file = pathlib.Path(place) / "objects.mts"
        file.write_text("\n".join(lines))
        command = ["node", "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck",
                   "--target", "es2022", "--module", "nodenext", file]
        said = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=MODELS).stdout
    found = {int(line) - 1 for line in re.findall(r"objects\.mts\((\d+),", said)}
    assert bool(found) == bool(said), said
    return sorted(found)


def with_mistake(kind, key, value):
    item = json.loads(json.dumps(of_kind("all", kind)[0]))
    item["spec"][key] = value
    return item


def test_objects_are_as_published_schemas_and_types_want_them():
    if shutil.which("node") is None or not (MODELS / "node_modules/typescript").exists():
        pytest.skip("no node, or no kubernetes-models (make deps)")
    objects = built("all") + built("autoscaling") + built("placement")
    mistakes = [("DaemonSet", "template", []), ("PodMonitor", "selector", []), ("PrometheusRule", "groups", {}),
                ("Service", "ports", [{}])]
    wrong = [with_mistake(*mistake) for mistake in mistakes]
    numbers = list(range(len(objects), len(objects) + len(wrong)))
    assert refused_by_schemas(objects + wrong) == numbers
    unknown = with_mistake("DaemonSet", "updateStategy", {})
    assert refused_by_types([*objects, *wrong, unknown]) == [*numbers, numbers[-1] + 1]
