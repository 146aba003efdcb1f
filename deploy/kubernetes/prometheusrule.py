#!/usr/bin/env python3
"""Writes overlays/prometheusrule/rules.yaml: the rules of deploy/prometheus/rules for Prometheus' operator."""

import pathlib

import yaml

HERE = pathlib.Path(__file__).resolve().parent
RULES = HERE.parent / "prometheus/rules"
TARGET = HERE / "overlays/prometheusrule/rules.yaml"


def text():
    documents = ["# Made by deploy/kubernetes/prometheusrule.py of deploy/prometheus/rules: change those.\n"]
    for path in sorted(RULES.glob("*.yml")):
        rule = {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": f"waap-{path.stem}", "labels": {"app.kubernetes.io/name": "waap"}},
            "spec": yaml.safe_load(path.read_text()),
        }
        documents.append(yaml.safe_dump(rule, sort_keys=False, width=110))
    return "---\n".join(documents)


if __name__ == "__main__":
    TARGET.write_text(text())
