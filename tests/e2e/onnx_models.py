"""ONNX models made for tests, and what Debian's python3-onnx finds in them."""

import random

import numpy
import onnx
from onnx import TensorProto, helper, shape_inference


def external(name, *dims):
    """Weights that are said to be in another file, so that any number of them takes no room."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    return tensor


def ints(name, *numbers):
    return helper.make_tensor(name, TensorProto.INT64, [len(numbers)], numbers)


def floats(name, *dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


class Net:
    """A chain of layers; every call appends one behind the last."""

    def __init__(self, *input_dims):
        self.nodes, self.weights = [], []
        self.at = "input"
        self.input = floats("input", *input_dims)

    def add(self, op_type, *more_inputs, more_outputs=0, **attributes):
        output = f"v{len(self.nodes)}"
        others = [f"{output}_{i}" for i in range(more_outputs)]
        node = helper.make_node(op_type, [self.at, *more_inputs], [output, *others], **attributes)
        self.nodes.append(node)
        self.at = output
        return self

    def weight(self, *dims):
        name = f"w{len(self.weights)}"
        self.weights.append(external(name, *dims))
        return name

    def conv(self, filters, channels, *kernel, **attributes):
        weights = self.weight(filters, channels // attributes.get("group", 1), *kernel)
        return self.add("Conv", weights, self.weight(filters), **attributes)

    def gemm(self, outputs, inputs):
        weights = self.weight(outputs, inputs)
        return self.add("Gemm", weights, self.weight(outputs), transB=1)

    def ints(self, *numbers):
        name = f"w{len(self.weights)}"
        self.weights.append(ints(name, *numbers))
        return name

    def reshape(self, *dims):
        return self.add("Reshape", self.ints(*dims))

    def model(self, output_dims=None, **options):
        output = floats(self.at, *output_dims) if output_dims else onnx.ValueInfoProto(name=self.at)
        if not output_dims:
            output.type.tensor_type.elem_type = TensorProto.FLOAT
        graph = helper.make_graph(self.nodes, "net", [self.input], [output], self.weights)
        opsets = [helper.make_opsetid("", 13)]
        return helper.make_model(graph, producer_name="tests", opset_imports=opsets, **options)


def vgg16():
    net = Net("batch", 3, 224, 224)
    channels = 3
    for filters, repeats in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(repeats):
            net.conv(filters, channels, 3, 3, pads=[1, 1, 1, 1]).add("Relu")
            channels = filters
        net.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    net.add("Flatten").gemm(4096, 25088).add("Relu").gemm(4096, 4096).add("Relu").gemm(1000, 4096)
    return net.model([1, 1000])


def alexnet():
    net = Net(1, 3, 224, 224)
    net.conv(96, 3, 11, 11, strides=[4, 4]).add("Relu").add("LRN", size=5)
    net.add("MaxPool", kernel_shape=[3, 3], strides=[2, 2])
    net.conv(256, 96, 5, 5, pads=[2, 2, 2, 2], group=2).add("Relu").add("LRN", size=5)
    net.add("MaxPool", kernel_shape=[3, 3], strides=[2, 2])
    net.conv(384, 256, 3, 3, pads=[1, 1, 1, 1]).add("Relu")
    net.conv(384, 384, 3, 3, pads=[1, 1, 1, 1], group=2).add("Relu")
    net.conv(256, 384, 3, 3, pads=[1, 1, 1, 1], group=2).add("Relu")
    net.add("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1])
    net.reshape(1, 9216).gemm(4096, 9216).add("Relu").gemm(4096, 4096).add("Relu")
    net.gemm(1000, 4096).reshape(1, 1000)
    return net.model([1, 1000])


def random_net(seed):
    """Layers of many kinds, of which only the input's form is in the file."""
    choice = random.Random(seed)
    channels = choice.choice((3, 4, 8))
    net = Net(choice.choice((1, 2, "n")), channels, choice.randint(24, 48), choice.randint(24, 48))
    for _ in range(choice.randint(3, 9)):
        kind = choice.randrange(12)
        kernel = [choice.choice((1, 3)), choice.choice((1, 2, 3))]
        strides = [choice.choice((1, 2)), 1]
        if kind == 0:
            filters = choice.choice((4, 8, 12))
            group = choice.choice((1, 2, channels)) if channels % 2 == 0 else 1
            filters = filters if filters % group == 0 else group
            pads = [choice.randint(0, 1) for _ in range(4)]
            net.conv(filters, channels, *kernel, group=group, strides=strides, pads=pads)
            channels = filters
        elif kind == 1:
            net.conv(8, channels, *kernel, auto_pad="SAME_UPPER", strides=strides)
            channels = 8
        elif kind == 2:
            net.add("AveragePool", kernel_shape=kernel, strides=strides, ceil_mode=0)
        elif kind == 3:
            left = net.at
            net.add("Relu").add("Add", left)
        elif kind == 4:
            left = net.at
            net.add("Sigmoid").add("Concat", left, axis=1)
            channels *= 2
        elif kind == 5:
            weights = net.weight(channels, 4, 2, 2)
            net.add("ConvTranspose", weights, strides=[2, 1])
            channels = 4
        elif kind == 6:
            net.add("Pad", net.ints(0, 0, choice.randint(0, 3), 1, 0, 0, 2, choice.randint(0, 2)))
        elif kind == 7:
            scales = helper.make_tensor(f"w{len(net.weights)}", TensorProto.FLOAT, [4], [1, 1, 2, 1.5])
            net.weights.append(scales)
            net.add("Resize", "", scales.name)
        elif kind == 8:
            steps = net.ints(choice.choice((1, 2)), -1)
            net.add("Slice", net.ints(1, -2), net.ints(1000, 3), net.ints(2, -1), steps)
        elif kind == 9:
            parts = net.ints(2, channels - 2) if channels > 2 else net.ints(1, channels - 1)
            net.add("Split", parts, axis=1, more_outputs=1)
            channels = 2 if channels > 2 else 1
        elif kind == 10 and channels % 4 == 0:
            net.add("DepthToSpace", blocksize=2)
            channels //= 4
        else:
            weights = [net.weight(channels) for _ in range(4)]
            net.add("Transpose", perm=[0, 1, 3, 2]).add("BatchNormalization", *weights)
    tail = choice.randrange(3)
    if tail == 0:
        net.add("GlobalAveragePool").conv(10, channels, 1, 1)
    elif tail == 1:
        net.add("GlobalAveragePool").add("Flatten").gemm(10, channels)
    else:
        net.add("GlobalAveragePool").add("Flatten").add("MatMul", net.weight(channels, 10))
    return net.model()


