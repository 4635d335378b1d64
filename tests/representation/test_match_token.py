"""A match token: arrays that fit together, in an order that is the nodes' own, under a digest of them."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlflow.errors import GraphError
from rlflow.representation.edit_graph import ADDED, FAR, NEAR, REMOVED
from rlflow.representation.match_token import MatchToken

Pairs = list[tuple[int, int]]


@st.composite
def small_graphs(draw: st.DrawFn) -> tuple[list[int], list[int], np.ndarray, np.ndarray, Pairs, Pairs]:
    """Roles, operators of two kinds, features and prices of a few values, and edges: nodes are often alike."""
    count = draw(st.integers(1, 8))
    role = [draw(st.sampled_from((REMOVED, ADDED, NEAR, FAR))) for _ in range(count)]
    op = [draw(st.integers(1, 2)) for _ in range(count)]
    features = np.array([[draw(st.integers(0, 1)), 0.5] for _ in range(count)], np.float32)
    price = np.array([draw(st.integers(0, 1)) for _ in range(count)], np.float32)

    def edges(absent: int) -> Pairs:
        there = [i for i in range(count) if role[i] != absent]
        pairs = [(i, j) for i in there for j in there if i < j]
        return [pair for pair in pairs if draw(st.booleans())]

    return op, role, features, price, edges(ADDED), edges(REMOVED)


def renumbered(drawn, order):
    op, role, features, price, before, after = drawn
    place = {node: number for number, node in enumerate(order)}
    moved = [[(place[s], place[r]) for s, r in reversed(edges)] for edges in (before, after)]
    return [op[i] for i in order], [role[i] for i in order], features[order], price[order], *moved


@given(small_graphs(), st.randoms(use_true_random=False))
def test_the_order_in_which_nodes_are_given_does_not_matter(drawn, random):
    """To the byte. Not vacuous: nodes are often alike, so that only how they are wired tells them apart."""
    order = list(range(len(drawn[0])))
    random.shuffle(order)
    one, other = MatchToken.of(*drawn), MatchToken.of(*renumbered(drawn, order))
    assert one.key == other.key
    for name, array in vars(one).items():
        np.testing.assert_array_equal(array, getattr(other, name), strict=name != "key")


def chain(*, backwards: bool = False) -> MatchToken:
    """Three nodes in a row, of which the middle one goes."""
    before = [(2, 1), (1, 0)] if backwards else [(0, 1), (1, 2)]
    after = [(2, 0)] if backwards else [(0, 2)]
    row = np.zeros((3, 1), np.float32)
    return MatchToken.of([1, 1, 1], [NEAR, REMOVED, NEAR], row, np.ones(3, np.float32), before, after)


def test_nodes_stand_in_the_order_of_their_roles():
    token = chain()
    assert token.role.tolist() == [REMOVED, NEAR, NEAR]
    assert token.num_nodes == 3
    (sender,) = token.edges_before[token.edges_before[:, 1] == 0, 0]
    (receiver,) = token.edges_before[token.edges_before[:, 0] == 0, 1]
    assert token.edges_after.tolist() == [[sender, receiver]]
    assert chain(backwards=True).key == token.key


@pytest.mark.parametrize("name", ["op", "role", "features", "price", "edges_before", "edges_after"])
def test_another_array_has_another_key(name):
    arrays = dict(
        op=[1, 1, 2],
        role=[NEAR, REMOVED, NEAR],
        features=np.zeros((3, 1), np.float32),
        price=np.ones(3, np.float32),
        before=[(0, 1), (1, 2)],
        after=[(0, 2)],
    )
    others = dict(
        op=[1, 3, 2],
        role=[FAR, REMOVED, NEAR],
        features=np.ones((3, 1), np.float32),
        price=np.full(3, 2.0, np.float32),
        before=[(0, 1)],
        after=[(2, 0)],
    )
    given_as = name.removeprefix("edges_")
    assert MatchToken.of(**{**arrays, given_as: others[given_as]}).key != MatchToken.of(**arrays).key


def test_a_key_is_the_same_in_another_process():
    """Where strings are hashed by another seed, as they are in every process."""
    program = (
        "import numpy as np; from rlflow.representation.match_token import MatchToken as T;"
        "print(T.of([1, 1, 1], [2, 0, 2], np.zeros((3, 1), np.float32), np.ones(3, np.float32),"
        " [(0, 1), (1, 2)], [(0, 2)]).key.hex())"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == chain().key.hex()
    assert len(chain().key) == 16


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"op": np.array([0, 1, 1])}, "op must be from 1"),
        ({"op": np.ones(3, np.int32)}, r"op must be int64 \(3,\), got int32"),
        ({"role": np.array([0, 2, 4])}, "role must be from 0 to 3, got 0 to 4"),
        ({"features": np.zeros((2, 1), np.float32)}, r"features must be float32 \(3, 1\)"),
        ({"features": np.full((3, 1), np.nan, np.float32)}, "features must be from"),
        ({"features": np.full((3, 1), np.inf, np.float32)}, "features must be from"),
        ({"price": np.array([1, -1, 1], np.float32)}, "price must be from 0"),
        ({"edges_before": np.array([[0, 3]])}, "edges_before must be from 0 to 2, got 0 to 3"),
        ({"edges_before": np.array([0, 1])}, r"edges_before must be int64 \(2, 2\)"),
        ({"edges_after": np.array([[0, 1]])}, "edges_after name a node that is not there after the edit"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(changes, message):
    with pytest.raises(GraphError, match=message):
        replace(chain(), **changes)
