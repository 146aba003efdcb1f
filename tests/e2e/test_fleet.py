"""deploy/fleet with the real programs: nothing is lost while a node is offline, rules and discovery work."""

import contextlib
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
import urllib.parse

import pytest
import yaml

from fleet import FLEET, Agent, Central, Link, Vmagent, Vmalert, settings
from kubernetes import DAEMONSET
from peers import PROMETHEUS_VERSIONS, Prometheus, need_program, promtool
from running import ROOT, wait_until
from test_dashboards import JETSON, SERVER, WARM_UP, cookbook, filled, prepare, queries
from test_rules import RECORDED, RULES, rules_of

sys.path.append(str(ROOT / "tests/bench"))
import fleet_sizing  # noqa: E402

APPENDED = "prometheus_agent_samples_appended_total"
SCRAPES = "prometheus_target_interval_length_seconds_count"
# Less than one scrape: what waits has to wait on disk.
SMALL = {"capacity": 200, "max_samples_per_send": 100, "max_shards": 1}
NODE = settings("node/prometheus.default")[0]["NODE"]


@pytest.fixture
def targets(waap, tmp_path):
    node = waap("--demo", env={"XDG_RUNTIME_DIR": str(tmp_path)})
    assert node.get("/metrics/job/backup/instance/top", method="PUT", body=b"pushed 1\n").status == 200
    return [(f"127.0.0.1:{node.port}", {})]


def stored(central):
    return sum(len(stamps) for _, stamps in central.series())


def ups(central):
    """Time stamps of the scrapes of waap."""
    found = central.series('up{job="waap"}')
    return found[0][1] if found else []


def check_names(central):
    """Every series has its node's name, also as `instance` unless it has one of its own."""
    assert {labels["node"] for labels, _ in central.series()} == {NODE}
    assert {labels["instance"] for labels, _ in central.series('{job="waap"}')} == {NODE}
    assert {labels["instance"] for labels, _ in central.series("pushed")} == {"top"}


def offline(targets, tmp_path, started, scrapes, restart=False, version="2.42"):
    """Cuts the link for some scrapes; all that the agent has ever taken has to be in the store afterwards."""
    central = started(Central(tmp_path))
    link = started(Link(central.port))
    agent = started(Agent(tmp_path, central, link.port, targets, version=version, queue=SMALL))
    wait_until(lambda: len(ups(central)) > 2, what="the first samples")

    link.cut()
    began = agent.number(SCRAPES)
    wait_until(lambda: agent.number("prometheus_remote_storage_samples_pending") > 0, what="the queue")
    before = len(ups(central))
    if restart:
        central.stop(60)
        central = started(Central(tmp_path, central.port))
    # Two jobs, each scraped once a second.
    wait_until(lambda: agent.number(SCRAPES) - began >= 2 * scrapes, 3 * scrapes + 20, "scrapes without a link")
    # What had arrived may take a while to be seen.
    assert len(ups(central)) < before + scrapes / 2, "the link was not cut"

    link.mend()
    agent.stop_scraping()
    taken = agent.number(APPENDED)
    wait_until(lambda: stored(central) >= taken, what="all that was taken")
    assert stored(central) == taken == agent.number(APPENDED)
    assert len(ups(central)) >= before + scrapes
    check_names(central)


def test_no_sample_is_lost_in_ten_seconds(targets, tmp_path, started):
    offline(targets, tmp_path, started, 10)


@pytest.mark.long
def test_no_sample_is_lost_in_a_minute(targets, tmp_path, started):
    offline(targets, tmp_path, started, 60, restart=True)


@pytest.mark.long
@pytest.mark.parametrize("version", PROMETHEUS_VERSIONS[1:])
def test_no_sample_is_lost_by_later_versions(targets, tmp_path, started, version):
    offline(targets, tmp_path, started, 10, version=version)


@pytest.mark.long
def test_vmagent_keeps_what_waits_when_it_is_killed(targets, tmp_path, started):
    central = started(Central(tmp_path))
    link = started(Link(central.port))
    agent = started(Vmagent(tmp_path, central, link.port, targets))
    wait_until(lambda: len(ups(central)) > 2, what="the first samples")
    scraped = 'vm_promscrape_scrapes_total{status_code="200"}'
    link.cut()
    before, began = len(ups(central)), int(agent.samples()[scraped])
    # Two jobs; in the twentieth second the queue on disk holds all but the last few.
    wait_until(lambda: int(agent.samples()[scraped]) - began >= 40, what="scrapes without a link")
    taken = (int(agent.samples()[scraped]) - began) // 2
    agent.stop(signal=9)
    agent = started(Vmagent(tmp_path, central, link.port, targets))
    link.mend()
    wait_until(lambda: len(ups(central)) >= before + taken - 5, what="what waited")
    check_names(central)