def compatible(model):
    """The five counts by the rules of the original service, with the official reader."""
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    makers = {name: node for node in model.graph.node for name in node.output}

    def behind(node, op_type):
        return node.input[0] in makers and makers[node.input[0]].op_type == op_type

    found = dict.fromkeys(("conv_layers", "fc_layers", "filter_details", "pool_layers"), 0)
    for node in model.graph.node:
        weight = weights.get(node.input[1]) if len(node.input) > 1 else None
        if node.op_type == "Conv" and weight is not None and len(weight.dims) > 0:
            found["conv_layers"] += 1
            found["filter_details"] += weight.dims[0]
            found["fc_layers"] += behind(node, "GlobalAveragePool")
        found["pool_layers"] += node.op_type in ("MaxPool", "AveragePool", "GlobalAveragePool")
        found["fc_layers"] += node.op_type == "Gemm" or (
            node.op_type == "MatMul" and (behind(node, "Flatten") or weight is not None))
    found["total_parameters"] = sum(
        int(numpy.prod(tensor.dims, dtype=object)) for tensor in model.graph.initializer)
    return found


def macs(model):
    """Multiplications by the official shape inference; the batch is 1 where it is open."""
    graph = shape_inference.infer_shapes(model, strict_mode=True).graph
    forms = {}
    for value in (*graph.input, *graph.output, *graph.value_info):
        dims = value.type.tensor_type.shape.dim
        forms[value.name] = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in dims]
    forms.update((tensor.name, list(tensor.dims)) for tensor in graph.initializer)

    def size(dims):
        return int(numpy.prod(dims, dtype=object))

    total = 0
    for node in graph.node:
        inputs = [forms.get(name) for name in node.input]
        if node.op_type == "Conv":
            total += size(forms[node.output[0]]) * size(inputs[1][1:])
        elif node.op_type == "ConvTranspose":
            total += size(inputs[0]) * size(inputs[1][1:])
        elif node.op_type in ("Gemm", "MatMul"):
            total += size(forms[node.output[0]]) * inputs[0][-1]
    return total


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def write_large(model, path):
    """Writes the model with all its weights inside, as holes that take no room on the disk: files of
    this size cannot be made by way of protobuf's library in reasonable time."""
    tensors = []
    for tensor in model.graph.initializer:
        lean = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        hole = 4 * int(numpy.prod(tensor.dims, dtype=object))
        head = lean.SerializeToString() + b"\x4a" + varint(hole)  # raw_data
        tensors.append((b"\x2a" + varint(len(head) + hole) + head, hole))
    rest = onnx.ModelProto()
    rest.CopyFrom(model)
    graph = rest.graph.__class__()
    graph.CopyFrom(rest.graph)
    del graph.initializer[:]
    rest.ClearField("graph")
    body = graph.SerializeToString()
    length = len(body) + sum(len(head) + hole for head, hole in tensors)
    with open(path, "wb") as file:
        file.write(rest.SerializeToString() + b"\x3a" + varint(length) + body)
        for head, hole in tensors:
            file.write(head)
            file.seek(hole, 1)
        file.truncate()
