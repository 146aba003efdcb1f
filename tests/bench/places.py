"""Placing a model on a thousand nodes that a real Prometheus knows."""

import http.server
import tempfile
import threading

from effort import effort
from measure import cpu_seconds, running
from peers import Prometheus, find_program
from placing import PREDICTOR, Place
from running import wait_until
from table import seconds

N_NODES = effort(1000, 10)
N_REQUESTS = effort(20, 1)
INTERVAL = effort("5s", "1s")
LOAD = "--query.load=100 * node:cpu_utilization:ratio"


class Nodes(http.server.BaseHTTPRequestHandler):
    """One exporter that speaks for all nodes, and for the recording rule of their load."""

    def do_GET(self):
        lines = []
        for i in range(N_NODES):
            of = f'node="n{i}",instance="n{i}:9100"'
            lines.append(f'node:cpu_utilization:ratio{{node="n{i}"}} {i % 97 / 100}')
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


def measure(table, service, server):
    """In seconds of CPU, which say more than those of the clock where others work, too."""
    wait_until(lambda: service.ask().status == 200, 60, "an answer")
    programs = (service, server)
    before = [cpu_seconds(program) for program in programs]
    for _ in range(N_REQUESTS):
        service.ask()
    ours, theirs = ((cpu_seconds(program) - then) / N_REQUESTS for program, then in zip(programs, before))
    table.limit("CPU per request, without Prometheus", seconds, ours, theirs, 10e-3)
    table.limit("with Prometheus, its scrapes included", seconds, ours + theirs, theirs, 50e-3)


def run(table):
    table.heading(f"waap place, {N_NODES} nodes", theirs="Prometheus")
    binary = find_program("prometheus", "2.42")
    if binary is None or not PREDICTOR.exists():
        table.skip("CPU per request, without Prometheus", "no prometheus 2.42 or no libxgboost")
        return
    exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nodes)
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        jobs = {"nodes": {"honor_labels": True, "scrape_interval": INTERVAL, "scrape_timeout": INTERVAL}}
        server = Prometheus(binary, directory, exporter.server_port, jobs)
        with running(server), running(Place(f"--prometheus.url={server.url}", LOAD)) as service:
            measure(table, service, server)
    exporter.shutdown()
