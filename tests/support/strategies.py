"""Well-typed graphs drawn by hypothesis: operators of the library over small float tensors."""

import numpy as np
from hypothesis import strategies as st
from onnx import numpy_helper

from rlflow.errors import TypeInferenceError
from rlflow.ir import INPUT, WEIGHT, Attributes, Graph, Header, Node, Ref, TensorType, make_graph
from rlflow.onnx_io.payload import InitializerPayload
from rlflow.ops import registry

BINARY = ("Add", "Mul", "MatMul", "Sub", "Sum")
UNARY = ("Relu", "Tanh", "Neg", "Transpose", "Softmax", "Reshape")


def weight(values: np.ndarray, name: str = "") -> Node:
    """A stored tensor."""
    kind = TensorType(str(values.dtype), values.shape)
    return Node(WEIGHT, (), {}, (kind,), (name,), True, InitializerPayload(numpy_helper.from_array(values, name)))


def source(shape: tuple[int, ...], name: str) -> Node:
    """A float32 input."""
    return Node(INPUT, (), {}, (TensorType("float32", shape),), (name,))


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 14, opset: int = 17, least_nodes: int = 2) -> Graph:
    """A graph of two inputs, four weights and up to `max_nodes` further operators, constant expressions included; of
    `least_nodes` that are drawn, those that do not fit are left out.

    Every value that nobody reads is an output. Operands are drawn from all values, so that sharing is common.
    """
    batch, m, k = (draw(st.integers(1, 3)) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shapes = [(k, m), (m, k), (k,), ()]
    nodes = [source((batch, m, k), "x"), source((m, k), "y")]
    nodes += [weight(rng.standard_normal(shape).astype(np.float32), f"w{i}") for i, shape in enumerate(shapes)]
    for _ in range(draw(st.integers(least_nodes, max_nodes))):
        op = draw(st.sampled_from(BINARY + UNARY))
        operands = [draw(st.integers(0, len(nodes) - 1)) for _ in range(2 if op in BINARY else 1)]
        try:
            made = registry.apply(
                op,
                _attributes(draw, op, nodes[operands[0]]),
                [(Ref(i), nodes[i].types[0], nodes[i].constant) for i in operands],
            )
        except TypeInferenceError:
            continue
        nodes.append(made.with_names((f"{op.lower()}_{len(nodes)}",)))
    read = {ref.node for node in nodes for ref in node.inputs if ref is not None}
    outputs = [Ref(i) for i, node in enumerate(nodes) if i not in read and not node.constant] or [Ref(0)]
    names = [f"output_{i}" for i in range(len(outputs))]
    return make_graph(dict(enumerate(nodes)), [0, 1], outputs, names, Header(opset))


def _attributes(draw: st.DrawFn, op: str, operand: Node) -> Attributes:
    kind = operand.types[0]
    assert kind is not None
    rank = len(kind.shape or ())
    if op == "Transpose":
        return {"perm": tuple(draw(st.permutations(range(rank))))}
    if op == "Reshape":
        return {"shape": (kind.elements,)}
    return {"axis": -1} if op == "Softmax" else {}
