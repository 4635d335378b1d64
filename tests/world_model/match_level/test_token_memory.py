"""M's two heads, in closed form where their weights are known."""

import pytest
import torch

from rlflow.representation.token_distances import FAR_AWAY
from rlflow.world_model.match_level.token_memory import OUTCOMES, TokenMemory, left_after, outcome_of


@pytest.fixture
def memory() -> TokenMemory:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TokenMemory(embedding=3, metric_width=3, survival_width=4).requires_grad_(False)


def test_the_nearer_the_parent_the_more_often_seen_and_of_the_same_token_the_likelier(memory: TokenMemory):
    """With distances as they are: one set as far away as 1, seen 3 times, one at 2, seen once, and one of the very
    token, seen twice."""
    memory.metric.weight.copy_(torch.eye(3))
    chosen = torch.tensor([[1.0, 0.0, 0.0]])
    parent = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 2.0], [1.0, 0.0, 0.0]])
    seen = torch.tensor([3.0, 1.0, 2.0])
    same = torch.tensor([[False, False, True]])
    memory.same.fill_(0.5)
    weights = memory.birth_logits(chosen, parent, seen, same).exp()
    wanted = torch.tensor([[3 * torch.e**-1, torch.e**-4, 2.0 * torch.e**0.5]])
    torch.testing.assert_close(weights, wanted, rtol=1e-4, atol=1e-6)


def test_distances_are_those_of_the_learned_space(memory: TokenMemory):
    """Along a direction that the metric leaves out, all are equal."""
    memory.metric.weight.copy_(torch.diag(torch.tensor([1.0, 0.0, 0.0])))
    chosen = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    parent = chosen + torch.tensor([0.0, 5.0, -3.0])
    logits = memory.birth_logits(chosen, parent, torch.ones(4), torch.zeros(4, 4, dtype=torch.bool))
    assert logits.diagonal().tolist() == pytest.approx([0.0] * 4, abs=1e-3)
    assert (logits.argmax(dim=1) == torch.arange(4)).all()


def test_survival_of_mapped_embeddings_is_the_same(memory: TokenMemory):
    generator = torch.Generator().manual_seed(0)
    chosen, other = (torch.randn(6, 3, generator=generator) for _ in range(2))
    distance, count = torch.arange(6) % (FAR_AWAY + 1), torch.tensor([0, 1, 2, 5, 12, 100])
    one = memory.gone_logits(chosen, other, distance, count)
    assert one.shape == (6, OUTCOMES)
    assert torch.equal(one, memory.gone_logits_of(memory.chosen(chosen), memory.other(other), distance, count))


@pytest.mark.parametrize("changed", ["chosen", "other", "distance", "count"])
def test_survival_looks_at_both_tokens_their_distance_and_their_number(memory: TokenMemory, changed: str):
    asked = {
        "chosen": torch.ones(1, 3),
        "other": torch.ones(1, 3),
        "distance": torch.zeros(1, dtype=torch.int64),
        "count": torch.ones(1, dtype=torch.int64),
    }
    other = asked | {changed: asked[changed] + 1}
    assert not torch.equal(memory.gone_logits(**asked), memory.gone_logits(**other))


def test_an_outcome_tells_of_few_that_are_gone_or_left_exactly():
    """After twelve rewrites: up to two of a class and all but two exactly, others as one or two for each rewrite."""
    pairs = [(gone, count) for count in (1, 2, 5, 12, 24, 36) for gone in range(count + 1)]
    gone, count = (torch.tensor(column) for column in zip(*pairs, strict=True))
    taken = torch.full_like(gone, 12)
    left = left_after(outcome_of(gone, count, taken), count, taken)
    exact = {(g, c) for g, c, kept in zip(gone.tolist(), count.tolist(), left.tolist(), strict=True) if c - g == kept}
    assert exact >= {(g, c) for g, c in pairs if g <= 2 or g >= c - 2 or g in (12, 24)}
    one = torch.ones(OUTCOMES, dtype=torch.int64)
    assert left_after(torch.arange(OUTCOMES), 2 * one, one).tolist() == [2, 1, 0, 1, 0, 0, 1, 2]


def test_of_those_in_the_middle_as_many_are_gone_as_come_near():
    """Twelve rewrites end 20 or 15 of 36: two each, or one; never more than there are."""
    gone, count, taken = torch.tensor([20, 15, 6]), torch.tensor([36, 36, 10]), torch.tensor([12, 12, 12])
    assert left_after(outcome_of(gone, count, taken), count, taken).tolist() == [12, 24, 0]
