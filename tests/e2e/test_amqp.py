"""Waggle messages by AMQP: from the recording rules to what a node's RabbitMQ passes on."""

import re

import pytest
import yaml

from peers import Prometheus, need_program
from rabbitmq import PASSWORD, RabbitMQ
from running import ROOT, free_port
from test_control import Control
from test_rules import RULES
from waiting import wait_until

# What the issue asks for, and where each comes from.
NAMES = {
    "sys.plugin.fps": {"plugin", "task"},
    "sys.plugin.fps_ratio": {"plugin", "task"},
    "sys.node.headroom": {"resource"},
    "sys.node.power": set(),
    "sys.node.thermal_margin": set(),
}


def shipped_waggle():
    """The section of deploy/control.yaml, without its number signs."""
    text = (ROOT / "deploy/control.yaml").read_text()
    section = re.search(r"^# waggle:\n(?:#   .*\n)+", text, re.M).group()
    return yaml.safe_load(re.sub("^# ", "", section, flags=re.M))["waggle"]


@pytest.fixture
def control(waap_binary, started, tmp_path):
    """control(exporter, prometheus, port, …): `waap control` with the shipped section, sent to that port."""

    def start(exporter, prometheus, port, password=PASSWORD, **changes):
        (tmp_path / "word").write_text(password + "\n")
        waggle = {**shipped_waggle(), "interval": "300ms", **changes}
        waggle["amqp"] = {**waggle["amqp"], "host": "127.0.0.1", "port": port, "password_file": "word"}
        waggle = {key: value for key, value in waggle.items() if value is not None}
        file = tmp_path / "control.yaml"
        file.write_text(yaml.safe_dump({
            "exporter": {"url": exporter}, "prometheus": {"url": prometheus}, "waggle": waggle}))
        return started(Control(waap_binary, file))

    return start


def test_the_five_of_the_shipped_file(waap, started, control, tmp_path):
    daemon = waap("--demo")
    job = {"relabel_configs": [{"target_label": "node", "replacement": "nx"}]}
    directory = tmp_path / "prometheus"
    directory.mkdir()
    prometheus = started(Prometheus(need_program("prometheus", "2.42"), directory, daemon.port, {"waap": job},
                                    config={"rule_files": [str(path) for path in RULES]}))
    port = free_port()
    files = tmp_path / "metrics"
    files.mkdir()
    program = control(daemon.url, prometheus.url, port, directory=str(files))
    program.wait_log(f"control: waggle: AMQP broker 127.0.0.1:{port}: connect: connection refused")

    # Without the broker the files are written all the same.
    wait_until(lambda: any("sys.plugin.fps" in path.name for path in files.glob("waap/*")), what="files")

    broker = started(RabbitMQ(tmp_path / "broker", started, port))
    program.wait_log("control: waggle: sending to the AMQP broker again")
    seen = {}

    def all_seen():
        for key, properties, message in broker.messages():
            assert (key, properties.user_id) == ("node", "service")
            assert (properties.content_type, properties.delivery_mode) == ("application/json", 2)
            assert set(message) == {"name", "ts", "meta", "val"}
            assert isinstance(message["ts"], int) and message["ts"] > 946706400000000000
            assert isinstance(message["val"], (int, float))
            assert all(isinstance(text, str) for text in message["meta"].values())
            seen.setdefault(message["name"], []).append(message)
        return set(NAMES) | {"sys.plugin.perf.cpu"} <= set(seen)

    wait_until(all_seen, what="one of each message")
    for name, labels in NAMES.items():
        for message in seen[name]:
            assert labels <= set(message["meta"]) and message["meta"]["node"] == "nx"
    fps = seen["sys.plugin.fps"][-1]
    assert fps["meta"]["task"] == fps["meta"]["plugin"] == "object-detector"
    assert {message["meta"]["resource"] for message in seen["sys.node.headroom"]} >= {"cpu", "memory", "gpu"}
    assert 0 < fps["val"] < 100 and 0 < seen["sys.node.power"][-1]["val"] < 100

    # A broker that goes away is logged once.
    before = program.output().count("AMQP broker")
    broker.stop()
    wait_until(lambda: program.output().count("AMQP broker") > before, what="the loss")
    assert program.output().count("AMQP broker 127.0.0.1") == 2
    # So is Prometheus, beside it.
    prometheus.stop()
    program.wait_log("control: waggle: sys.plugin.fps: POST http://")
    assert program.output().count("sys.node.power: POST") == 0


def test_a_wrong_password_is_the_broker_s_answer(waap, started, control, tmp_path):
    daemon = waap("--demo")
    broker = started(RabbitMQ(tmp_path / "broker", started))
    program = control(daemon.url, "http://127.0.0.1:1", broker.port, "wrong", directory=None, messages=None)
    line = program.wait_log("control: waggle: AMQP broker")
    assert f"127.0.0.1:{broker.port}: log in: ACCESS_REFUSED - Login was refused" in line

    # The file is read again for each connection.
    (tmp_path / "word").write_text(PASSWORD)
    program.wait_log("control: waggle: sending to the AMQP broker again")
    wait_until(broker.messages, what="a message")
    assert program.output().count("AMQP broker 127.0.0.1") == 1


def test_an_exchange_that_is_not_there(waap, started, control, tmp_path):
    daemon = waap("--demo")
    broker = started(RabbitMQ(tmp_path / "broker", started))
    waggle = shipped_waggle()
    shipped = {**waggle["amqp"], "exchange": "elsewhere"}
    program = control(daemon.url, "http://127.0.0.1:1", broker.port, directory=None, messages=None, amqp=shipped)
    assert "NOT_FOUND - no exchange 'elsewhere'" in program.wait_log("control: waggle: AMQP broker")
