"""Algorithms: what they compute, by another way."""

import numpy as np
import pytest
from ml_dtypes import bfloat16

from rlflow.errors import InputError
from rlflow.passes.xla import algorithms
from rlflow.passes.xla.compiler import compiled, on_device, run
from rlflow.passes.xla.lowering import lowered

_RNG = np.random.default_rng(0)


def _run(program, *inputs):
    return run(compiled(lowered(program)), on_device(inputs))


def _floats(*shape: int) -> np.ndarray:
    return _RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("generator", [pytest.param("threefry2x32", marks=pytest.mark.exhaustive), "rbg"])
def test_a_sampler_draws_among_the_best(generator: str) -> None:
    logits = np.arange(32, dtype=np.float32)[None] / 8
    program = compiled(lowered(algorithms.sampler(batch=1, best=4, generator=generator)))
    keys = [np.full(2 if generator == "threefry2x32" else 4, each, np.uint32) for each in range(6)]
    drawn = {int(run(program, on_device([logits, key, np.float32(1)]))[0].item()) for key in keys}
    assert drawn <= {28, 29, 30, 31}
    assert len(drawn) > 1, "or it would not draw"
    with pytest.raises(InputError, match="best=5 of vocabulary=4"):
        algorithms.sampler(vocabulary=4, best=5)


def test_branches_are_taken_as_told() -> None:
    weights, x = _floats(4, 4), _floats(2, 4)
    program = algorithms.branches(depth=1, width=4)
    for taken, kind in ((True, 2), (False, 2), (True, 0)):
        inner = np.tanh(x @ weights) if taken else x * 0.5
        inner = np.sin(inner) if kind == 0 else inner
        expected = inner * (1 if inner.sum() > 0 else 2)
        (output,) = _run(program, weights, x, np.array([taken]), np.int32(kind))
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


def test_the_power_method_finds_the_direction() -> None:
    """Without a shift and with many turns, of a matrix whose first direction stands out."""
    matrix = np.diag([5.0, 1.0, 0.5, 0.1]).astype(np.float32)
    vector, value, _ = _run(algorithms.iteration(width=4, turns=20), matrix, np.ones(4, np.float32), np.float32(0))
    assert abs(vector[0]) > 0.99
    assert value == pytest.approx(25, rel=0.02)


def test_clusters_end_at_their_means() -> None:
    points = np.concatenate([_floats(8, 4) + 10, _floats(8, 4) - 10])
    (centres,) = _run(algorithms.clusters(centres=2), points, points[[0, 15]])
    np.testing.assert_allclose(centres, [points[:8].mean(0), points[8:].mean(0)], rtol=1e-4)


def test_a_ranking_by_its_own_gains_is_perfect() -> None:
    scores = np.abs(_floats(2, 32))
    quality, median, first = _run(algorithms.ranking(), scores, scores, np.arange(64, dtype=np.int32).reshape(2, 32))
    np.testing.assert_allclose(quality, 1, rtol=1e-5)
    np.testing.assert_allclose(median, np.sort(scores)[:, 16])
    assert first[:, 0].tolist() == (scores.argmax(1) + np.array([0, 32])).tolist()


def test_prefix_sums_and_means() -> None:
    x = _floats(2, 64)
    sums, means, total, highest = _run(algorithms.prefix(), x)
    np.testing.assert_allclose(sums, np.cumsum(x, 1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(means[:, 3:], np.lib.stride_tricks.sliding_window_view(x, 4, 1).mean(-1), atol=1e-5)
    np.testing.assert_allclose(total, x.sum(), atol=1e-4)
    np.testing.assert_allclose(highest, np.cumsum(x, 1).max(1), rtol=1e-4)


def test_a_simulation_ends_when_all_are_far_or_in_time() -> None:
    program, key = algorithms.simulation(turns=4), np.array([1, 2, 3, 4], np.uint32)
    still = np.zeros((8, 3), np.float32)
    assert _run(program, still, key, np.float32(0.0))[0] == 0
    turns, places = _run(program, still, key, np.float32(100.0))
    assert turns == 4
    assert np.abs(places).max() > 0.1


def test_a_table_is_updated_row_by_row() -> None:
    table, values = np.zeros((16, 8), np.float32), np.full((4, 8), -1, np.float32)
    rows = np.array([5, 5, 6, 7], np.int32)
    result, window, read = _run(algorithms.update(), table, rows, values, np.array([9, 0], np.int32))
    assert result[5].tolist() == [-1, -4, -2, -2, -2, -2, -2, -2], "added twice, the second column doubled"
    assert result[3].tolist() == [0.5, 1, *[0.5] * 6]
    assert result[9].tolist() == [-2, -4, -2, -2, -2, -2, -2, -2], "written as a slice"
    assert np.array_equal(window, result[:2])
    assert np.array_equal(read, result[rows][:, ::-1])


def test_products_of_many_kinds() -> None:
    left, right, vector = _floats(1, 8, 8), _floats(1, 8, 8), _floats(8)
    half = np.ones((8, 8), bfloat16)
    both, outer, mixed, halves = _run(algorithms.matrices(), left, right, vector, half)
    power = left
    for _ in range(3):
        power = power @ right / 8
    row = power @ vector
    expected = [np.sum(left[0] * each[0].T) for each in (right, power)]
    np.testing.assert_allclose(both[0], expected, rtol=1e-3, atol=1e-3)
    turned = np.einsum("bi,bj->bij", row, row) @ power.transpose(0, 2, 1)
    np.testing.assert_allclose(outer, turned, rtol=1e-3, atol=1e-3)
    assert mixed.dtype == np.float32
    assert (mixed == 8).all()
    assert halves.dtype == bfloat16
