"""Facts of nodes, counted by hand."""

import numpy as np
import pytest
from support.cost_graphs import F32, graph, weight

from rlflow.cost.predicted.facts import BLOCK_CHANNELS, Convolution, FactReader, Kind, NodeFacts, Product
from rlflow.ir.dimension import over, plus
from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT, Node, Ref
from rlflow.ir.tensor_type import TensorType


def read(g: Graph, identifier: int) -> NodeFacts:
    return FactReader().facts(g, g.nodes[identifier], g.nodes[identifier].inputs)


def facts_of(nodes, inputs, outputs, weights=None, place: int = -1) -> NodeFacts:
    g = graph(nodes, inputs, outputs, weights)
    return read(g, g.order[place])


def test_a_product_with_a_weight_is_one_product_over_the_whole_batch() -> None:
    facts = facts_of([("MatMul", "x w", "y")], {"x": (2, 5, 8)}, {"y": (2, 5, 24)}, {"w": weight(8, 24)})
    assert facts.kind == Kind.PRODUCT
    assert facts.product == Product(batch=1, m=10, n=24, k=8)
    assert facts.flops == 2 * 10 * 24 * 8
    assert facts.product.padded_flops == 2 * 12 * 32 * 8, "rows are padded to sixes, columns to sixteens"
    assert facts.operand_bytes == (F32 * 80, F32 * 192)
    assert facts.result_bytes == (F32 * 240,)


def test_a_product_of_two_values_has_a_batch() -> None:
    facts = facts_of([("MatMul", "x z", "y")], {"x": (3, 5, 8), "z": (3, 8, 24)}, {"y": (3, 5, 24)})
    assert facts.product == Product(batch=3, m=5, n=24, k=8)