def test_flags_agree():
    """The three files of a node and the three of the central store name the same places and secrets."""
    _, flags = settings("node/prometheus.default")
    hours = dict(re.findall(r"--storage.agent.([a-z.-]+)=(\d+)h", " ".join(flags)))
    assert int(hours["wal-truncate-frequency"]) >= int(hours["retention.max-time"])
    vmagent, flags = settings("node/vmagent.default")
    remote, = yaml.safe_load((FLEET / "node/prometheus.yml").read_text())["remote_write"]
    assert vmagent["remoteWrite_label"] == f"node={NODE}"
    assert yaml.safe_load((FLEET / "node/vmagent-relabel.yml").read_text()) == remote["write_relabel_configs"]
    assert "-remoteWrite.relabelConfig=/etc/prometheus/vmagent-relabel.yml" in flags
    assert f"-remoteWrite.url={remote['url']}" in flags
    assert f"-remoteWrite.basicAuth.passwordFile={remote['basic_auth']['password_file']}" in flags
    central, flags = settings("central/victoria-metrics.default")
    port = urllib.parse.urlsplit(remote["url"]).port
    assert f"-httpListenAddr=:{port}" in flags and f"-httpAuth.username={remote['basic_auth']['username']}" in flags
    vmalert, flags = settings("central/vmalert.default")
    assert set(vmalert.values()) == set(central.values())
    assert f"-datasource.url=http://localhost:{port}" in flags


@pytest.mark.parametrize("path", ["node/vmagent.service", "central/vmalert.service"])
def test_units_start_what_the_settings_are_for(path, tmp_path):
    unit = (FLEET / path).read_text()
    name = path.split("/")[1].split(".")[0]
    assert f"EnvironmentFile=/etc/default/{name}\nExecStart=/usr/bin/{name} $ARGS\n" in unit
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here (package systemd)")
    file = tmp_path / f"{name}.service"
    file.write_text(unit.replace(f"/usr/bin/{name}", str(need_program(name))))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", file], capture_output=True, text=True, timeout=60)
    assert name not in done.stderr


