"""Trees as an ONNX model: what ONNX Runtime says is what a walk down each tree says."""

import numpy as np
import pytest
from support.price_models import drawn_trees

from rlflow.onnx_io.tree_ensemble import Tree, tree_ensemble
from rlflow.runtime.session import open_session, run

STUMP = Tree(feature=[3, 0, 0], value=[0.5, -1.0, 1.0], left=[1, -1, -1], right=[2, -1, -1])
ALMOST_HALF = float(np.nextafter(np.float32(0.5), np.float32(0)))


def walked(tree: Tree, row: np.ndarray) -> np.float32:
    """The leaf that a row reaches, by float32 as ONNX has it."""
    node = 0
    while tree.left[node] >= 0:
        below = row[tree.feature[node]] < np.float32(tree.value[node])
        node = tree.left[node] if below else tree.right[node]
    return np.float32(tree.value[node])


def asked(model, rows: np.ndarray) -> np.ndarray:
    return run(open_session(model, "deployed"), {"x": rows})["y"][:, 0]


@pytest.mark.parametrize(("value", "expected"), [(0.0, -1.0), (ALMOST_HALF, -1.0), (0.5, 1.0), (7.0, 1.0)])
def test_a_stump_splits_at_its_threshold(value: float, expected: float) -> None:
    rows = np.array([[9.0, 9.0, 9.0, value]], dtype=np.float32)
    assert asked(tree_ensemble([STUMP], 4, base=0.0), rows).tolist() == [expected]


def test_the_base_is_added() -> None:
    rows = np.zeros((1, 4), dtype=np.float32)
    assert asked(tree_ensemble([STUMP, STUMP], 4, base=10.0), rows).tolist() == [8.0]


def test_a_forest_is_the_sum_of_its_trees() -> None:
    """Not vacuous: 200 rows reach over a hundred different sums. Sums of 40 float32 below 0.1: 40 roundings of 4."""
    trees, rng = drawn_trees(columns=6, count=40, seed=1), np.random.default_rng(0)
    rows = rng.choice([0, 1, 2, 3, 64, 5000], (200, 6)).astype(np.float32)
    expected = np.array([sum(np.float64(walked(tree, row)) for tree in trees) for row in rows])
    found = asked(tree_ensemble(trees, 6, base=0.0), rows)
    assert len(set(found.tolist())) > 100
    np.testing.assert_allclose(found, expected, rtol=0, atol=40 * 4 * np.finfo(np.float32).eps)


def test_a_row_does_not_depend_on_those_beside_it() -> None:
    """More trees and rows than any number from which the runtime might split the work differently."""
    trees, rng = drawn_trees(columns=6, count=300, seed=2), np.random.default_rng(0)
    rows = rng.choice([0, 1, 2, 3, 64, 5000], (300, 6)).astype(np.float32)
    session = open_session(tree_ensemble(trees, 6, base=0.5), "deployed")
    together = run(session, {"x": rows})["y"][:, 0]
    alone = [run(session, {"x": row[None]})["y"][0, 0] for row in rows]
    assert together.tolist() == [float(value) for value in alone]


def test_equal_trees_are_equal_models() -> None:
    first, second = (
        tree_ensemble(drawn_trees(5, 3, seed=3), 5, 0.0).SerializeToString(deterministic=True) for _ in "ab"
    )
    assert first == second
