"""Debian's RabbitMQ, unpacked and not installed, as the broker of a Waggle node, and what consumers get from it."""

import json
import os
import pathlib

import pytest

from running import ROOT, Program, free_port, wait_until

pika = pytest.importorskip("pika", reason="no python3-pika on this machine (make deps)")
UNPACKED = ROOT / "build/deps/rabbitmq"
USER, PASSWORD = "service", "a word"
# Erlang's own start script has the path of an installed Erlang in it.
ERL = """#!/bin/sh
export ROOTDIR={root} BINDIR={bin} EMU=beam PROGNAME=erl
exec "$BINDIR/erlexec" "$@"
"""


class RabbitMQ(Program):
    """A broker on a port of its own, with Waggle's exchange `to-validator` and a queue of all that comes there."""

    def __init__(self, place, started, port=None):
        if not UNPACKED.exists():
            pytest.skip("no rabbitmq (make deps)")
        root = UNPACKED / "usr/lib/erlang"
        (programs,) = root.glob("erts-*/bin")
        (home,) = (UNPACKED / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*")
        place = pathlib.Path(place)
        place.mkdir(exist_ok=True)
        port = port or free_port()
        erl = place / "erl"
        erl.write_text(ERL.format(root=root, bin=programs))
        erl.chmod(0o755)
        (place / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{port}\ndefault_user = {USER}\ndefault_pass = {PASSWORD}\n"
            "log.console = true\nlog.file = false\n")
        (place / "enabled_plugins").write_text("[].\n")
        environment = {
            "PATH": f"{place}:{programs}:{os.environ['PATH']}",
            "HOME": str(place),
            "RABBITMQ_HOME": str(home),
            "RABBITMQ_MNESIA_BASE": str(place / "mnesia"),
            "RABBITMQ_LOG_BASE": str(place),
            "RABBITMQ_NODENAME": f"waap-{port}@localhost",
            "RABBITMQ_CONFIG_FILE": str(place / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(place / "enabled_plugins"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(free_port()),
        }
        # Erlang's name server would outlive the broker if the broker started it.
        started(Program([programs / "epmd"], None, env=environment))
        # It writes a core file into the current directory when a start fails.
        super().__init__([home / "sbin/rabbitmq-server"], f"amqp://127.0.0.1:{port}", env=environment, cwd=place)
        wait_until(lambda: "Server startup complete" in self.output(), 60, "RabbitMQ")
        connection = pika.BlockingConnection(pika.ConnectionParameters(
            "127.0.0.1", self.port, credentials=pika.PlainCredentials(USER, PASSWORD)))
        self.channel = connection.channel()
        self.channel.exchange_declare("to-validator", "fanout", durable=True)
        self.channel.queue_declare("seen")
        self.channel.queue_bind("seen", "to-validator")

    def messages(self):
        """[(routing key, properties, message)] since the last call."""
        found = []
        while True:
            method, properties, body = self.channel.basic_get("seen", auto_ack=True)
            if method is None:
                return found
            found.append((method.routing_key, properties, json.loads(body)))