def test_vmalert_takes_the_rules():
    _, flags = settings("central/vmalert.default")
    assert "-rule=/etc/waap/rules/*.yml" in flags
    command = [need_program("vmalert"), "-dryRun", f"-rule={ROOT / 'deploy/prometheus/rules'}/*.yml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def answers(central, query):
    """Whether the store answers with a number."""
    return [row for row in central.query(query) if row["value"][1] != "NaN"]


@pytest.mark.long
def test_rules_dashboards_and_queries_work_with_the_central_store(waap, tmp_path, started):
    """As with Prometheus: a Jetson and a server with cards, rules by vmalert, every panel, every query of the cookbook."""
    targets = []
    for node, kind in ((JETSON, "jetson"), (SERVER, "dgpu")):
        program = waap(f"--demo={kind}", env={"XDG_RUNTIME_DIR": str(tmp_path)})
        prepare(program)
        targets.append((f"127.0.0.1:{program.port}", {"node": node}))
    central = started(Central(tmp_path))
    started(Agent(tmp_path, central, central.port, targets))
    vmalert = started(Vmalert(central))
    wait_until(lambda: answers(central, WARM_UP), 120, "rates of everything")
    groups = json.loads(vmalert.get("/api/v1/rules").body)["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) == sum(len(rules_of(path)) for path in RULES)
    assert not [rule for rule in rules if rule["lastError"]]
    assert not [name for name in RECORDED if not answers(central, name)]
    asked = [(filled(query, node), node) for query, where in (panel.values for panel in queries()) for node in where]
    asked += [(query, "") for query, in (recipe.values for recipe in cookbook())]
    assert not [(query, node) for query, node in asked if not answers(central, query)]


# Debian 12 builds Prometheus 2.42 without Kubernetes' discovery.
@pytest.mark.parametrize("path, version", [
    (path, version) for path in ("discovery/files.yml", "discovery/kubernetes.yml", "node/prometheus.yml")
    for version in PROMETHEUS_VERSIONS if (path, version) != ("discovery/kubernetes.yml", "2.42")])
def test_configurations_are_sound(path, version, tmp_path):
    config = yaml.safe_load((FLEET / path).read_text())
    for job in config["scrape_configs"]:
        for files in job.get("file_sd_configs", []):
            files["files"] = [str(FLEET / "discovery" / name) for name in files["files"]]
    for remote in config.get("remote_write", []):
        remote["basic_auth"]["password_file"] = str(tmp_path)
    file = tmp_path / "prometheus.yml"
    file.write_text(json.dumps(config))
    code, said = promtool(version, "check", "config", *["--agent"] * ("remote_write" in config), file)
    assert code == 0, said


class Cluster(http.server.BaseHTTPRequestHandler):
    """As much of an API server as discovery asks: a list of pods, of which nothing ever changes."""

    pods = []

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        wanted = dict(pair.split("=") for pair in query.get("labelSelector", [""])[0].split(",") if pair)
        found = [pod for pod in self.pods if wanted.items() <= pod["metadata"]["labels"].items()]
        body = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": found}
        self.send_response(200 if url.path == "/api/v1/pods" else 404)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        if "watch" in query:
            self.server.over.wait()
        else:
            self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def cluster(*pods):
    handler = type("Handler", (Cluster,), {"pods": pods})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.over = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


def pod(name, node, port, labels=None, phase="Running"):
    """A pod as the DaemonSet makes it, with waap on another port."""
    template = yaml.safe_load(DAEMONSET.read_text())["spec"]["template"]
    container, = template["spec"]["containers"]
    ports = [{**row, "protocol": "TCP", "containerPort": port} for row in container["ports"]]
    return {"metadata": {"name": name, "namespace": "waap", "uid": name,
                         "labels": labels or template["metadata"]["labels"]},
            "spec": {"nodeName": node, "containers": [{"name": "waap", "image": "waap", "ports": ports}]},
            "status": {"phase": phase, "podIP": "127.0.0.1", "hostIP": "127.0.0.1"}}


def test_nodes_are_found_in_files_and_in_kubernetes(waap, tmp_path, started):
    port = waap().port
    pods = [pod("waap-1", "edge-21", port), pod("waap-2", "edge-22", port, phase="Failed"),
            pod("other", "edge-21", port, labels={"app": "other"})]
    # Of the example's two nodes one is there.
    nodes = (FLEET / "discovery/nodes/chicago.yml").read_text()
    (tmp_path / "chicago.yml").write_text(nodes.replace("edge-17:9090", f"127.0.0.1:{port}"))
    files, = yaml.safe_load((FLEET / "discovery/files.yml").read_text())["scrape_configs"]
    files["file_sd_configs"][0]["files"] = [str(tmp_path / "*.yml")]
    kubernetes, = yaml.safe_load((FLEET / "discovery/kubernetes.yml").read_text())["scrape_configs"]
    kubernetes["kubernetes_sd_configs"][0]["api_server"] = started(cluster(*pods))
    jobs = {name: {**job, "job_name": name, "static_configs": []}
            for name, job in (("files", files), ("kubernetes", kubernetes))}
    (tmp_path / "server").mkdir()
    server = started(Prometheus(need_program("prometheus", "2.53"), tmp_path / "server", 0, jobs))

    def up(job):
        rows = server.query(f'up{{job="{job}"}}')
        assert all(row["metric"]["instance"] == row["metric"]["node"] for row in rows)
        return {row["metric"]["node"]: row["value"][1] for row in rows}

    wait_until(lambda: up("files") == {"edge-17": "1", "edge-18": "0"}, what="the nodes of the files")
    wait_until(lambda: up("kubernetes") == {"edge-21": "1"}, what="the pods")


def numbers_of(row):
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", " ".join(row))]


def test_the_sizing_table_follows_from_what_was_measured():
    text = (ROOT / "deploy/README.md").read_text().split("<!-- sizing begin -->\n")[1].split("<!-- sizing end -->")[0]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    measured = {name: numbers_of(row[:1])[0] for name, row in zip(("wire", "logged", "stored", "cpu", "memory"), shown[3:])}
    found = {**measured, "series": [int(cell) for cell in shown[2][1:]], "cpu": measured["cpu"] / 1e6,
             "memory": measured["memory"] * 1e3, "idle": 0}
    for mine, theirs in zip(fleet_sizing.rows(found), shown, strict=True):
        assert numbers_of(mine) == pytest.approx(numbers_of(theirs), rel=0.05), theirs
