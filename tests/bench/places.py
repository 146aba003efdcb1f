"""Placing a model on a thousand nodes that a real Prometheus knows."""

import http.server
import re
import tempfile
import threading
import time

from measure import running
from peers import Prometheus, find_program
from placing import PREDICTOR, Place
from running import wait_until
from table import seconds

N_NODES = 1000
N_REQUESTS = 20
MODES = ("idle", "iowait", "irq", "nice", "softirq", "steal", "system", "user")


class Nodes(http.server.BaseHTTPRequestHandler):
    """One exporter that speaks for all nodes, each of four CPUs."""

    begin = time.monotonic()

    def do_GET(self):
        passed = time.monotonic() - self.begin
        lines = []
        for i in range(N_NODES):
            of = f'node="n{i}",instance="n{i}:9100"'
            busy = i % 97 / 100
            shares = dict.fromkeys(MODES, 0) | {"idle": 1 - busy, "user": busy}
            lines += [f'node_cpu_seconds_total{{{of},cpu="{cpu}",mode="{mode}"}} {share * passed}'
                      for cpu in range(4) for mode, share in shares.items()]
            root = f'{{{of},fstype="ext4",mountpoint="/"}}'
            lines += [f"node_filesystem_avail_bytes{root} {6e9 + i}", f"node_filesystem_size_bytes{root} 1e10"]
            model = "Raspberry Pi 4 Model B" if i % 2 else "NVIDIA Jetson Xavier NX"
            lines.append(f'char_node_device_model{{{of},char_node_name="n{i}",char_node_class="Computer",'
                         f'char_node_uuid="u{i}",char_node_device_model_name="{model}"}} 1')
        body = "\n".join(lines).encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def spent(service, what):
    page = service.get("/metrics").text
    return float(re.search(rf"^waap_place_{what}_seconds_total (.*)$", page, re.M)[1])


def measure(table, service):
    wait_until(lambda: service.ask().status == 200, 60, "an answer")
    before = {what: spent(service, what) for what in ("compute", "query")}
    for _ in range(N_REQUESTS):
        service.ask()
    compute, query = ((spent(service, what) - before[what]) / N_REQUESTS for what in ("compute", "query"))
    table.limit("compute per request", seconds, compute, query, 10e-3)
    table.limit("with Prometheus", seconds, compute + query, query, 50e-3)


def run(table):
    table.heading(f"waap place, {N_NODES} nodes", theirs="Prometheus")
    binary = find_program("prometheus", "2.42")
    if binary is None or not PREDICTOR.exists():
        table.skip("compute per request", "no prometheus 2.42 or no libxgboost")
        return
    exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nodes)
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        jobs = {"nodes": {"honor_labels": True, "scrape_interval": "5s", "scrape_timeout": "5s"}}
        server = Prometheus(binary, directory, exporter.server_port, jobs)
        with running(server), running(Place(f"--prometheus.url={server.url}")) as service:
            measure(table, service)
    exporter.shutdown()
