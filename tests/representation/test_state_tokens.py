"""The tokens of a state: each distinct one once, in the order in which matches have them."""

import numpy as np
from support.walks import REWRITER

from rlflow import zoo
from rlflow.onnx_io import from_onnx
from rlflow.representation.match_token import MatchToken
from rlflow.representation.state_tokens import StateTokens, TokenOfMatch
from rlflow.rules.matching.rewriter import Location


def token(price: float) -> MatchToken:
    """A token of one node."""
    return MatchToken.of([1], [0], np.zeros((1, 1), np.float32), np.full(1, price, np.float32), [], [])


def test_tokens_are_counted():
    """Five matches with tokens a, b, a, a, c, of which two are equal without being the same object."""
    graph = from_onnx(zoo.build("tiny_merge"))
    found = [match for matches in REWRITER.matches(graph) for match in matches][:5]
    matches = [(Location(0, number), match) for number, match in enumerate(found)]
    tokens = [token(price) for price in (1.0, 2.0, 1.0, 1.0, 3.0)]
    nodes = [frozenset({number}) for number in range(5)]
    state = StateTokens.of(matches, dict(zip(found, map(TokenOfMatch, tokens, nodes), strict=True)))
    assert state.tokens == (tokens[0], tokens[1], tokens[4])
    assert state.token_of.tolist() == [0, 1, 0, 0, 2]
    assert state.counts.tolist() == [3, 1, 1]
    assert (state.matches, state.nodes) == (tuple(matches), tuple(nodes))
    assert state.token_of.dtype == state.counts.dtype == np.int64


def test_a_state_without_matches_has_no_tokens():
    state = StateTokens.of([], {})
    assert (state.matches, state.tokens, state.nodes) == ((), (), ())
    assert state.token_of.shape == state.counts.shape == (0,)
