"""Networks of dense layers: a few properties that a wrong one would not have."""

import numpy as np
import pytest

from rlflow.passes.xla.compiler import compiled, on_device, run
from rlflow.passes.xla.dense import embedding, experts, graph_network, mlp, quantised
from rlflow.passes.xla.lowering import forward, lowered, step


def _apply(model, *inputs):
    rng = np.random.default_rng(0)
    drawn = [rng.normal(size=model.parameters[name].shape).astype(np.float32) for name in sorted(model.parameters)]
    return drawn, run(compiled(lowered(forward(model))), on_device([*drawn, *inputs]))[0]


def test_a_perceptron_is_its_formula() -> None:
    x = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)
    (bias, weight, classes), output = _apply(mlp(layers=1, width=8), x)
    np.testing.assert_allclose(output, np.maximum(x @ weight + bias, 0) @ classes, rtol=1e-4, atol=1e-4)


def test_a_bag_of_words_has_no_order() -> None:
    words = np.arange(8, dtype=np.int32)[None]
    model = embedding(batch=1)
    np.testing.assert_allclose(_apply(model, words)[1], _apply(model, words[:, ::-1])[1], rtol=1e-4, atol=1e-5)
    assert b"stablehlo.scatter" in lowered(step(model))


def test_a_row_goes_to_two_experts() -> None:
    """Of three, the one that the router likes least may have any weights."""
    model = experts(experts=3, width=4, batch=1)
    x = np.ones((1, 4), np.float32)
    (out, router, weight), output = _apply(model, x)
    least = int(np.argmin(x @ router))
    weight[least] = 1e6
    again = run(compiled(lowered(forward(model))), on_device([out, router, weight, x]))[0]
    np.testing.assert_allclose(output, again, rtol=1e-5)


def test_messages_go_along_edges() -> None:
    """One edge, from node 0 to node 1: without it only node 1 is another."""
    x = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)
    model = graph_network(rounds=1, edges=1)
    ends = [np.array([each], np.int32) for each in (0, 1, 2)]
    (_, output), (_, elsewhere) = _apply(model, x, ends[0], ends[1]), _apply(model, x, ends[0], ends[2])
    moved = np.abs(output - elsewhere).max(-1) > 1e-4
    assert moved.nonzero()[0].tolist() == [1, 2]


@pytest.mark.parametrize("layers", [1, 2])
def test_eight_bits_stay_in_their_range(layers: int) -> None:
    rng = np.random.default_rng(0)
    program = quantised(layers=layers, width=8, batch=2)
    arrays = [rng.integers(-128, 128, size).astype(np.int8) for size in [(8, 8)] * layers + [(2, 8)]]
    output, packed = run(compiled(lowered(program)), on_device(arrays))
    expected = arrays[-1]
    for weight in arrays[:-1]:
        sums = expected.astype(np.int32) @ weight.astype(np.int32)
        expected = np.clip(np.round(sums / np.float32(8)), -127, 127).astype(np.int8)
    assert np.array_equal(output, expected)
    assert np.array_equal(packed.view(np.int8).reshape(2, 8), output)
