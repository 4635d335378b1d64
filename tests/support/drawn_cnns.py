"""Small convolutional networks drawn by hypothesis, and the reorders that ONNX Runtime puts into a model."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from rlflow.cost.blocked_layout import Reorder
from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref
from rlflow.onnx_io import from_onnx
from rlflow.runtime.session import fused_model

CHANNELS = (3, 4, 8, 12, 16, 18, 20, 24, 32, 48)
SIZE = 6
OPERATORS = (
    *("conv", "conv", "conv", "conv", "depthwise", "grouped", "max", "average", "global", "normal", "add", "add"),
    *("multiply", "concat", "relu", "sigmoid", "clip", "leaky", "swish", "scale", "shift", "factor", "plain", "pad"),
    *("slice", "last", "normal row"),
)


class _Network:
    """Images by name with their channels and size. What is drawn from them is added, but never the same twice: which of
    two equal nodes ONNX Runtime keeps depends on more than the layout does."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.images: dict[str, tuple[int, int]] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.made: dict[tuple[str, tuple[str, ...], str], str] = {}
        self.weights: list[onnx.TensorProto] = []

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        values = np.abs(np.asarray(self.rng.standard_normal(shape), np.float32))
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def numbers(self, *values: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def add(self, op: str, operands: Sequence[str], channels: int, size: int, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        content = op, tuple(operands), repr(attributes)
        if content in self.made:
            return self.made[content]
        self.made[content] = name
        self.nodes.append(helper.make_node(op, list(operands), [name], **attributes))
        self.images[name] = channels, size
        return name

    def conv(self, x: str, channels: int, group: int, kernel: int) -> None:
        before, size = self.images[x]
        weights = [self.weight(channels, before // group, kernel, kernel)]
        if self.rng.random() < 0.5:
            weights.append(self.weight(channels))
        self.add("Conv", [x, *weights], channels, size, group=group, pads=[kernel // 2] * 4)

    def model(self) -> onnx.ModelProto:
        read = {name for node in self.nodes for name in node.input}
        inputs = [name for name in self.images if name.startswith("x")]
        outputs = [name for name in self.images if name not in read and name not in inputs]
        shapes = {name: (1, channels, size, size) for name, (channels, size) in self.images.items()}
        values = [
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shapes.get(name)) for name in names]
            for names in (inputs, outputs)
        ]
        graph = helper.make_graph(self.nodes, "drawn", *values, initializer=self.weights)
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])


@st.composite
def networks(draw: st.DrawFn, most: int = 12) -> onnx.ModelProto:
    """A network over one or two images; every value that nobody reads is an output.

    Left out is what ONNX Runtime fuses over more than two operators, as the module of the layout says.
    """
    net = _Network(np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    for index in range(draw(st.integers(1, 2))):
        net.images[f"x{index}"] = draw(st.sampled_from(CHANNELS)), SIZE
    for _ in range(draw(st.integers(1, most))):
        _add_drawn(draw, net, draw(st.sampled_from(OPERATORS)), draw(st.sampled_from(sorted(net.images))))
    if not net.nodes:
        net.conv("x0", 16, 1, 1)
    return net.model()


def _add_drawn(draw: st.DrawFn, net: _Network, kind: str, x: str) -> None:
    channels, size = net.images[x]
    alike = [name for name, image in net.images.items() if image == (channels, size)]
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    match kind:
        case "conv":
            net.conv(x, draw(st.sampled_from(CHANNELS)), 1, draw(st.sampled_from([1, 3])))
        case "depthwise":
            net.conv(x, channels, channels, 3)
        case "grouped" if channels % 2 == 0:
            net.conv(x, draw(st.sampled_from([c for c in CHANNELS if c % 2 == 0])), 2, 1)
        case "max":
            net.add("MaxPool", [x], channels, size, **window)
        case "average":
            net.add("AveragePool", [x], channels, size, **window)
        case "global":
            net.add("GlobalAveragePool", [x], channels, 1)
        case "normal":
            net.add("BatchNormalization", [x, *(net.weight(channels) for _ in range(4))], channels, size)
        case "add":
            broad = [name for name, image in net.images.items() if image in ((channels, size), (channels, 1))]
            net.add("Add", [x, draw(st.sampled_from(broad))], channels, size)
        case "multiply":
            net.add("Mul", [x, draw(st.sampled_from(alike))], channels, size)
        case "concat":
            others = [name for name, image in net.images.items() if image[1] == size]
            joined = [x, *draw(st.lists(st.sampled_from(others), min_size=1, max_size=2))]
            net.add("Concat", joined, sum(net.images[name][0] for name in joined), size, axis=1)
        case "relu" | "sigmoid":
            net.add(kind.capitalize(), [x], channels, size)
        case "clip":
            low, high = net.weight(), net.weight()
            net.add("Clip", [x, low, high], channels, size)
        case "leaky":
            net.add("LeakyRelu", [x], channels, size, alpha=0.1)
        case "swish":
            net.add("HardSwish", [x], channels, size)
        case "scale":
            net.add("Mul", [x, net.weight(channels, 1, 1)], channels, size)
        case "shift":
            net.add("Add", [x, net.weight(channels, 1, 1)], channels, size)
        case "factor":
            net.add("Mul", [x, net.weight()], channels, size)
        case "plain":
            net.add("Softplus", [x], channels, size)
        case "pad" if size > 1:
            padded = net.add("Pad", [x, net.numbers(0, 0, 1, 1, 0, 0, 1, 1)], channels, size + 2)
            net.add("Conv", [padded, net.weight(16, channels, 3, 3)], 16, size)
        case "slice" if channels > 16:
            operands = [net.numbers(0), net.numbers(16), net.numbers(1)]
            net.add("Slice", [x, *operands], 16, size)
        case "last":
            turned = net.add("Transpose", [x], size, 1, perm=[0, 2, 3, 1])
            net.add("GlobalMaxPool", [turned], size, 1)
            net.images.pop(turned, None)
        case "normal row":
            turned = net.add("Transpose", [x], size, 1, perm=[0, 2, 3, 1])
            rows = net.add("LayerNormalization", [turned, net.weight(channels)], size, 1)
            back = net.add("Transpose", [rows], channels, size, perm=[0, 3, 1, 2])
            net.conv(back, draw(st.sampled_from(CHANNELS)), 1, 3)
            if draw(st.booleans()):
                net.conv(back, 16, 1, 1)
            for name in (turned, rows, back):
                net.images.pop(name, None)


def runtime_reorders(model: onnx.ModelProto) -> tuple[int, int]:
    """Count the reorders of the model that ONNX Runtime runs: into blocks, and out of them.

    One that puts the channels last stands for a Transpose of the model.
    """
    counted: Counter[str] = Counter()
    for node in fused_model(model).graph.node:
        counted[node.op_type] += not any(a.name == "channels_last" and a.i for a in node.attribute)
    return counted["ReorderInput"], counted["ReorderOutput"]


def counted(reorders: Sequence[Reorder]) -> tuple[int, int]:
    """Count reorders as `runtime_reorders` does."""
    out = sum(reorder.from_blocked for reorder in reorders)
    return len(reorders) - out, out


def without_twins(graph: Graph) -> Graph:
    """The graph in which nodes that compute the same are one, outputs apart, as ONNX Runtime makes it first."""
    while True:
        seen: dict[object, int] = {}
        for identifier in graph.order:
            node = graph.nodes[identifier]
            first = seen.setdefault((node.signature, node.inputs), identifier)
            if first != identifier and graph.output_nodes.isdisjoint((first, identifier)):
                indices = range(len(node.types))
                graph = graph.replace({}, {Ref(identifier, i): Ref(first, i) for i in indices})
                break
        else:
            return graph


def imported(model: onnx.ModelProto) -> Graph:
    return without_twins(from_onnx(model))
