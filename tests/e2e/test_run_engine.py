"""`waap run` with a container engine that is none: what a real one does only on bad days."""

import http.server
import json
import os
import socketserver
import struct
import threading
import time
import urllib.parse

import pytest

from test_run import QUICK, Record

ID = "0123456789abcdef"


class Engine(http.server.BaseHTTPRequestHandler):
    """Has one container, which has ended by the time that anybody looks at it."""

    protocol_version = "HTTP/1.1"
    exit_code = 0
    is_lost = False  # from the end of the container on
    init = "N/A"  # the commit of Docker's init; that is what it says where it has none
    refused = "?"  # the path of what it cannot do
    asked = None  # becomes a list of the requests with their bodies
    output = staticmethod(lambda n_lines: b"")

    def answer(self, body, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path.endswith("/logs"):
            text = self.output(int(urllib.parse.parse_qs(url.query)["tail"][0]))
            self.answer(struct.pack(">BxxxI", 1, len(text)) + text)
        elif url.path == "/containers/json":
            self.answer(b"[]")
        else:
            self.answer(json.dumps({"Id": "sha256:1", "State": {"Running": False, "ExitCode": self.exit_code},
                                    "InitCommit": {"ID": self.init}}).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.asked is not None:
            self.asked.append((self.path, body))
        lost = self.path == self.refused or self.is_lost and self.path.endswith("/wait")
        self.answer(json.dumps({"Id": ID, "message": "gone"}).encode(), status=500 if lost else 200)

    def do_DELETE(self):
        self.answer(b"")

    def address_string(self):
        return "waap"

    def log_message(self, *_):
        pass


@pytest.fixture
def profile(run_waap, tmp_path):
    """profile(code=…, exit_code=…): a run with an engine of these traits; its Record."""

    def run(code=0, section="", no_record=False, **traits):
        path = tmp_path / "s"
        engine = type("Engine", (Engine,), traits)
        with socketserver.ThreadingUnixStreamServer(str(path), engine) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            (tmp_path / "sage.yaml").write_text(f"profiling: {{{QUICK}{section}}}")
            ended = run_waap("run", tmp_path / "sage.yaml", f"--out={tmp_path / 'out'}", "--image=x", timeout=60,
                             env={**os.environ, "DOCKER_HOST": f"unix://{path}"})
            server.shutdown()
        assert ended.returncode == code, ended.stderr
        if no_record:
            return ended.stderr
        record = Record(tmp_path / "out")
        record.complaints = ended.stderr
        return record

    return run


def test_large_output(profile):
    """Its end is kept where all of it is too much."""
    record = profile(output=staticmethod(lambda n_lines: b"x" * (70 << 20) if n_lines > 1000 else b"the end\n"))
    assert record.output() == "the end\n"


@pytest.mark.parametrize("code, expected", [(0, (0, 0)), (5, (5, 0)), (137, (0, 9)), (255, (255, 0))])
def test_exit_codes(profile, code, expected):
    end = profile(code=0 if code == 0 else 3, exit_code=code).ends[0]
    assert (end["exit"], end["signal"]) == expected


def test_engine_that_goes(profile):
    """Nobody knows how the application ended: not well, at any rate."""
    assert profile(code=3, is_lost=True).ends[0]["exit"] == 125


@pytest.mark.parametrize("commit, section, used", [
    ("N/A", "", False),  # Docker without docker-init
    ("de40ad0", "", True),
    ("", "", True),  # Debian's tini, and podman
    ("", ", init: false", False),
])
def test_init(profile, commit, section, used):
    """It is asked for where the engine has it, as a container with it cannot start elsewhere."""
    asked = []
    profile(init=commit, section=section, asked=asked)
    bodies = [json.loads(body) for path, body in asked if path == "/containers/create"]
    assert [body["HostConfig"]["Init"] for body in bodies] == [used]


def test_no_network(profile):
    """Docker has a limited number of them."""
    record = profile(code=4, section=", services: [{image: x}]", refused="/networks/create")
    assert record.complaints == "waap run: service x: container engine: gone\n"
    assert record.lines[-1]["kind"] == "finished" and not record.ends


@pytest.mark.parametrize("source, path", [
    ("state", "state/models"),  # what a later container mounts
    (".", "out/samples.jsonl"),  # what is written after a container has run
])
def test_mounts_below_what_a_container_may_write(profile, tmp_path, source, path):
    """It could replace the folder by a symbolic link, which the next would follow to anywhere."""
    (tmp_path / "state/models").mkdir(parents=True)
    mounts = [{"source": source, "target": "/state", "writable": True}, {"source": "state/models", "target": "/models"}]
    asked = []
    record = profile(code=2, section=f", repeats: 2, mounts: {json.dumps(mounts[:1 + (source == 'state')])}",
                     asked=asked, no_record=True)
    assert record == f"waap run: mounts: {(tmp_path / source).resolve()} is writable, and {tmp_path / path} is below " \
        "it, where a container could put a symbolic link: mount or use another folder\n"
    assert asked == []


def test_mounts_of_what_a_container_may_write(profile, tmp_path):
    (tmp_path / "state").mkdir()
    fine = [{"source": "state", "target": "/a", "writable": True}, {"source": "state", "target": "/b"}]
    profile(section=f", mounts: {json.dumps(fine)}")


def hang_from_the_first_delete(request):
    """Says nothing until the client has gone."""
    good = Engine.parse_request(request)
    type(request).hangs |= request.command == "DELETE"
    while request.hangs and request.connection.recv(4096):
        pass
    return good and not request.hangs


@pytest.mark.long
def test_engine_that_hangs(profile):
    """The first call waits for it half a minute; the others, of which the end has many, do not."""
    began = time.monotonic()
    profile(code=4, section=", services: [{image: x}]", hangs=False, parse_request=hang_from_the_first_delete)
    assert time.monotonic() - began < 50
