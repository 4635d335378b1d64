"""Tokens in batches: both sides of an edit, and the same whichever others are in the batch."""

import numpy as np
import pytest
from support.random_token_rollouts import random_token

from rlflow.representation.edit_graph import ADDED, FAR, NEAR, REMOVED
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_batch import TokenBatch, TokenTable

# near 2 -> removed 0 -> far 3 becomes near 2 -> added 1 -> far 3
TOKEN = MatchToken.of_arrays(
    np.array([5, 6, 7, 8]),
    np.array([REMOVED, ADDED, NEAR, FAR]),
    np.array([[0.5], [0.6], [0.7], [0.8]], np.float32),
    np.array([5.0, 6.0, 7.0, 8.0], np.float32),
    np.array([[0, 3], [2, 0]]),
    np.array([[1, 3], [2, 1]]),
)


def test_both_sides_of_a_token():
    """Before: removed, near, far; after: added, near, far. The last two of these are twins."""
    batch = TokenTable([TOKEN]).batch(np.array([0]))
    assert batch.op.tolist() == [5, 7, 8, 6, 7, 8]
    assert batch.role.tolist() == [REMOVED, NEAR, FAR, ADDED, NEAR, FAR]
    assert batch.price.tolist() == [5, 7, 8, 6, 7, 8]
    assert batch.features.flatten().tolist() == pytest.approx([0.5, 0.7, 0.8, 0.6, 0.7, 0.8])
    assert batch.is_after.tolist() == [False] * 3 + [True] * 3
    assert batch.twin.tolist() == [-1, -1, -1, -1, 1, 2]
    assert list(zip(batch.sender.tolist(), batch.receiver.tolist(), strict=True)) == [(0, 2), (1, 0), (3, 5), (4, 3)]
    assert (batch.token == 0).all()
    assert batch.num_tokens == 1


def part(batch: TokenBatch[np.ndarray], number: int) -> dict[str, list[object]]:
    """What a batch says of one of its tokens, as if it stood alone."""
    mine = batch.token == number
    first, edges = int(np.flatnonzero(mine)[0]), mine[batch.sender]
    assert (mine[batch.receiver] == edges).all()
    twin = batch.twin[mine]
    told = {name: getattr(batch, name)[mine].tolist() for name in ("op", "role", "features", "price", "is_after")}
    told["twin"] = np.where(twin < 0, -1, twin - first).tolist()
    told["edges"] = (np.stack([batch.sender, batch.receiver])[:, edges] - first).tolist()
    return told


def test_a_batch_says_of_a_token_the_same_whichever_others_are_in_it():
    rng = np.random.default_rng(0)
    tokens = [random_token(rng) for _ in range(12)]
    table = TokenTable(tokens)
    assert len(table) == 12
    alone = [part(TokenTable([token]).batch(np.array([0])), 0) for token in tokens]
    assert len({str(told) for told in alone}) == 12
    for chosen in (np.arange(12), np.array([3, 3, 0]), rng.permutation(12)):
        batch = table.batch(chosen)
        assert batch.num_tokens == len(chosen)
        assert [part(batch, number) for number in range(len(chosen))] == [alone[token] for token in chosen]


def test_types_are_those_of_networks():
    batch = TokenTable([TOKEN]).batch(np.array([0]))
    for name in ("op", "role", "twin", "token", "sender", "receiver"):
        assert getattr(batch, name).dtype == np.int64
    assert batch.features.dtype == batch.price.dtype == np.float32
