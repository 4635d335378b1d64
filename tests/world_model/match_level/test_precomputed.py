"""What is worked out beforehand of every token is what the networks say when they are asked about it."""

import math

import pytest
import torch
from support.token_dreams import Entry, Set, precomputed

from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.match_level.match_deltas import MatchDeltas, match_deltas
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.precomputed import PrecomputedModel

CANDIDATES = 4


@pytest.fixture
def sets(token_rollouts: TokenRollouts) -> MatchDeltas:
    return match_deltas(token_rollouts.episodes, 8).sets


@pytest.fixture
def known(token_rollouts: TokenRollouts, token_model: MatchLevelModel, sets: MatchDeltas) -> PrecomputedModel:
    return PrecomputedModel.of(token_model.memory, token_model.read(token_rollouts), sets, CANDIDATES)


def test_the_likeliest_birth_sets_are_the_likeliest(
    known: PrecomputedModel, sets: MatchDeltas, token_rollouts: TokenRollouts, token_model: MatchLevelModel
) -> None:
    """More tokens than are compared at once, and more sets than are kept, or this shows little."""
    assert len(sets) > 2 * CANDIDATES
    embedding = token_model.read(token_rollouts).embedding
    with torch.no_grad():
        same = torch.arange(len(embedding))[:, None] == sets.parent
        logits = token_model.memory.birth_logits(embedding, embedding[sets.parent], sets.seen, same)
    assert known.birth_logits.shape == known.likeliest.shape == (len(token_rollouts.tokens), CANDIDATES)
    torch.testing.assert_close(known.birth_logits, logits.gather(1, known.likeliest))
    torch.testing.assert_close(known.birth_logits, logits.sort(dim=1, descending=True).values[:, :CANDIDATES])
    assert not known.birth_logits.requires_grad


def test_maps_of_survival_are_those_of_the_memory(
    known: PrecomputedModel, token_rollouts: TokenRollouts, token_model: MatchLevelModel
) -> None:
    embedding = token_model.read(token_rollouts).embedding
    with torch.no_grad():
        torch.testing.assert_close(known.chosen, token_model.memory.chosen(embedding))
        torch.testing.assert_close(known.other, token_model.memory.other(embedding))
    assert not torch.equal(known.chosen, known.other)


def test_fewer_sets_than_candidates_are_all_kept(
    sets: MatchDeltas, token_rollouts: TokenRollouts, token_model: MatchLevelModel
) -> None:
    known = PrecomputedModel.of(token_model.memory, token_model.read(token_rollouts), sets, len(sets) + 5)
    assert known.likeliest.sort(dim=1).values.tolist() == [list(range(len(sets)))] * len(token_rollouts.tokens)


def test_what_was_priced_is_known_and_the_rest_is_as_v_reads_it(known: PrecomputedModel) -> None:
    """Tokens may be told several times. What a policy sees stays what V reads, on real graphs too."""
    priced = known.priced(torch.tensor([2, 0, 2]), torch.tensor([5.0, -1.0, 5.0], dtype=torch.float64))
    torch.testing.assert_close(priced.saving[[0, 2]].sinh(), torch.tensor([-1.0, 5.0]))
    assert priced.sigma[[0, 2]].tolist() == [0.0, 0.0]
    assert torch.equal(priced.saving[3:], known.reading.saving[3:])
    assert torch.equal(priced.sigma[1], known.sigma[1])
    assert (known.sigma > 0).all()
    assert priced.reading is known.reading


def test_shares_that_are_known_are_counted_and_others_are_all(known: PrecomputedModel) -> None:
    counted = known.counted(torch.tensor([2, 0]), torch.tensor([0.5, 0.25], dtype=torch.float64))
    assert counted.apart[:4].tolist() == [0.25, 1.0, 0.5, 1.0]
    assert (known.apart == 1).all()


def test_what_a_set_promises_is_what_can_be_saved_by_those_born() -> None:
    """One set bears what loses, one two that save 3 units for two rewrites, one turns a match into one of these."""
    sets = {0: [Set([Entry(1)]), Set([Entry(2, 2)], taken=2), Set([Entry(2, before=1)])]}
    written = precomputed(sets, [0.0, math.asinh(-5.0), math.asinh(3.0)])
    torch.testing.assert_close(written.promised[:3], torch.tensor([0.0, math.asinh(3.0), 0.0]))
    twice = written.priced(torch.tensor([2]), torch.tensor([6.0]))
    assert twice.promised[1].item() == pytest.approx(math.asinh(6.0)), "by what is known last"


def test_more_tokens_are_known_as_if_they_had_been_there(
    known: PrecomputedModel, token_rollouts: TokenRollouts, token_model: MatchLevelModel, sets: MatchDeltas
) -> None:
    """The same tokens once more, under new numbers: as before, but that none is the parent of a set any more."""
    reading = token_model.read(token_rollouts)
    before, more = len(reading.embedding), known.with_tokens(token_model.memory, reading, CANDIDATES)
    for name in ("saving", "sigma", "apart", "chosen", "other", "birth_logits", "likeliest"):
        assert torch.equal(getattr(more, name)[:before], getattr(known, name)), f"{name} of those known before"
    assert torch.equal(more.reading.taken, torch.cat([reading.taken, reading.taken]))
    assert torch.equal(more.chosen[before:], known.chosen)
    with torch.no_grad():
        none = torch.zeros(before, len(sets), dtype=torch.bool)
        parent = reading.embedding[sets.parent]
        logits = token_model.memory.birth_logits(reading.embedding, parent, sets.seen, none)
    torch.testing.assert_close(more.birth_logits[before:], logits.topk(CANDIDATES, dim=1).values)
    torch.testing.assert_close(more.birth_logits[before:], logits.gather(1, more.likeliest[before:]))
    assert not torch.equal(more.birth_logits[before:], known.birth_logits), "parents lose by it"
