"""`waap model`: the characteristics of ONNX models, beside those of Debian's python3-onnx."""

import builtins
import json
import subprocess
import sys

import pytest

onnx = pytest.importorskip("onnx", reason="no python3-onnx on this machine (make deps)")
models = pytest.importorskip("onnx_models")
helper, TensorProto = onnx.helper, onnx.TensorProto

# As published with the original service: conv, filters, fc, pool, parameters; and the papers' MACs.
PUBLISHED = {
    models.alexnet: (5, 1376, 3, 3, 60965228, 654560384),
    models.vgg16: (13, 4224, 3, 5, 138357544, 15470264320),
}
COUNTS = ("conv_layers", "filter_details", "fc_layers", "pool_layers", "total_parameters")


@pytest.fixture
def look(run_waap, tmp_path):
    """look(model): what `waap model --json` says about it."""

    def run(model):
        path = tmp_path / "model.onnx"
        path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        done = run_waap("model", path, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def graph_model(nodes, inputs, outputs, weights=(), **options):
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, **options)


@pytest.mark.parametrize("build", PUBLISHED, ids=lambda build: build.__name__)
def test_published_counts(look, build):
    found = look(build())
    *counts, macs = PUBLISHED[build]
    assert [found[name] for name in COUNTS] == counts
    assert found["details"]["macs"] == macs
    assert found["model"] == "model" and found["model_input_size"] == 602112


@pytest.mark.parametrize("seed", range(25))
def test_random_nets_equal_the_official_reader(look, seed):
    model = models.random_net(seed)
    found = look(model)
    assert {name: found[name] for name in COUNTS} == models.compatible(model)
    assert found["details"]["macs"] == models.macs(model)


def test_packaged_models_equal_the_official_reader(look, monkeypatch):
    """Of ONNX' own test cases those with layers, and one in twenty of the others."""
    from onnx.backend.test.case.node import collect_testcases

    for name in ("bool", "float", "int", "object"):  # which its cases want, and numpy 1.24 lacks
        monkeypatch.setattr(models.numpy, name, getattr(builtins, name), raising=False)

    layers = ("conv", "pool", "gemm", "matmul", "lstm", "if", "loop", "constant")
    cases = [case for case in collect_testcases(None) if case.model is not None]
    chosen = [c for i, c in enumerate(cases) if i % 20 == 0 or any(w in c.name for w in layers)]
    assert len(chosen) > 50
    for case in chosen[::3]:
        found = look(case.model)
        expected = models.compatible(case.model)
        assert {name: found[name] for name in COUNTS} == expected, case.name


def test_weights_in_constant_nodes(look):
    weights = helper.make_tensor("w", TensorProto.FLOAT, [4, 3, 1, 1], [0.5] * 12)
    nodes = [
        helper.make_node("Constant", [], ["w"], value=weights),
        helper.make_node("Conv", ["x", "w"], ["y"]),
    ]
    found = look(graph_model(nodes, [models.floats("x", 1, 3, 8, 8)], [models.floats("y", 1, 4, 8, 8)]))
    assert (found["conv_layers"], found["total_parameters"]) == (0, 0)
    details = found["details"]
    assert (details["conv_layers"], details["filters"], details["parameters"]) == (1, 4, 12)
    assert details["macs"] == 4 * 8 * 8 * 3


def branch(name, *filters):
    nodes, weights, at = [], [], "x"
    for i, n in enumerate(filters):
        weights.append(models.external(f"w{i}", n, 3, 1, 1))
        nodes.append(helper.make_node("Conv", ["x", f"w{i}"], [f"y{i}"]))
        at = f"y{i}"
    return helper.make_graph(nodes, name, [], [models.floats(at, 1, filters[-1], 8, 8)], weights)


def test_the_larger_branch_counts(look):
    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("then", 8), else_branch=branch("else", 8, 16))
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    found = look(graph_model([node], [condition, models.floats("x", 1, 3, 8, 8)], [models.floats("y", 1)]))
    assert found["conv_layers"] == 0
    details = found["details"]
    assert (details["conv_layers"], details["filters"], details["parameters"]) == (2, 24, 72)
    assert details["subgraphs"] == 1 and details["macs"] == 24 * 64 * 3


def test_quantised_and_depthwise(look):
    small = [helper.make_tensor(n, TensorProto.UINT8, [], [1]) for n in ("z", "wz", "yz")]
    scales = [helper.make_tensor(n, TensorProto.FLOAT, [], [1.0]) for n in ("s", "ws", "ys")]
    weights = helper.make_tensor("w", TensorProto.UINT8, [6, 1, 3, 3], bytes(54), raw=True)
    node = helper.make_node(
        "QLinearConv", ["x", "s", "z", "w", "ws", "wz", "ys", "yz"], ["y"], group=6)
    image = helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 6, 5, 5])
    found = look(graph_model([node], [image], [models.floats("y", 1, 6, 3, 3)], [weights, *small, *scales]))
    details = found["details"]
    assert (details["quantised_layers"], details["depthwise_conv_layers"]) == (1, 1)
    assert details["macs"] == 6 * 9 * 9
    assert details["weight_bytes"] == 54 + 3 + 12


