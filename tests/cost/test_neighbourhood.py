"""Neighbourhoods are written alike where prices change alike, and differently for whatever a price may depend on."""

import random
from collections.abc import Hashable

import numpy as np
import pytest
from support.cost_graphs import graph, weight
from support.prices import drawn_prices
from support.walks import REWRITER

from rlflow.cost.fragment import describe
from rlflow.cost.neighbourhood import Neighbourhoods
from rlflow.cost.regions import partition
from rlflow.ir.preview import preview
from rlflow.rules.matching.rewriter import Rewriter

X = (4, 8)
RULE = "scale-to-left-operand"  # (x w) s => (x s) w


def keys(g):
    """The texts of all places at which a rule applies."""
    model = drawn_prices()
    found = [m for matches in REWRITER.matches(g) for m in matches if m.rule.name == RULE]
    return [model.surroundings(g, preview(g, *REWRITER.edit(g, match))).key for match in found]


def layers(scales=(2.0, 2.0), width=(8, 8), last="Relu"):
    """Three layers x -> relu((x w) s) e with weights of their own, of which the last two may differ otherwise.

    The first reads an input, which is another neighbourhood in any case.
    """
    nodes, weights, value, dims = [], {}, "x", X[1]
    for i, (scale, out, end) in enumerate(zip((2.0, *scales), (8, *width), ("Relu", "Relu", last), strict=True)):
        weights |= {f"w{i}": weight(dims, out, seed=i), f"s{i}": np.float32(scale).reshape(())}
        weights[f"e{i}"] = weight(out, out, seed=i + 5)
        nodes += [
            ("MatMul", f"{value} w{i}", f"p{i}"),
            ("Mul", f"p{i} s{i}", f"q{i}"),
            (end, f"q{i}", f"r{i}"),
            ("MatMul", f"r{i} e{i}", f"o{i}"),
        ]
        value, dims = f"o{i}", out
    return graph([*nodes, ("Relu", value, "y")], {"x": X}, {"y": (X[0], dims)}, weights)


def test_layers_that_differ_in_their_weights_alone_are_written_alike():
    _, first, second = keys(layers())
    assert first == second


@pytest.mark.parametrize(
    "difference", [{"scales": (2.0, 3.0)}, {"width": (8, 16)}, {"last": "Tanh"}], ids=["literal", "type", "reader"]
)
def test_whatever_a_price_may_depend_on_is_written(difference):
    _, first, second = keys(layers(**difference))
    assert first != second


def test_the_same_weight_read_twice_is_written_differently_from_two():
    """A region that reads one value twice is priced by another fragment."""

    def squared(operands, weights):
        nodes = [("MatMul", operands[0], "a"), ("Mul", "a s", "b"), ("MatMul", operands[1], "c"), ("Mul", "c s", "d")]
        return graph([*nodes, ("Add", "b d", "y")], {"x": X}, {"y": (4, 8)}, weights)

    scale = {"s": np.float32(2.0).reshape(())}
    one = squared(("x v", "x v"), {"v": weight(8, 8), **scale})
    two = squared(("x v", "x w"), {"v": weight(8, 8), "w": weight(8, 8, seed=1), **scale})
    assert set(keys(one)) != set(keys(two))


def test_two_values_that_are_computed_the_same_are_one():
    """ONNX Runtime computes one of them: the product that reads both reads one value twice."""

    def product(second: str) -> tuple[Hashable, str]:
        nodes = [("Exp", "x", "p"), ("Exp", second, "q"), ("MatMul", "p q", "y")]
        g = graph(nodes, {"x": (4, 4), "z": (4, 4)}, {"y": (4, 4)}, {})
        (region,) = [r for r in partition(g).regions if "MatMul" in {g.nodes[i].op for i in r}]
        return written.region(g, region), describe(g, region).signature

    written = Neighbourhoods()
    assert product("x") == product("x")
    same, other = product("x"), product("z")
    assert (same[0] == other[0]) == (same[1] == other[1])
    assert same[1] != other[1]


@pytest.mark.parametrize("layer_norm", ["fused", "decomposed"])
def test_regions_that_are_written_alike_are_fragments_of_one_signature(bert, shipped, layer_norm):
    """Along random rewrites, and not because every region is written by itself: there are far more than ways to."""
    rewriter, rng, neighbourhoods = Rewriter(shipped.rules), random.Random(layer_norm), Neighbourhoods()
    g, signatures, regions = bert(layers=3, layer_norm=layer_norm), {}, 0
    for _ in range(15):
        for region in partition(g).regions:
            signature = describe(g, region).signature
            assert signatures.setdefault(neighbourhoods.region(g, region), signature) == signature
            regions += 1
        g = rewriter.apply(g, rng.choice(rng.choice([found for found in rewriter.matches(g) if found])))
    assert len(set(signatures.values())) > 10
    assert len(signatures) < regions / 5
