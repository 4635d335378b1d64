"""The hash is of the expression: of its operators, attributes, operands, weights and types, and of nothing else."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.square_graphs import SQUARE, graph_of, node, random_graph, renumbered, source, weight

from rlflow import zoo
from rlflow.ir import Graph, Node, Ref, TensorType, structural_hash
from rlflow.onnx_io import from_onnx

WIDE = TensorType("float32", (4, 5))


def _product(a: int = 0, b: int = 2, *, op: str = "MatMul", digest: str = "w", **attributes: object) -> Graph:
    return graph_of([source("x"), source("z"), weight(digest), node(op, a, b, **attributes)], 3)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1))
def test_names_numbers_and_insertion_order_do_not_count(seed: int) -> None:
    graph = random_graph(seed)
    other = renumbered(graph, seed)
    assert set(graph.nodes).isdisjoint(other.nodes)
    assert structural_hash(other) == structural_hash(graph)
    assert [graph.nodes[i].op for i in graph.order] == [other.nodes[i].op for i in other.order]


def test_labels_do_not_count() -> None:
    plain, named = (Node("Relu", (Ref(0),), {}, (SQUARE,), ("r",), label=label) for label in ("", "layer 1"))
    assert structural_hash(graph_of([source(), plain], 1)) == structural_hash(graph_of([source(), named], 1))


DIFFERENT = {
    "operator": _product(op="Add"),
    "operand order": _product(2, 0),
    "another input": _product(1, 2),
    "weight": _product(digest="v"),
    "attribute": _product(alpha=1.0),
    "attribute value": _product(alpha=2.0),
    "attribute name": _product(beta=1.0),
    "operand absent": graph_of([source("x"), source("z"), weight(), node("MatMul", 0, 2, None)], 3),
    "operand type": graph_of([Node("Input", (), {}, (WIDE,), ("x",)), source("z"), weight(), node("MatMul", 0, 2)], 3),
    "result type": graph_of(
        [source("x"), source("z"), weight(), Node("MatMul", (Ref(0), Ref(2)), {}, (WIDE,), ("",))], 3
    ),
    "one more output": graph_of([source("x"), source("z"), weight(), node("MatMul", 0, 2)], 3, 0),
    "second result": graph_of([source("x"), source("z"), weight(), node("MatMul", 0, 2, outputs=2)], Ref(3, 1)),
    "first result": graph_of([source("x"), source("z"), weight(), node("MatMul", 0, 2, outputs=2)], Ref(3, 0)),
    "fewer inputs": graph_of([source("x"), weight(), node("MatMul", 0, 1)], 2),
}


def test_everything_else_counts() -> None:
    hashes = {name: structural_hash(graph) for name, graph in {"base": _product(), **DIFFERENT}.items()}
    assert len(set(hashes.values())) == len(hashes), hashes


def test_output_order_counts() -> None:
    nodes = [source(), node("Relu", 0), node("Tanh", 0)]
    assert structural_hash(graph_of(nodes, 1, 2)) != structural_hash(graph_of(nodes, 2, 1))


def test_distinct_random_graphs_have_distinct_hashes() -> None:
    graphs = [random_graph(seed, size=6) for seed in range(300)]
    texts = {tuple((n.op, n.inputs, str(n.attributes)) for n in g.nodes.values()) for g in graphs}
    assert len({structural_hash(g) for g in graphs}) >= 0.95 * len(texts)


SCRIPT = """
from rlflow import zoo
from rlflow.ir import structural_hash
from rlflow.onnx_io import from_onnx
print(structural_hash(from_onnx(zoo.build("loop"))), structural_hash(from_onnx(zoo.build("conv"))))
"""


def test_the_same_in_every_process(repository: Path) -> None:
    """Python salts the hash of text anew in each process."""
    import os

    here = [structural_hash(from_onnx(zoo.build(name))) for name in ("loop", "conv")]
    for salt in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": salt, "PYTHONPATH": str(repository / "src")}
        answer = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
        assert answer.stdout.split() == here, answer.stderr


@pytest.mark.parametrize("name", ["tiny_chain", "conv", "loop"])
def test_weights_of_a_model_count(name: str) -> None:
    assert structural_hash(from_onnx(zoo.build(name, seed=0))) != structural_hash(from_onnx(zoo.build(name, seed=1)))
    assert structural_hash(from_onnx(zoo.build(name, seed=1))) == structural_hash(from_onnx(zoo.build(name, seed=1)))


def test_an_imported_weight_counts_to_the_last_bit() -> None:
    model = zoo.build("tiny_chain")
    before = structural_hash(from_onnx(model))
    tensor = model.graph.initializer[0]
    values = np.frombuffer(tensor.raw_data, np.uint8).copy()
    values[-4] ^= 1
    tensor.raw_data = values.tobytes()
    assert structural_hash(from_onnx(model)) != before
