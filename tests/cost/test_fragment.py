"""A fragment computes what its nodes compute in the graph; its signature says what work it is and no more."""

import numpy as np
import pytest
from support.cost_graphs import graph, weight

from rlflow.cost.fragment import describe, extract
from rlflow.cost.regions import partition
from rlflow.ir.graph import Graph, make_graph
from rlflow.ir.node import Ref
from rlflow.onnx_io.standalone import standalone_model
from rlflow.ops.domain import FloatDomain
from rlflow.ops.reference import evaluate, evaluate_value
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import open_session, run

TOLERANCE = 64 * np.finfo(np.float32).eps


def signature(g: Graph, *ops: str) -> str:
    nodes = [i for i in g.order if not ops or g.nodes[i].op in ops]
    return describe(g, nodes).signature


def block(
    *,
    rows: int = 3,
    width: int = 4,
    seed: int = 0,
    scale: float = 0.5,
    axis: int = -1,
    prefix: str = "",
    operand: str = "u",
    keep: bool = False,
    leading: int = 0,
) -> Graph:
    """softmax(scale * (x w)), `leading` Relus before it; `keep` makes the product an output as well."""
    nodes = [("Relu", f"{prefix}x{i}", f"{prefix}x{i + 1}") for i in range(leading)]
    nodes += [
        ("MatMul", f"{prefix}x{leading} {prefix}w", f"{prefix}u"),
        ("Mul", f"{prefix}u {prefix}s" if operand == "u" else f"{prefix}s {prefix}u", f"{prefix}v"),
        ("Softmax", f"{prefix}v", f"{prefix}y", {"axis": axis}),
    ]
    outputs = {f"{prefix}y": (rows, width)} | ({f"{prefix}u": (rows, width)} if keep else {})
    weights = {f"{prefix}w": weight(width, width, seed=seed), f"{prefix}s": np.array(scale, np.float32)}
    return graph(nodes, {f"{prefix}x0": (rows, width)}, outputs, weights)


OPS = ("MatMul", "Mul", "Softmax")


@pytest.mark.parametrize(
    "same", [{"seed": 1}, {"prefix": "other/"}, {"leading": 3}, {"seed": 2, "leading": 1}, {"operand": "s"}]
)
def test_the_signature_ignores_weights_names_place_and_the_order_of_factors(same):
    assert signature(block(**same), *OPS) == signature(block(), *OPS)


@pytest.mark.parametrize(
    "different",
    [{"rows": 5}, {"width": 8}, {"scale": 0.25}, {"axis": 0}, {"keep": True}],
    ids=lambda d: next(iter(d)),
)
def test_the_signature_tells_work_apart(different):
    """Shapes, a literal that steers a fusion, an attribute, and which values leave the fragment."""
    assert signature(block(**different), *OPS) != signature(block(), *OPS)


def test_the_signature_knows_shared_operands_from_equal_ones():
    """x + x and x + y read operands of the same type; only one of them reads two."""
    shared = graph([("Add", "x x", "z")], {"x": (3, 4), "y": (3, 4)}, {"z": (3, 4)})
    apart = graph([("Add", "x y", "z")], {"x": (3, 4), "y": (3, 4)}, {"z": (3, 4)})
    assert signature(shared) != signature(apart)


def test_the_signature_ignores_ids():
    g = block()
    moved = {i: 1000 - i for i in g.nodes}
    nodes = {
        moved[i]: n.with_inputs(tuple(None if r is None else Ref(moved[r.node], r.index) for r in n.inputs))
        for i, n in g.nodes.items()
    }
    outputs = [Ref(moved[r.node], r.index) for r in g.outputs]
    other = make_graph(nodes, [moved[i] for i in g.inputs], outputs, g.output_names, g.header)
    assert set(other.order).isdisjoint(g.order)
    assert signature(other) == signature(g)


def test_layers_of_a_model_share_their_signatures(bert):
    """Twelve times the layers, but only as many prices as two layers have."""

    def prices(layers: int) -> set[str]:
        g = bert(layers=layers)
        return {describe(g, region).signature for region in partition(g).regions}

    assert prices(12) == prices(2)
    assert len(partition(bert(layers=12)).regions) > 5 * len(prices(12))


def test_a_fragment_computes_what_the_graph_computes(bert):
    """Each region of a small BERT, fed with the values of the whole graph; its weights must be the graph's, so the
    small weights (kept literally) are compared by value and the large ones are put back.
    """
    g = bert(layers=1)
    model = standalone_model(g)
    values = {Ref(i): v for i, v in zip(g.inputs, draw_inputs(model, np.random.default_rng(0)).values(), strict=True)}
    for ref in g.outputs:
        evaluate_value(g.nodes, ref, values, FloatDomain())
    compared = 0
    for region in partition(g).regions:
        fragment = describe(g, region)
        part = extract(g, fragment)
        external = list(dict.fromkeys(r for i in region for r in g.nodes[i].inputs if r and r.node not in region))
        leaves = [i for i in sorted(part.nodes) if not part.nodes[i].inputs]
        known = {Ref(leaf): values[ref] for leaf, ref in zip(leaves, external, strict=True)}
        inner = [Ref(i, k) for i in region for k in range(len(g.nodes[i].types))]
        leaving = [r for r in inner if r in g.outputs or any(c not in region for c in g.consumers[r.node])]
        assert len(leaving) == len(part.outputs)
        for ref, out in zip(leaving, part.outputs, strict=True):
            assert np.array_equal(evaluate_value(part.nodes, out, dict(known), FloatDomain()), values[ref])
            compared += 1
    assert compared >= len(partition(g).regions)


def test_an_extracted_fragment_runs_and_agrees_with_the_reference(bert):
    """On ONNX Runtime, as it is timed: literals have their values, weights have arbitrary ones, but the same ones."""
    g = bert(layers=1)
    for region in partition(g).regions:
        part = extract(g, describe(g, region))
        model = standalone_model(part)
        feeds = draw_inputs(model, np.random.default_rng(0))
        expected = evaluate(part, feeds)
        for name, value in run(open_session(model, "as_written"), feeds).items():
            bound = TOLERANCE * max(1.0, float(np.abs(expected[name]).max()))
            assert np.abs(value - expected[name]).max() <= bound, [g.nodes[i].op for i in region]


def test_literals_keep_their_values_and_large_weights_do_not():
    g = block(scale=0.125)
    part = extract(g, describe(g, [i for i in g.order if g.nodes[i].op in OPS]))
    kept = {n.types[0].shape: n.payload.array() for n in part.nodes.values() if n.op == "Weight"}
    assert kept[()] == np.float32(0.125)
    drawn = kept[(4, 4)]
    assert drawn.dtype == np.float32
    assert np.std(drawn) > 0
    assert not np.array_equal(drawn, weight(4, 4))


def test_integer_weights_are_kept():
    """Indices are no arbitrary numbers: a Gather by drawn ones would leave its table."""
    indices = np.array([5, 0, 3, 3, 1, 4, 2, 0, 1, 2])
    g = graph([("Gather", "x i", "y", {"axis": 0})], {"x": (6, 4)}, {"y": (10, 4)}, {"i": indices})
    part = extract(g, describe(g, g.order))
    assert any(np.array_equal(n.payload.array(), indices) for n in part.nodes.values() if n.op == "Weight")