@pytest.mark.parametrize(("a", "b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_a_transposed_gemm_has_the_sizes_of_a_plain_one(a: int, b: int) -> None:
    shapes = [(5, 8)[:: -1 if a else 1], (8, 24)[:: -1 if b else 1]]
    nodes = [("Gemm", "x w", "y", {"transA": a, "transB": b})]
    facts = facts_of(nodes, {"x": shapes[0]}, {"y": (5, 24)}, {"w": weight(*shapes[1])})
    assert facts.product == Product(batch=1, m=5, n=24, k=8)


def test_a_product_with_a_vector() -> None:
    facts = facts_of([("MatMul", "x w", "y")], {"x": (5, 8)}, {"y": (5,)}, {"w": weight(8)})
    assert facts.product == Product(batch=1, m=5, n=1, k=8)


def convolution(groups: int, cin: int, cout: int, block: int = BLOCK_CHANNELS) -> Convolution:
    nodes = [("Conv", "x w", "y", {"group": groups, "strides": [2, 2], "pads": [1, 1, 1, 1]})]
    weights = {"w": weight(cout, cin // groups, 3, 3)}
    g = graph(nodes, {"x": (2, cin, 8, 8)}, {"y": (2, cout, 4, 4)}, weights)
    node = g.nodes[g.order[-1]]
    facts = FactReader(block=block).facts(g, node, node.inputs)
    assert facts.kind == Kind.CONVOLUTION
    assert facts.convolution is not None
    return facts.convolution


def test_a_convolution_by_hand() -> None:
    found = convolution(groups=1, cin=16, cout=24)
    assert found == Convolution(2, 16, 24, 1, kernel=9, stride=4, dilation=1, positions=16)
    assert found.columns == 2 * 16 * 9 * 16


@pytest.mark.parametrize(
    ("groups", "cin", "cout", "blocked"),
    [
        (1, 16, 24, True),
        (1, 3, 24, True),
        (1, 20, 24, True),
        (1, 18, 24, False),
        (16, 16, 16, True),
        (12, 12, 12, True),
        (18, 18, 18, False),
        (2, 32, 32, True),
        (4, 32, 32, False),
    ],
)
def test_what_is_computed_in_the_blocked_layout(groups: int, cin: int, cout: int, blocked: bool) -> None:
    assert convolution(groups, cin, cout).is_blocked == blocked


def test_groups_of_eight_channels_are_blocked_where_blocks_have_eight() -> None:
    """As AVX2 has them: there, a RegNet's groups need not be halved to be fast."""
    assert convolution(4, 32, 32, block=8).is_blocked
    assert not convolution(8, 32, 32, block=8).is_blocked


def test_runs_are_what_stays_together() -> None:
    shape = {"x": (2, 3, 4, 5)}
    transposed = facts_of([("Transpose", "x", "y", {"perm": [0, 2, 1, 3]})], shape, {"y": (2, 4, 3, 5)})
    assert (transposed.kind, transposed.run) == (Kind.MOVEMENT, 5)
    turned = facts_of([("Transpose", "x", "y", {"perm": [0, 1, 3, 2]})], shape, {"y": (2, 3, 5, 4)})
    assert turned.run == 1
    joined = facts_of([("Concat", "x x", "y", {"axis": 2})], shape, {"y": (2, 3, 8, 5)})
    assert joined.run == 4 * 5


def test_rows_are_what_is_added_up() -> None:
    softmax = facts_of([("Softmax", "x", "y", {"axis": -1})], {"x": (2, 3, 7)}, {"y": (2, 3, 7)})
    assert (softmax.kind, softmax.row, softmax.exponential) == (Kind.ROWS, 7, True)
    mean = facts_of([("ReduceMean", "x", "y", {"axes": [1, 2]})], {"x": (2, 3, 7)}, {"y": (2, 1, 1)})
    assert (mean.kind, mean.row) == (Kind.ROWS, 21)


def test_dynamic_dimensions_have_the_sizes_given() -> None:
    kind = TensorType("float32", ("batch", 4, None))
    assert FactReader({"batch": 8}).sized(kind).shape == (8, 4, 1)
    assert FactReader().sized(kind).shape == (1, 4, 1), "as everywhere, what is not known counts as one"


def test_of_a_value_without_a_type_nothing_is_counted() -> None:
    assert FactReader().sized(None).nbytes == 0


def test_an_operator_that_is_carried_has_the_bytes_of_its_operands_alone() -> None:
    g = graph([("Relu", "x", "y")], {"x": (2, 3)}, {"y": (2, 3)})
    kind = TensorType("float32", (2, 3))
    unknown = Node("some.Operator", (Ref(g.inputs[0]),), {}, (kind,), ("z",))
    g = g.replace({g.next_id: unknown}, {Ref(g.order[-1]): Ref(g.next_id)})
    facts = read(g, g.order[-1])
    assert g.nodes[g.inputs[0]].op == INPUT
    assert (facts.kind, facts.flops, facts.moved_bytes) == (Kind.OTHER, 0, 2 * 6 * F32)


def test_the_figures_are_whole_numbers() -> None:
    """So that no machine rounds them: every field that is a number, of a graph with most kinds in it."""
    nodes = [
        ("MatMul", "x w", "u"),
        ("Erf", "u", "v"),
        ("Transpose", "v", "t", {"perm": [1, 0]}),
        ("Softmax", "t", "y"),
    ]
    g = graph(nodes, {"x": (3, 5)}, {"y": (7, 3)}, {"w": np.ones((5, 7), np.float32)})
    for identifier in g.order:
        facts = read(g, identifier)
        assert all(isinstance(v, int) for v in (facts.flops, facts.run, facts.row, facts.moved_bytes, facts.elements))


def test_sizes_that_are_derived_are_those_of_the_sizes_given() -> None:
    """A convolution by 3 x 3 in steps of 2, of an image of 32, gives 15; of an unknown width, 1."""
    derived = TensorType("float32", (1, plus(over(plus("h", -3), 2), 1), plus("w", -2)))
    assert FactReader({"h": 32}).sized(derived).shape == (1, 15, 1)
