"""`waap place`: which node would run a model fastest, by what Prometheus knows."""

import base64
import contextlib
import http.server
import json
import pathlib
import random
import threading
import time
import urllib.parse

import pytest

from authority import QUICK_SECRET
from hostile import begin_upload
from peers import Prometheus, need_program
from placing import ASKED, Place
from running import wait_until

RASPBERRY, JETSON = "Raspberry Pi 4 Model B Rev 1.4", "NVIDIA Jetson Xavier NX"


def node(name, model=RASPBERRY, **state):
    """What a fake Prometheus knows about a node; None: nothing of that kind. `measured` are the seconds,
    samples and age of models there."""
    return {"name": name, "model": model, "load": 10, "disk": 40, "age": 2, **state}


class FakePrometheus:
    """Answers the queries of waap place from a list of nodes, in a different order every time."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.asked = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                body = outer.answer(urllib.parse.parse_qs(form)["query"][0])
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def labels(self, of, query):
        if "char_node" not in query:
            return {"instance": of.get("instance", of["name"])}
        return {
            "instance": of.get("target", f"{of['name']}:5001"),
            "char_node_name": of["name"],
            "char_node_class": "Computer",
            "char_node_uuid": of.get("uuid", f"uuid of {of['name']}"),
            "char_node_device_model_name": of["model"],
        }

    def answer(self, query):
        self.asked.append(query)
        if "inference" in query:
            return self.vector([
                ({"node": of["name"], "model": model, "quantity": quantity}, value)
                for of in self.nodes for model, values in of.get("measured", {}).items()
                for quantity, value in zip(("seconds", "samples", "age"), values)])
        key = "age" if "char_node" in query else "disk" if "filesystem" in query else "load"
        return self.vector([(self.labels(of, query), of[key]) for of in self.nodes if of[key] is not None])

    def vector(self, values):
        rows = [{"metric": labels, "value": [time.time(), str(value)]} for labels, value in values]
        random.shuffle(rows)
        data = {"resultType": "vector", "result": rows}
        return json.dumps({"status": "success", "data": data}).encode()

    @property
    def address(self):
        return f"127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def place(started):
    """place(nodes): the service, asking a Prometheus that knows these."""

    @contextlib.contextmanager
    def ending(thing):
        yield thing
        thing.close()

    def start(nodes, *flags, **options):
        fake = started(ending(FakePrometheus(nodes)))
        service = started(ending(Place(f"--prometheus.url=http://{fake.address}", *flags, **options)))
        service.fake = fake
        return service

    return start


def test_the_originals_answer(place):
    service = place([node("rpi"), node("nx", JETSON), node("busy", load=95)])
    # The original's own sample has numbers beyond 64 bits, which must come back as they went.
    body = ('{"total_parameters": 10000000000000000000, "model": "deeplab_part2", "conv_layers": 66666666,'
            ' "pool_layers": 1, "fc_layers": 3, "filter_details": 34535353535, "model_input_size": 1e3,'
            ' "model_output_size": 5, "more": {"b": [1.50, null], "a": "\\u00e9"}}')
    answer = service.ask(body)
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    seconds = json.loads(answer.text)["profiling_prediction"]["predicted_execution_time"]
    assert answer.text == (
        '{"message":"Profiling data received","model_characteristics":{"conv_layers":66666666,'
        '"fc_layers":3,"filter_details":34535353535,"model":"deeplab_part2","model_input_size":1e3,'
        '"model_output_size":5,"more":{"a":"é","b":[1.50,null]},"pool_layers":1,'
        '"total_parameters":10000000000000000000},"profiling_prediction":{"class":"Computer",'
        '"device_model":"NVIDIA Jetson Xavier NX","model":"deeplab_part2","node":"nx",'
        f'"node_uuid":"uuid of nx","predicted_execution_time":{seconds!r}}},"status":"success"}}\n')
    assert len(service.fake.asked) == 3


def test_the_address_of_the_original(started, place):
    fake = place([node("rpi")]).fake
    for address in (fake.address, f"http://{fake.address}"):
        with contextlib.closing(Place(env={"PROMETHEUS_IP": address})) as service:
            assert json.loads(service.ask().text)["profiling_prediction"]["node"] == "rpi"


def test_load_moves_the_prediction(place):
    """The query of the original says 87.5 % for idle and busy nodes alike."""
    service = place([node("a", load=2), node("b", load=97)])
    first = service.explain()["candidates"]
    assert [of["node"] for of in first] == ["a", "b"]
    assert first[1]["predicted_execution_time"] > 1.1 * first[0]["predicted_execution_time"]
    service.fake.nodes = [node("a", load=97), node("b", load=2)]
    assert [of["node"] for of in service.explain()["candidates"]] == ["b", "a"]
    assert all('mode="idle"' in query for query in service.fake.asked if "cpu" in query)


def test_order_means_nothing(place):
    nodes = [node(f"n{i}", JETSON if i % 3 == 0 else RASPBERRY, load=i, disk=90 - i) for i in range(40)]
    service = place(nodes)
    expected = {f"n{i}": (i, 90 - i) for i in range(40)}
    answers = [service.explain() for _ in range(3)]
    for answer in answers:
        found = {of["node"]: (of["features"]["device_load_percent"],
                              of["features"]["device_disk_usage_percent"]) for of in answer["candidates"]}
        assert found == expected
    assert answers[0] == answers[1] == answers[2]


def test_nodes_that_cannot_be_chosen_are_named(place):
    service = place([
        node("good"),
        node("no-load", load=None), node("no-disk", disk=None), node("nan", load="NaN"),
        node("old", age=130),
        node("twin", uuid="1"), node("twin", JETSON, uuid="2"),
        node("copy", target="h1:9090"), node("copy", target="h2:9090"),
    ])
    answer = service.explain()
    assert [of["node"] for of in answer["candidates"]] == ["good"]
    reasons = {of["node"]: of["reason"] for of in answer["excluded"]}
    assert reasons.keys() == {"no-load", "no-disk", "nan", "old", "twin", "copy"}
    for name, key, values in (("twin", "node_uuid", ["1", "2"]), ("copy", "instance", ["h1:9090", "h2:9090"])):
        assert [of[key] for of in answer["excluded"] if of["node"] == name] == values
        assert "several nodes have that name" in reasons[name]
    assert "CPU load" in reasons["no-load"] and "CPU load" in reasons["nan"]
    assert "filesystem" in reasons["no-disk"]
    assert "too old" in reasons["old"]
    page = service.get("/metrics").text
    assert "waap_place_nodes 9" in page and "waap_place_excluded_nodes 8" in page
    service.wait_log("several nodes share a name, none of them is chosen: copy (h1:9090), copy (h2:9090), twin")
    service.explain()
    service.fake.nodes = [node("copy")]
    assert service.ask().status == 200
    service.wait_log("node names are unique again")
    assert service.output().count("several nodes share a name") == 1


def test_queries_of_ones_own(place):
    service = place([node("rpi")], "--query.load=100 * node:cpu_utilization:ratio", "--load-window=5m")
    assert service.ask().status == 200
    assert service.fake.asked[0] == "100 * node:cpu_utilization:ratio"
    assert not any("5m" in query for query in service.fake.asked)
    other = place([node("rpi")], "--load-window=90s")
    assert other.ask().status == 200
    assert "[1m30s]" in other.fake.asked[0]


def test_confidence(place):
    service = place([node("rpi")])
    answer = service.explain(conv_layers=66666666, total_parameters=10**19)
    assert answer["confidence"] == "low"
    assert answer["outside_training"] == ["conv_layers", "total_parameters"]
    assert answer["predictor"]["simulated"] is True
    assert service.explain()["outside_training"] == []


def errors_of(service):
    lines = [line.rsplit(" ", 1) for line in service.get("/metrics").text.splitlines()]
    return {line[0]: float(line[1]) for line in lines if line[0].startswith("waap_place_prediction_error_ratio")}


def test_measured_beats_predicted(place):
    service = place([
        node("idle", measured={"yolo": (9, 50, 1), "ssd": (5, 50, 1)}),
        node("busy", load=97, measured={"yolo": (0.5, 10, 120)}),
        node("few", measured={"yolo": (0.1, 9, 1)}),
        node("old", measured={"yolo": (0.1, 50, 121)}),
    ])
    plain = json.loads(service.ask().text)["profiling_prediction"]
    assert len(service.fake.asked) == 3 and plain["node"] == "few"  # as good as idle and old, and the first by name
    assert errors_of(service) == {}

    answer = json.loads(service.ask(path="/api/profiling?model=yolo&explain=1").text)
    assert answer["profiling_prediction"]["node"] == "busy"
    assert answer["profiling_prediction"]["predicted_execution_time"] == 0.5
    assert answer["profiling_prediction"].keys() == plain.keys()
    found = {of["node"]: of for of in answer["explain"]["candidates"]}
    assert list(found) == ["busy", "few", "old", "idle"]
    assert [of["basis"] for of in found.values()] == ["measured", "predicted", "predicted", "measured"]
    assert found["busy"]["measured"] == {"seconds": 0.5, "samples": 10, "age_seconds": 120}
    assert found["few"]["measured"]["unused"] == "too few"
    assert found["old"]["measured"]["unused"] == "too old"
    expected = {
        f'waap_place_prediction_error_ratio{{node="{name}",model="yolo"}}':
            pytest.approx(found[name]["predicted_execution_time"] / found[name]["measured"]["seconds"] - 1)
        for name in ("busy", "idle")}
    assert errors_of(service) == expected

    service.fake.nodes = []
    assert service.ask(path="/api/profiling?model=yolo").status == 503  # and nothing learnt
    assert errors_of(service) == expected
    service.fake.nodes = [node("idle", measured={"ssd": (5, 50, 1)})]
    answer = json.loads(service.ask(path="/api/profiling?model=yolo").text)["profiling_prediction"]
    assert answer["predicted_execution_time"] == plain["predicted_execution_time"]
    assert errors_of(service) == {}


def test_names_of_models_do_not_end_queries(place):
    service = place([node("rpi")], "--query.measured=inference{model=\"$model\"}", "--measured-window=5m")
    assert service.ask(path="/api/profiling?model=" + urllib.parse.quote('x"} or y{a="\\')).status == 200
    assert service.fake.asked[-1] == 'inference{model="x\\"} or y{a=\\"\\\\"}'
    service.ask(path="/api/profiling?model=")
    assert len(service.fake.asked) == 7
    other = place([node("rpi")], "--measured-window=90s")
    assert other.ask(path="/api/profiling?model=a").status == 200
    assert other.fake.asked[-1].count("[1m30s]") == 3 and "[1m30s]" not in other.fake.asked[0]


BAD = {
    "": (400, "expected an object"),
    "[]": (400, "expected an object"),
    "{": (400, "line 1"),
    json.dumps(ASKED) + "x": (400, "expected nothing after"),
    json.dumps({**ASKED, "conv_layers": "5"}): (400, "conv_layers: expected a number"),
    json.dumps({**ASKED, "pool_layers": None}): (400, "pool_layers: expected a number"),
    json.dumps({**ASKED, "pool_layers": True}): (400, "pool_layers: expected a number"),
    json.dumps({**ASKED, "model": 5}): (400, "model: expected a name"),
    json.dumps({key: ASKED[key] for key in ASKED if key != "filter_details"}): (400, "filter_details: missing"),
    json.dumps({key: ASKED[key] for key in ASKED if key != "model"}): (400, "model: missing"),
    json.dumps({**ASKED, "total_parameters": -1}): (422, "total_parameters: -1 is out of range"),
    '{"a":' * 100 + "1" + "}" * 100: (400, "deep"),
}


def test_bad_requests_name_the_field(place):
    service = place([node("rpi")])
    for body, (status, said) in BAD.items():
        answer = service.ask(body)
        assert (answer.status, json.loads(answer.text)["status"]) == (status, "error"), body
        assert said in json.loads(answer.text)["error"]
    assert service.get("/api/profiling").status == 405
    assert service.fake.asked == []
    assert f'waap_place_requests_total{{result="bad_request"}} {len(BAD)}' in service.get("/metrics").text


def test_no_guess_without_nodes_or_prometheus(place):
    service = place([])
    answer = service.ask()
    assert answer.status == 503 and "char_node_device_model" in json.loads(answer.text)["error"]
    service.fake.nodes = [node("rpi", load=None)]
    answer = service.ask()
    assert answer.status == 503 and "rpi: no CPU load" in json.loads(answer.text)["error"]
    service.fake.close()
    answer = service.ask()
    assert answer.status == 503 and service.fake.address in json.loads(answer.text)["error"]
    assert service.get("/-/healthy").status == 200


def form(*parts):
    lines = b""
    for name, content in parts:
        lines += f'--xyz\r\nContent-Disposition: form-data; {name}\r\n\r\n'.encode() + content + b"\r\n"
    return lines + b"--xyz--\r\n", {"Content-Type": "multipart/form-data; boundary=xyz"}


def test_upload_of_a_model(place):
    models = pytest.importorskip("onnx_models", reason="no python3-onnx on this machine (make deps)")
    service = place([node("rpi"), node("nx", JETSON)])
    data = models.alexnet().SerializeToString()
    body, headers = form(('name="file"; filename="alexnet.onnx"', data), ('name="model_input_size"', b"777"))
    answer = service.ask(body, "/upload", headers)
    assert answer.status == 201, answer.text
    found = json.loads(answer.text)
    assert found["model_characteristics"] == {
        "conv_layers": 5, "fc_layers": 3, "filter_details": 1376, "pool_layers": 3, "model": "alexnet",
        "total_parameters": 60965228, "model_input_size": 777, "model_output_size": 4000}
    assert found["profiling_prediction"]["model"] == "alexnet"
    for parts, status, said in (
        ((('name="file"; filename="a.exe"', data),), 400, "ends in .onnx"),
        ((('name="other"', b""),), 400, "file: missing"),
        ((('name="file"; filename="a.onnx"', data[:-3]),), 422, "byte"),
        ((('name="file"; filename="a.onnx"', data), ('name="model_input_size"', b"x")), 400, "number of bytes"),
    ):
        body, headers = form(*parts)
        answer = service.ask(body, "/upload", headers)
        assert answer.status == status and said in json.loads(answer.text)["error"]
    assert service.ask(b"{}", "/upload").status == 400
    assert service.ask(b"--xyz\r\n--xyz\r\n--xyz--", "/upload", headers).status == 400


def test_small_parts_of_a_model_take_little_memory(place):
    """A node of two bytes takes a hundred in memory: files of nothing else must not fill it."""
    service = place([node("rpi")], "--web.max-body-size=4MiB", "--upload.max-memory=8MiB")
    nodes = b"\x0a\x00" * (1 << 20)
    model = b"\x08\x08" + b"\x3a" + bytes((len(nodes) & 127 | 128, len(nodes) >> 7 & 127 | 128,
                                       len(nodes) >> 14 & 127 | 128, len(nodes) >> 21)) + nodes
    body, headers = form(('name="file"; filename="a.onnx"', model))
    answer = service.ask(body, "/upload", headers)
    assert answer.status == 413 and json.loads(answer.text)["error"] == (
        "file: its graph takes more than 8388608 bytes of memory (--upload.max-memory)")


def test_idle_uploads_leave_room_for_others(place):
    service = place([node("rpi")])
    large, headers = form(('name="file"; filename="a.onnx"', bytes(10_000_000)))
    with contextlib.ExitStack() as stack:
        for _ in range(7):
            idle = stack.enter_context(contextlib.closing(service.connect()))
            begin_upload(idle, "/upload")
        assert service.get("/-/healthy").status == 200
        assert [service.ask(large, "/upload", headers).status for _ in range(11)] == 11 * [422]


def test_passwords_and_limits_are_the_daemons(place, tmp_path):
    web = tmp_path / "web.yaml"
    web.write_text(f"basic_auth_users: {{alice: '{QUICK_SECRET}'}}\n")
    service = place([node("rpi")], f"--web.config.file={web}", "--web.max-body-size=1KiB")
    assert service.ask().status == 401
    login = base64.b64encode(b"alice:secret").decode()
    assert service.ask(headers={"Authorization": f"Basic {login}"}).status == 200
    large = json.dumps({**ASKED, "more": "x" * 2000})
    answer = service.ask(large, headers={"Authorization": f"Basic {login}"})
    assert answer.status == 413 and "--web.max-body-size" in answer.text


def test_flags_that_are_wrong(run_waap, tmp_path):
    for flags, said in ((("--prometheus.url=ftp://x",), "--prometheus.url"), (("--wrong",), "--wrong"),
                        (("train-it",), "train-it: neither a flag nor a command (see waap place --help)")):
        done = run_waap("place", *flags)
        assert done.returncode == 2 and said in done.stderr
    (tmp_path / "model.json").write_text("{}")
    for file, said in ((tmp_path / "model.json", "model.json"), (tmp_path / "no.json", "No such file")):
        done = run_waap("place", f"--predictor={file}", "--web.listen-address=127.0.0.1:0")
        assert done.returncode == 1 and said in done.stderr
        assert "Stack trace" not in done.stderr


class Node:
    """An exporter of a node that is as busy as one likes: all eight modes of two CPUs."""

    def __init__(self, name, model, busy):
        begin = time.monotonic()
        outer = self
        self.busy = busy

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seconds = time.monotonic() - begin
                shares = dict.fromkeys(("iowait", "irq", "nice", "softirq", "steal", "system"), 0)
                shares.update(user=outer.busy, idle=1 - outer.busy)
                lines = [f'node_cpu_seconds_total{{cpu="{cpu}",mode="{mode}"}} {1000 + share * seconds}'
                         for cpu in range(2) for mode, share in shares.items()]
                root = '{device="/dev/root",fstype="ext4",mountpoint="/"}'
                lines += [f"node_filesystem_avail_bytes{root} 6e9", f"node_filesystem_size_bytes{root} 1e10"]
                lines += [f'char_node_device_model{{char_node_class="Computer",char_node_name="{name}",'
                          f'char_node_uuid="u-{name}",char_node_device_model_name="{model}"}} 1']
                body = ("\n".join(lines) + "\n").encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.target = f"127.0.0.1:{self.server.server_port}"


def measured_by_a_plugin(service, exporter, name):
    """What a plugin says about its model takes the place of what was predicted, as soon as it is enough."""

    def push(model, seconds):
        line = {"plugin": "detector", "metric": "inference_seconds", "type": "histogram", "observe": [seconds] * 4,
                "buckets": [0.01, 0.1, 1, 10], "labels": {"model": model}}
        answer = exporter.get("/api/v1/push", method="POST", body=json.dumps(line).encode())
        assert answer.status == 200, answer.text

    def measured():
        push("yolo v5", 0.25)
        push("ssd", 7)
        answer = json.loads(service.ask(path="/api/profiling?explain=1&model=yolo%20v5").text)
        (found,) = [of for of in answer["explain"]["candidates"] if of["node"] == name]
        if found["basis"] != "measured":
            assert found.get("measured", {"samples": 0})["samples"] < 10
            return None
        return answer, found

    answer, found = wait_until(measured, what="a measured time")
    assert found["measured"]["samples"] >= 10 and 0 <= found["measured"]["age_seconds"] < 120
    assert found["measured"]["seconds"] == pytest.approx(0.25)
    assert all(of["basis"] == "predicted" for of in answer["explain"]["candidates"] if of is not found)
    assert answer["profiling_prediction"]["node"] == name
    assert answer["profiling_prediction"]["predicted_execution_time"] == found["measured"]["seconds"]
    (ratio,) = errors_of(service).values()
    assert ratio == pytest.approx(found["predicted_execution_time"] / found["measured"]["seconds"] - 1)


def test_real_prometheus_and_exporters(started, waap, tmp_path):
    """Two boards of a kind, one of them busy, and a demo of our own exporter."""
    idle, busy = Node("idle", RASPBERRY, 0), Node("busy", RASPBERRY, 1)
    demo = waap("--demo")
    jobs = {
        "boards": {"static_configs": [{"targets": [idle.target, busy.target]}]},
        "waap": {"static_configs": [{"targets": [f"127.0.0.1:{demo.port}"], "labels": {"node": "demo"}}]},
    }
    directory = pathlib.Path(tmp_path) / "prometheus"
    directory.mkdir()
    prometheus = started(Prometheus(need_program("prometheus", "2.42"), directory, 0, jobs))
    with contextlib.closing(Place(env={"PROMETHEUS_IP": f"127.0.0.1:{prometheus.port}"})) as service:

        def complete():
            answer = service.ask(path="/api/profiling?explain=1")
            found = json.loads(answer.text).get("explain", {}).get("candidates", [])
            return {of["node"]: of for of in found} if len(found) == 3 else None

        nodes = wait_until(complete, what="an answer about all nodes")
        (demo_name,) = nodes.keys() - {"idle", "busy"}
        load = {name: of["features"]["device_load_percent"] for name, of in nodes.items()}
        assert load["idle"] < 40 and load["busy"] > 80 and 0 <= load[demo_name] <= 100
        assert abs(nodes["idle"]["features"]["device_disk_usage_percent"] - 40) < 0.01
        assert nodes["busy"]["predicted_execution_time"] > 1.1 * nodes["idle"]["predicted_execution_time"]
        assert nodes[demo_name]["features"]["device"] == 1
        chosen = json.loads(service.ask().text)["profiling_prediction"]
        assert chosen["node"] == min(nodes, key=lambda name: nodes[name]["predicted_execution_time"])
        measured_by_a_plugin(service, demo, demo_name)
    for exporter in (idle, busy):
        exporter.server.shutdown()
