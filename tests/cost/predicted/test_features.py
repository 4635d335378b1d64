"""Features: known regions by hand, and what they must not depend on."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.cost_graphs import F32, graph, weight
from support.strategies import graphs

from rlflow.cost.fragment import describe, extract
from rlflow.cost.predicted.features import FeatureReader, Features
from rlflow.cost.regions import partition
from rlflow.ir.graph import Graph, make_graph
from rlflow.ir.node import Ref
from rlflow.ops.registry import OPERATORS


def features(g: Graph) -> Features:
    return FeatureReader().features(g, g.order)


def seen(found: Features) -> tuple[object, ...]:
    """What the trees see."""
    return found.numbers, found.grams, found.border


def gelu(order: str = "u half") -> Graph:
    """x w, then half of it times (1 + erf), the factor on either side."""
    one, half = (np.array(v, np.float32) for v in (1.0, 0.5))
    nodes = [("MatMul", "x w", "u"), ("Erf", "u", "e"), ("Add", "e one", "f"), ("Mul", order, "h"), ("Mul", "h f", "y")]
    return graph(nodes, {"x": (3, 4)}, {"y": (3, 6)}, {"w": weight(4, 6), "one": one, "half": half})


def test_the_numbers_of_a_region_by_hand() -> None:
    numbers = features(gelu()).numbers
    assert numbers["nodes"] == numbers["launches"] == 5
    assert numbers["bytes in"] == 3 * 4 * F32
    assert numbers["bytes weights"] == (4 * 6 + 2) * F32
    assert numbers["bytes out"] == 3 * 6 * F32
    assert numbers["bytes inside"] == 4 * 3 * 6 * F32
    assert (numbers["product m"], numbers["product n"], numbers["product k"]) == (3, 6, 4)
    assert numbers["product second is constant"] == 1
    assert numbers["product flops"] == 2 * 3 * 6 * 4
    assert numbers["elementwise nodes"] == 4
    assert numbers["inexact elements"] == 18, "of Erf alone"
    assert numbers["elementwise one elements"] == 2 * 18
    assert numbers["convolution nodes"] == numbers["rows"] == numbers["movement runs"] == 0


def test_the_grams_of_a_region_by_hand() -> None:
    grams = features(gelu()).grams
    assert grams["MatMul(value, weight)"] == 1
    assert grams["Erf(MatMul =)"] == 1
    assert grams["Mul(MatMul =, literal one)"] == 1
    assert grams["=Mul literal 0.5"] == grams["=Add literal 1"] == 1
    assert grams["Erf > Add"] == grams["MatMul > Erf > Add"] == 1
    assert grams["MatMul read by 2"] == 1


def test_a_bias_is_spread_along_rows() -> None:
    nodes = [("MatMul", "x w", "u"), ("Add", "u b", "y")]
    found = features(graph(nodes, {"x": (3, 4)}, {"y": (3, 6)}, {"w": weight(4, 6), "b": weight(6)}))
    assert found.grams["Add(MatMul =, literal row)"] == 1, "six elements steer fusions, as far as anyone knows"
    nodes = [("Mul", "x s", "y")]
    found = features(graph(nodes, {"x": (3, 9), "s": (3, 1)}, {"y": (3, 9)}))
    assert found.grams["Mul(value =, value column)"] == 1


def test_a_factor_on_either_side_is_the_same() -> None:
    assert seen(features(gelu("u half"))) == seen(features(gelu("half u")))


@st.composite
def rearranged(draw: st.DrawFn) -> tuple[Graph, Graph]:
    """A graph, and the same with other ids and with operands of commutative operators in another order."""
    g = draw(graphs())
    shift = draw(st.integers(1, 50))
    nodes = {}
    for identifier, node in g.nodes.items():
        operands = [None if ref is None else Ref(ref.node + shift, ref.index) for ref in node.inputs]
        operator = OPERATORS.get(node.op)
        if operator is not None and operator.commutative:
            operands = draw(st.permutations(operands))
        nodes[identifier + shift] = node.with_inputs(tuple(operands)).with_names(("other",) * len(node.types))
    outputs = [Ref(ref.node + shift, ref.index) for ref in g.outputs]
    return g, make_graph(nodes, [i + shift for i in g.inputs], outputs, g.output_names, g.header)


@given(rearranged())
def test_names_ids_and_the_order_of_operands_do_not_count(pair: tuple[Graph, Graph]) -> None:
    first, second = pair
    assert seen(features(first)) == seen(features(second))


@given(graphs())
def test_a_region_by_itself_has_the_features_that_it_has_in_its_graph(g: Graph) -> None:
    """What is learned from a fragment holds for the region; and equal signatures have equal features."""
    reader, by_signature = FeatureReader(), {}
    for region in partition(g).regions:
        fragment = describe(g, region)
        inside, alone = reader.features(g, region), features(extract(g, fragment))
        assert seen(inside) == seen(alone)
        assert by_signature.setdefault(fragment.signature, seen(inside)) == seen(inside)


@given(graphs())
def test_all_regions_have_the_same_numbers_in_the_same_order(g: Graph) -> None:
    assert list(features(g).numbers) == list(features(gelu()).numbers)


def test_what_was_read_before_makes_no_difference() -> None:
    reader, g = FeatureReader(), gelu()
    first = reader.features(g, g.order)
    other = replace(g, edit=None)
    assert seen(reader.features(other, other.order)) == seen(first) == seen(features(g))


def test_the_features_depend_on_what_leaves_the_region() -> None:
    """The product's result is an output as well: more is written, and it cannot be fused away."""
    nodes = [("MatMul", "x w", "u"), ("Relu", "u", "y")]
    weights = {"w": weight(4, 6)}
    inner = features(graph(nodes, {"x": (3, 4)}, {"y": (3, 6)}, weights))
    outer = features(graph(nodes, {"x": (3, 4)}, {"y": (3, 6), "u": (3, 6)}, weights))
    assert outer.border.bytes_out == 2 * inner.border.bytes_out
    assert outer.grams["MatMul read inside and outside"] == 1