def test_functions_count_at_each_call(look):
    body = [helper.make_node("MatMul", ["a", "b"], ["m"]), helper.make_node("Relu", ["m"], ["o"])]
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "Block", ["a", "b"], ["o"], body, opsets)
    calls = [helper.make_node("Block", ["x", "x"], ["p"], domain="own"),
             helper.make_node("Block", ["p", "x"], ["q"], domain="own")]
    found = look(graph_model(calls, [models.floats("x", 2, 2)], [models.floats("q", 2, 2)],
                             functions=[function], opset_imports=opsets))
    assert found["details"]["matmul_layers"] == 2
    assert found["details"]["macs"] is None


def hostile(*nodes, **options):
    graph = [helper.make_node(*node) for node in nodes]
    return graph_model(graph, [], [], **options).SerializeToString()


def recursive_functions():
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("own", 1)]
    node = helper.make_node("A", ["a"], ["o"], domain="own")
    function = helper.make_function("own", "A", ["a"], ["o"], [node], opsets)
    call = helper.make_node("A", ["x"], ["y"], domain="own")
    return graph_model([call], [], [], functions=[function], opset_imports=opsets).SerializeToString()


def nested(depth):
    graph = helper.make_graph([], "g", [], [])
    for _ in range(depth):
        node = helper.make_node("If", [], [], then_branch=graph)
        graph = helper.make_graph([node], "g", [], [])
    return helper.make_model(graph).SerializeToString()


HOSTILE = {
    "not protobuf": (b"PK\x03\x04 not a model", "not an ONNX model"),
    "no graph": (b"\x08\x07", "it has no graph"),
    "length past the end": (b"\x3a\xff\xff\xff\xff\x0f", "byte 0"),
    "length of 64 bits": (b"\x3a" + b"\xff" * 9 + b"\x01", "byte 0"),
    "cut off": (models.vgg16().SerializeToString()[:-7], "truncated"),
    "too deep": (nested(40), "deep"),
    "a function that calls itself": (recursive_functions(), "calls itself"),
    "negative dimension": (
        graph_model([], [], [], [TensorProto(name="w", dims=[-4], data_type=1)]).SerializeToString(),
        "negative dimension"),
    "too many elements": (
        graph_model([], [], [], [TensorProto(name="w", dims=[2**40] * 2, data_type=1)]).SerializeToString(),
        "more elements than can be counted"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused(run_waap, tmp_path, case):
    data, said = HOSTILE[case]
    path = tmp_path / "hostile.onnx"
    path.write_bytes(data)
    done = run_waap("model", path)
    assert done.returncode == 1 and done.stdout == ""
    assert f"{path}: " in done.stderr and said in done.stderr


def test_files_that_are_none(run_waap, tmp_path):
    (tmp_path / "empty.onnx").touch()
    for path, said in ((tmp_path / "empty.onnx", "empty"), (tmp_path, "not a regular file"),
                       (tmp_path / "absent.onnx", "No such file")):
        done = run_waap("model", path)
        assert done.returncode == 1 and said in done.stderr
    assert run_waap("model").returncode == 2
    assert run_waap("model", "--wrong").returncode == 2


# A child's peak begins with what its parent holds, so the parent is a small one.
MEASURE = """
import os, subprocess, sys
program = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(program.pid, 0)
program.returncode = os.waitstatus_to_exitcode(status)
print(usage.ru_maxrss * 1024, file=sys.stderr)
sys.exit(program.returncode)
"""


def peak_memory(*command):
    """Of a program until its end, in bytes, with what it wrote."""
    small = [sys.executable, "-c", MEASURE, *command]
    done = subprocess.run(small, capture_output=True, text=True, timeout=60, check=True)
    return int(done.stderr), done.stdout


def test_weights_are_not_touched(waap_binary, tmp_path):
    """550 MB in the file take hardly more memory than the same model without them."""
    large, small = tmp_path / "large.onnx", tmp_path / "small.onnx"
    models.write_large(models.vgg16(), large)
    small.write_bytes(models.vgg16().SerializeToString())
    assert large.stat().st_size > 500e6
    peak, output = peak_memory(waap_binary, "model", large, "--json")
    usual, _ = peak_memory(waap_binary, "model", small, "--json")
    assert json.loads(output)["total_parameters"] == 138357544
    assert peak - usual < 8 << 20
