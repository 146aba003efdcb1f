"""deploy/compose.yaml: its parts fit together and to what lies in the tree."""

import re

import pytest
import yaml

from running import ROOT
from test_rules import PROMETHEUS

DEPLOY = ROOT / "deploy"
GRAFANA = ROOT / "grafana"


def load(path):
    return yaml.safe_load(path.read_text())


@pytest.fixture(scope="module")
def compose():
    return load(DEPLOY / "compose.yaml")


@pytest.fixture(scope="module")
def services(compose):
    return compose["services"]


def mounts(service):
    """{place in the container: source}"""
    found = {}
    for volume in service.get("volumes", []):
        if isinstance(volume, str):
            source, target = volume.split(":")[:2]
        else:
            source, target = volume["source"], volume["target"]
        found[target] = source
    return found


def seen_at(service, path):
    """The file of the tree that a container sees under a path."""
    for target, source in mounts(service).items():
        if path.startswith(target + "/") or path == target:
            return (DEPLOY / source).resolve() / path[len(target):].lstrip("/")
    return None


def host_ports(service):
    return [int(port.split(":")[-2]) for port in service.get("ports", [])]


def test_what_is_mounted_is_there(compose, services):
    for service in services.values():
        for source in mounts(service).values():
            if source.startswith("."):
                assert (DEPLOY / source).exists(), source
            else:
                assert source.startswith("/") or source in compose["volumes"], source


def test_what_is_built_is_there(services):
    ours = [service["build"] for service in services.values() if "build" in service]
    assert len(ours) == 3
    for build in ours:
        text = (DEPLOY / build["context"] / build["dockerfile"]).read_text()
        assert f"FROM scratch AS {build['target']}\n" in text if "target" in build else text


def test_what_others_wait_for_is_there(services):
    for service in services.values():
        assert set(service.get("depends_on", [])) <= set(services)


def test_ports_are_all_different(services):
    ports = [port for service in services.values() for port in host_ports(service)]
    assert len(ports) == len(set(ports))
    assert host_ports(services["waap"]) == [9090]


def test_only_the_exporter_is_open_to_the_network(services):
    for name, service in services.items():
        if name != "waap":
            assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_the_exporter_knows_its_flags(services, run_waap):
    known = {line.split()[0] for line in run_waap("serve", "--list-settings").stdout.splitlines()} | {"demo"}
    for name in ("waap", "demo"):
        command, *flags = services[name]["command"]
        assert command == "serve"
        assert {re.match(r"--([a-z.-]+)", flag).group(1) for flag in flags} <= known


def test_the_exporter_may_do_no_more_than_it_needs(services):
    for name in ("waap", "demo"):
        assert services[name]["read_only"] and services[name]["cap_drop"] == ["ALL"]
        assert services[name]["security_opt"] == ["no-new-privileges:true"]
    root, = (volume for volume in services["waap"]["volumes"] if isinstance(volume, dict))
    assert root["read_only"] is True


def test_prometheus_finds_configuration_and_targets(services):
    assert seen_at(services["prometheus"], "/etc/prometheus/prometheus.yml") == PROMETHEUS / "prometheus.yml"
    for job in load(PROMETHEUS / "prometheus.yml")["scrape_configs"]:
        for targets in job["static_configs"]:
            for target in targets["targets"]:
                host, port = target.split(":")
                assert services[host]["image"] == "waap" and port == "9090"


def test_place_finds_prometheus_and_is_published(services):
    host, port = services["place"]["environment"]["PROMETHEUS_IP"].split(":")
    assert services[host]["ports"][0].endswith(f":{port}")
    assert host_ports(services["place"]) == [7001]


def test_grafana_finds_prometheus(services):
    assert seen_at(services["grafana"], "/etc/grafana/provisioning") == GRAFANA / "provisioning"
    source, = load(GRAFANA / "provisioning/datasources/prometheus.yaml")["datasources"]
    host, port = re.fullmatch(r"http://([a-z]+):(\d+)", source["url"]).groups()
    assert host in services and services[host]["ports"][0].endswith(f":{port}")
    scraped = load(PROMETHEUS / "prometheus.yml")["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == scraped


def test_grafana_finds_the_dashboards(services):
    provider, = load(GRAFANA / "provisioning/dashboards/waap.yaml")["providers"]
    assert seen_at(services["grafana"], provider["options"]["path"]) == GRAFANA / "dashboards"
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert seen_at(services["grafana"], home).exists()