def normalised(*between: tuple[str, str, str], bias: bool = False) -> Graph:
    """A convolution, perhaps something else, a normalisation and Relu."""
    weights = {name: weight(8) for name in ("bstmv" if bias else "stmv")} | {"w": weight(8, 4, 3, 3)}
    source = between[-1][2] if between else "c"
    nodes = [
        ("Conv", "x w b" if bias else "x w", "c", {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}),
        *between,
        ("BatchNormalization", f"{source} s t m v", "n"),
        ("Relu", "n", "y"),
    ]
    return graph(
        nodes, {"x": (1, 4, 6, 6)}, {"y": (1, 8, 6, 6)}, {n: a for n, a in weights.items() if n != "b" or bias}
    )


def test_a_normalisation_that_a_convolution_takes_up_is_its_bias() -> None:
    """ONNX Runtime folds it when it opens the model: a rewrite that folds it changes nothing, and so no price."""
    nodes = [
        ("Conv", "x w b", "c", {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}),
        ("Relu", "c", "y"),
    ]
    weights = {"w": weight(8, 4, 3, 3), "b": weight(8)}
    folded = seen(features(graph(nodes, {"x": (1, 4, 6, 6)}, {"y": (1, 8, 6, 6)}, weights)))
    assert seen(features(normalised())) == seen(features(normalised(bias=True))) == folded
    apart = features(normalised(("Sigmoid", "c", "u")))
    assert apart.numbers["nodes"] == 4, "a normalisation of something else is work of its own"


def test_padding_that_a_window_takes_up_is_its_own() -> None:
    """A Pad before a convolution costs what the convolution's own pads cost; one with another value is a copy."""

    def padded(*, value: float) -> Features:
        return features(
            graph(
                [("Pad", "x p v", "a"), ("Conv", "a w", "y", {"kernel_shape": [3, 3]})],
                {"x": (1, 4, 6, 6)},
                {"y": (1, 8, 6, 6)},
                {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "v": np.float32(value), "w": weight(8, 4, 3, 3)},
            )
        )

    conv = ("Conv", "x w", "y", {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]})
    alone = features(graph([conv], {"x": (1, 4, 6, 6)}, {"y": (1, 8, 6, 6)}, {"w": weight(8, 4, 3, 3)}))
    taken_up = padded(value=0.0)
    assert taken_up.border == alone.border
    assert taken_up.grams == alone.grams
    assert padded(value=1.0).numbers["nodes"] == 2


def test_a_mask_is_seen_by_the_softmax_behind_it() -> None:
    """Numbers far below the others are slow to exponentiate: the same Softmax takes another time behind a mask."""
    g = graph([("Add", "x m", "u"), ("Softmax", "u", "y")], {"x": (2, 8, 8), "m": (8, 8)}, {"y": (2, 8, 8)})
    assert len(partition(g).regions) == 1
    assert features(g).grams["Add > Softmax.0"] == 1
