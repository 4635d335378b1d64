"""V reads a token: prices in closed form, no matter how its nodes are numbered or what else is read."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.random_token_rollouts import WORDS, random_token

from rlflow.representation.edit_graph import ADDED, REMOVED
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_batch import TokenTable
from rlflow.world_model.match_level.token_encoder import TokenEncoder, TokenReading

TOKENS = [random_token(np.random.default_rng(seed)) for seed in range(20)]


@pytest.fixture
def encoder() -> TokenEncoder:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TokenEncoder(len(WORDS.operators), len(WORDS.features), width=8, layers=2).eval()


def assert_close(one: TokenReading, other: TokenReading) -> None:
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right)


def renumbered(token: MatchToken, rng: np.random.Generator) -> MatchToken:
    """The same nodes and edges in another order."""
    order = rng.permutation(token.num_nodes)
    place = np.argsort(order)
    edges = [rng.permutation(place[edges]) for edges in (token.edges_before, token.edges_after)]
    return MatchToken.of_arrays(
        token.op[order], token.role[order], token.features[order], token.price[order], edges[0], edges[1]
    )


def test_the_numbers_of_nodes_do_not_matter(encoder: TokenEncoder):
    rng = np.random.default_rng(0)
    others = [renumbered(token, rng) for token in TOKENS]
    assert sum(one.key != other.key for one, other in zip(TOKENS, others, strict=True)) > 10
    assert_close(encoder.read(TokenTable(others)), encoder.read(TokenTable(TOKENS)))


def test_what_is_read_of_a_token_does_not_depend_on_the_others(encoder: TokenEncoder):
    """In batches of three or all at once; not vacuous: tokens are read differently."""
    table = TokenTable(TOKENS)
    reading = encoder.read(table)
    assert_close(encoder.read(table, batch_size=3), reading)
    assert len(set(reading.saving.tolist())) == len(TOKENS)
    one = encoder.read(TokenTable(TOKENS[4:5]))
    assert_close(one, TokenReading(*(column[4:5] for column in reading)))


def without_correction(encoder: TokenEncoder) -> TokenEncoder:
    """An encoder that has nothing to add to the prices that it is told."""
    for head in (encoder.correction, encoder.saving):
        torch.nn.init.zeros_(head[-1].weight)
        torch.nn.init.zeros_(head[-1].bias)
    return encoder


def told(token: MatchToken) -> float:
    return float(token.price[token.role == REMOVED].sum() - token.price[token.role == ADDED].sum())


def test_without_corrections_a_saving_is_the_price_of_what_goes_less_that_of_what_comes(encoder: TokenEncoder):
    reading = without_correction(encoder).read(TokenTable(TOKENS))
    wanted = [told(token) for token in TOKENS]
    assert min(wanted) < 0 < max(wanted)
    assert torch.sinh(reading.saving).tolist() == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    assert reading.sigma.tolist() == [1.0] * len(TOKENS)


def test_savings_grow_with_prices(encoder: TokenEncoder):
    """Whatever is corrected node by node: a hundred times the prices with the same features is a hundred times that."""
    torch.nn.init.zeros_(encoder.saving[-1].weight)
    dearer = [replace(token, price=100 * token.price) for token in TOKENS]
    bias = encoder.saving[-1].bias[0].item()
    one, other = (torch.sinh(encoder.read(TokenTable(tokens)).saving.double() - bias) for tokens in (TOKENS, dearer))
    torch.testing.assert_close(other, 100 * one, rtol=1e-4, atol=1e-4)
    assert one.abs().max() > 0.1


def test_savings_and_sigmas_stay_in_bounds(encoder: TokenEncoder):
    """Even where a node costs a million million times as much as a middling one."""
    extreme = [replace(token, price=np.full_like(token.price, 1e12)) for token in TOKENS]
    reading = encoder.read(TokenTable(extreme))
    assert all(torch.isfinite(column).all() for column in reading)
    assert (reading.sigma > 0).all()


def test_sigma_is_multiplied_by_its_factor_alone(encoder: TokenEncoder):
    table = TokenTable(TOKENS)
    before = encoder.read(table)
    encoder.sigma_factor.fill_(3.0)
    after = encoder.read(table)
    torch.testing.assert_close(after.sigma, 3 * before.sigma)
    assert torch.equal(after.saving, before.saving)
    assert torch.equal(after.embedding, before.embedding)
