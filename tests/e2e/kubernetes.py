"""The manifests of deploy/kubernetes, put together as kubectl does it."""

import functools
import subprocess

import yaml

from peers import need_program
from running import ROOT

KUBERNETES = ROOT / "deploy/kubernetes"
DAEMONSET = KUBERNETES / "base/daemonset/daemonset.yaml"


@functools.lru_cache(maxsize=None)
def built(name):
    """The objects of deploy/kubernetes/NAME."""
    command = [need_program("kubectl"), "kustomize", KUBERNETES / name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def of_kind(name, kind):
    return [item for item in built(name) if item["kind"] == kind]


def selects(selector, labels):
    """Whether a selector of labels means somebody who has these."""
    if not selector.get("matchLabels", {}).items() <= labels.items():
        return False
    return all(matches(expression, labels) for expression in selector.get("matchExpressions", []))


def matches(expression, labels):
    found = labels.get(expression["key"]) in expression["values"]
    return {"In": found, "NotIn": not found}[expression["operator"]]


def runs_on(daemonset, node):
    """Whether the scheduler would start it on a node with these labels."""
    spec = daemonset["spec"]["template"]["spec"]
    affinity = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = affinity["nodeSelectorTerms"] if affinity else [{}]
    return spec["nodeSelector"].items() <= node.items() and any(selects(term, node) for term in terms)
