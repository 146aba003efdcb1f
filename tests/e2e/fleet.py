"""What deploy/fleet puts together, on loopback: nodes with an agent, a link that can be cut, a central store."""

import base64
import contextlib
import json
import shlex
import socket
import threading
import urllib.parse

import yaml

from peers import need_program
from running import ROOT, Program, free_port

FLEET = ROOT / "deploy/fleet"


def settings(path):
    """Environment and arguments of a .default file, as systemd reads it."""
    words = shlex.split((FLEET / path).read_text(), comments=True)
    values = dict(word.split("=", 1) for word in words)
    return values, values.pop("ARGS").split()


def replaced(flags, values):
    """The flags with other values for some, which have to be among them."""
    known = dict(flag.partition("=")[::2] for flag in flags)
    assert set(values) <= set(known), flags
    known.update(values)
    return [f"{name}={value}" if value else name for name, value in known.items()]


class Link:
    """A way to a port of this machine, which can be cut and mended."""

    def __init__(self, target):
        self.target = target
        self.port = free_port()
        self.open_sockets = []
        self.mend()

    def mend(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def cut(self):
        for end in (self.listener, *self.open_sockets):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.open_sockets = []

    def accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    near.close()
                    continue
                self.open_sockets += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()


class Central(Program):
    """Debian's victoria-metrics with the flags of deploy/fleet/central, in a directory and on a port of the test."""

    def __init__(self, directory, port=None, extra=()):
        environment, flags = settings("central/victoria-metrics.default")
        self.user = "waap:" + environment["httpAuth_password"]
        self.password_file = directory / "central.password"
        self.password_file.write_text(environment["httpAuth_password"])
        address = f"127.0.0.1:{port or free_port()}"
        flags = replaced(flags, {"-storageDataPath": directory / "central", "-httpListenAddr": address})
        binary = need_program("victoria-metrics")
        # A node's newest values are shown after a second, not half a minute.
        super().__init__([binary, *flags, "-search.latencyOffset=1s", "-memory.allowedPercent=20", *extra],
                         f"http://{address}", env={**environment, "GOMAXPROCS": "2"})
        self.wait_ready("/health")

    def get(self, path, headers=None, **options):
        authorization = "Basic " + base64.b64encode(self.user.encode()).decode()
        return super().get(path, {"Authorization": authorization, **(headers or {})}, **options)

    def api(self, path, **parameters):
        answer = self.get(f"{path}?{urllib.parse.urlencode(parameters)}")
        assert answer.status == 200, answer.text
        return answer.text

    def series(self, selector='{__name__!=""}'):
        """[(labels, time stamps in ms)] as they are stored."""
        self.api("/internal/force_flush")
        rows = [json.loads(line) for line in self.api("/api/v1/export", **{"match[]": selector}).splitlines()]
        return [(row["metric"], row["timestamps"]) for row in rows]

    def query(self, text):
        return json.loads(self.api("/api/v1/query", query=text, step="10s"))["data"]["result"]


def node_config(targets, own, interval):
    """deploy/fleet/node/prometheus.yml for a test: [(address of waap, labels)], and the agent's own address."""
    config = yaml.safe_load((FLEET / "node/prometheus.yml").read_text())
    waap, agent = config["scrape_configs"]
    waap["static_configs"] = [{"targets": [target], "labels": labels} for target, labels in targets]
    agent["static_configs"] = [{"targets": [own]}]
    config["global"].update(scrape_interval=interval, scrape_timeout=interval)
    return config


class Agent(Program):
    """Debian's prometheus with the flags and the configuration of deploy/fleet/node, sending to a port here."""

    def __init__(self, directory, central, port, targets, interval="1s", version="2.42", queue=None):
        self.file = directory / "prometheus.yml"
        address = f"127.0.0.1:{free_port()}"
        self.config = node_config(targets, address, interval)
        remote, = self.config["remote_write"]
        remote["url"] = f"http://127.0.0.1:{port}/api/v1/write"
        remote["basic_auth"]["password_file"] = str(central.password_file)
        remote["queue_config"].update(batch_send_deadline="1s", max_backoff="1s", **(queue or {}))
        self.configure(self.config)
        environment, flags = settings("node/prometheus.default")
        flags = replaced(flags, {"--config.file": self.file, "--storage.agent.path": directory / "agent",
                                 "--web.listen-address": address})
        if version == "3":  # the only difference, and README tells it
            flags = ["--agent", *(flag for flag in flags if not flag.startswith("--enable-feature="))]
        super().__init__([need_program("prometheus", version), *flags, "--web.enable-lifecycle"],
                         f"http://{address}", env={**environment, "GOMAXPROCS": "2"})
        self.wait_ready()

    def configure(self, config):
        self.file.write_text(json.dumps(config))  # JSON is YAML

    def stop_scraping(self):
        """Goes on sending what it has."""
        self.configure({**self.config, "scrape_configs": []})
        assert self.get("/-/reload", method="POST").status == 200

    def number(self, name):
        """The sum of a metric of its own over all its labels."""
        return sum(float(value) for series, value in self.samples().items() if series.split("{")[0] == name)


class Vmagent(Program):
    """The same with Debian's vmagent."""

    def __init__(self, directory, central, port, targets, interval="1s"):
        file = directory / "vmagent.yml"
        address = f"127.0.0.1:{free_port()}"
        file.write_text(json.dumps(node_config(targets, address, interval)))
        environment, flags = settings("node/vmagent.default")
        flags = replaced(flags, {"-promscrape.config": file, "-remoteWrite.tmpDataPath": directory / "queue",
                                 "-remoteWrite.url": f"http://127.0.0.1:{port}/api/v1/write",
                                 "-remoteWrite.relabelConfig": FLEET / "node/vmagent-relabel.yml",
                                 "-remoteWrite.basicAuth.passwordFile": central.password_file,
                                 "-httpListenAddr": address})
        super().__init__([need_program("vmagent"), *flags], f"http://{address}", env=environment)
        self.wait_ready("/health")


class Vmalert(Program):
    """Debian's vmalert with the flags of deploy/fleet/central and all rules."""

    def __init__(self, central):
        environment, flags = settings("central/vmalert.default")
        address = f"127.0.0.1:{free_port()}"
        flags = replaced(flags, {
            "-rule": ROOT / "deploy/prometheus/rules/*.yml", "-httpListenAddr": address, "-evaluationInterval": "1s",
            **{f"-{what}.url": central.url for what in ("datasource", "remoteRead", "remoteWrite")}})
        super().__init__([need_program("vmalert"), *flags], f"http://{address}", env=environment)
        self.wait_ready("/health")
