"""Tiny graphs: the model, its optimum and numpy agree, and the optimum is what theory says."""

from itertools import combinations, pairwise

import numpy as np
import onnx
import pytest

from rlflow import zoo
from rlflow.errors import InputError

TINY = ["tiny_chain", "tiny_merge", "tiny_scale", "tiny_transpose"]
VARIANTS = [
    *((name, {}) for name in TINY),
    ("tiny_chain", {"inner": 16}),
    ("tiny_chain", {"rows": 5, "width": 12, "inner": 3, "length": 7, "seed": 3}),
    ("tiny_chain", {"length": 1}),
    ("tiny_merge", {"branches": 5, "opset": 21}),
    ("tiny_scale", {"rows": 2, "width": 9, "opset": 15}),
    ("tiny_transpose", {"pairs": 1, "batch": 1, "rows": 3, "columns": 5}),
]
DEPTH = 10
TERMS = 256


def draw_feeds(model: onnx.ModelProto, seed: int = 0) -> dict[str, np.ndarray]:
    (x,) = model.graph.input
    shape = [d.dim_value for d in x.type.tensor_type.shape.dim]
    return {x.name: np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)}


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def multiplications(model: onnx.ModelProto) -> int:
    """Multiplications for one row of a chain of MatMuls by weights."""
    return sum(int(np.prod(weight.dims)) for weight in model.graph.initializer)


@pytest.mark.parametrize(("name", "settings"), VARIANTS)
def test_optimum_computes_the_same(name, settings, run, assert_close):
    model, best = zoo.build(name, **settings), zoo.optimum(name, **settings)
    assert list(model.graph.input) == list(best.graph.input)
    assert list(model.graph.output) == list(best.graph.output)
    feeds = draw_feeds(model)
    expected = run(model, feeds)
    for output, values in run(best, feeds).items():
        assert values.std() > 0.01
        assert_close(values, expected[output], depth=DEPTH, terms=TERMS)


@pytest.mark.parametrize("name", TINY)
def test_another_seed_computes_something_else(name, run, assert_differs):
    """So agreement of model and optimum above is no accident of the inputs."""
    model, other = zoo.build(name), zoo.optimum(name, seed=1)
    feeds = draw_feeds(model)
    expected = run(model, feeds)
    for output, values in run(other, feeds).items():
        assert_differs(values, expected[output], depth=DEPTH, terms=TERMS)


def test_chain_is_the_product_of_its_weights(run, parameters, assert_close):
    model = zoo.build("tiny_chain")
    feeds = draw_feeds(model)
    expected = feeds["x"].astype(np.float64)
    for weight in parameters(model).values():
        expected = expected @ weight.astype(np.float64)
    assert_close(run(model, feeds)["y"], expected.astype(np.float32), depth=DEPTH, terms=TERMS)


@pytest.mark.parametrize("settings", [{}, {"inner": 16}, {"inner": 32}, {"inner": 5, "width": 9, "length": 6}])
def test_chain_optimum_beats_every_other_way_to_fold(settings):
    """Against all sets of cuts: none has fewer multiplications, or as few in fewer MatMuls."""
    model, best = zoo.build("tiny_chain", **settings), zoo.optimum("tiny_chain", **settings)
    weights = [tuple(weight.dims) for weight in model.graph.initializer]
    widths = [weights[0][0], *(columns for _, columns in weights)]
    inner_cuts = range(1, len(widths) - 1)
    ways = [
        (sum(widths[a] * widths[b] for a, b in pairwise(path)), len(path) - 1)
        for number in range(len(inner_cuts) + 1)
        for cuts in combinations(inner_cuts, number)
        for path in [(0, *cuts, len(widths) - 1)]
    ]
    assert (multiplications(best), len(best.graph.node)) == min(ways)
    assert (multiplications(model), len(model.graph.node)) in ways


def test_chain_has_something_to_win():
    """By default 16 times the multiplications; with a narrow middle, folding everything would lose."""
    assert multiplications(zoo.build("tiny_chain")) == 16 * multiplications(zoo.optimum("tiny_chain"))
    narrow = zoo.optimum("tiny_chain", inner=16)
    assert operators(narrow) == ["MatMul", "MatMul"]
    assert multiplications(narrow) < 64 * 64


@pytest.mark.parametrize(
    ("name", "written", "best"),
    [
        ("tiny_chain", ["MatMul"] * 4, ["MatMul"]),
        ("tiny_merge", ["MatMul"] * 3, ["MatMul", "Split"]),
        ("tiny_scale", ["Mul", "MatMul", "Div"], ["MatMul"]),
        ("tiny_transpose", ["Transpose", "Transpose", "Reshape", "Reshape"] * 2 + ["MatMul"], ["MatMul"]),
    ],
)
def test_operators(name, written, best):
    assert operators(zoo.build(name)) == written
    assert operators(zoo.optimum(name)) == best


def test_models_of_unknown_optimum_are_refused():
    with pytest.raises(InputError, match=r"'bert': choose one of tiny_chain, tiny_merge, tiny_scale, tiny_transpose"):
        zoo.optimum("bert")
