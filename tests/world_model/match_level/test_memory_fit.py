"""What M is fitted on: outcomes of steps under the sets of all other steps, and which matches near by were ended."""

import numpy as np
import pytest
import torch
from support.random_token_rollouts import random_rollouts
from support.token_dreams import memory
from support.token_worlds import SMALL
from torch import Tensor

from rlflow.representation.token_distances import FAR_AWAY
from rlflow.world_model.match_level.encoder_fit import edit_operators
from rlflow.world_model.match_level.match_deltas import NONE, MatchDeltas, StepSets, match_deltas
from rlflow.world_model.match_level.memory_fit import Pairs, TokenMemoryFit, pairs, same_outcome
from rlflow.world_model.match_level.token_memory import ALL_BUT, TokenMemory, outcome_of


def sets_of(seen: list[int], parent: list[int]) -> MatchDeltas:
    """As many sets as there are parents; what is in them does not matter here."""
    number = len(parent)
    nothing = torch.zeros(number, 0, dtype=torch.int64)
    distance = torch.zeros(number, 0, 0, dtype=torch.int8)
    ones = torch.ones(number, dtype=torch.int64)
    return MatchDeltas(torch.tensor(parent), ones, torch.tensor(seen).float(), nothing, nothing, nothing, distance)


def fit_of(
    seen: list[int], parent: list[int], outcome: list[int], embedding: Tensor, made: TokenMemory
) -> TokenMemoryFit:
    of_step = torch.repeat_interleave(torch.arange(len(seen)), torch.tensor(seen))
    nothing = Pairs(*(torch.zeros(0, dtype=torch.int64) for _ in range(5)))
    return TokenMemoryFit(
        made, embedding, StepSets(sets_of(seen, parent), of_step), torch.tensor(outcome), nothing, SMALL
    )


def test_every_step_is_judged_by_all_others():
    """All tokens are alike. Set 0 was seen twice; of the three other steps, two had the outcome of its steps."""
    fit = fit_of([2, 1, 1], [0, 1, 2], [0, 0, 1], torch.zeros(3, 2), memory())
    assert fit.births_loss(torch.tensor([0])).item() == pytest.approx(-np.log(2 / 3))
    assert fit.births_loss(torch.tensor([2])).item() == pytest.approx(-np.log(2 / 3))  # set 1: twice set 0, once set 2
    assert fit.births_loss(torch.tensor([0, 1, 2])).item() == pytest.approx(-np.log(2 / 3))


def test_a_step_whose_outcome_no_other_had_is_left_out():
    """The last of these steps; alone it teaches nothing, and does not break a descent."""
    fit = fit_of([2, 1, 1], [0, 1, 2], [0, 0, 1], torch.zeros(3, 2), memory())
    assert fit.births_loss(torch.tensor([2, 3])).item() == fit.births_loss(torch.tensor([2])).item()
    alone = fit.births_loss(torch.tensor([3]))
    assert alone.item() == 0
    alone.backward()


def test_likeness_weighs_the_others():
    """On a line at 0, 1 and 3: the other set with the outcome of the first step is at 1, the wrong one at 9."""
    made = memory()
    made.metric.weight[0, 0] = 1.0
    embedding = torch.tensor([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    fit = fit_of([1, 2, 1], [0, 1, 2], [0, 0, 1], embedding, made)
    right, wrong = 2 * np.exp(-1), np.exp(-9)
    assert fit.births_loss(torch.tensor([0])).item() == pytest.approx(-np.log(right / (right + wrong)), rel=1e-4)


def test_outcomes_are_the_same_if_they_bring_the_same_operators():
    """Token 0 brings operator a once, token 1 twice; what only turned is no outcome. Three rewrites bring thrice."""
    token = torch.tensor([[0, 0], [1, NONE], [0, NONE], [NONE, NONE], [0, 1]])
    before = torch.tensor([[NONE, NONE], [NONE, NONE], [NONE, NONE], [NONE, NONE], [1, 0]])
    count = torch.tensor([[1, 1], [1, 0], [6, 0], [0, 0], [1, 1]])
    parent, taken = torch.zeros(5, dtype=torch.int64), torch.tensor([1, 1, 3, 1, 1])
    distance = torch.zeros(5, 2, 2, dtype=torch.int8)
    sets = MatchDeltas(parent, taken, torch.ones(5), token, before, count, distance)
    outcome = same_outcome(sets, np.array([[1, 0], [2, 0]])).tolist()
    assert outcome[0] == outcome[1] == outcome[2] != outcome[3] == outcome[4]
    assert len(set(same_outcome(sets, np.array([[1, 0], [0, 1]])).tolist())) == 3


def test_pairs_are_those_near_by():
    """Of drawn episodes: each other class that is nearer than far away, where no match of the one taken was left."""
    episodes = [episode for seed in range(4) for episode in random_rollouts(seed).episodes]
    known, wanted = pairs(episodes), []
    for episode in episodes:
        for state, step in zip(episode.states, episode.steps, strict=False):
            for match_class, token in enumerate(state.token.tolist()):
                if step.distance[match_class] < FAR_AWAY and step.is_whole(state) and match_class != step.chosen:
                    count, gone = state.count[match_class], step.gone[match_class]
                    outcome = outcome_of(torch.tensor(gone), torch.tensor(count), torch.tensor(step.taken))
                    row = (state.token[step.chosen], token, step.distance[match_class], count, outcome)
                    wanted.append(tuple(int(value) for value in row))
    assert list(zip(*(getattr(known, name).tolist() for name in vars(known)), strict=True)) == wanted
    assert len(wanted) > 30
    assert {0, 1, ALL_BUT} <= set(known.gone.tolist())


def test_survival_is_a_cross_entropy():
    """A memory that ends one match of every class at distance 0, and none further away, whatever the tokens are."""
    made, embedding = memory(gone_at_0=1), torch.zeros(2, 2)
    zeros = torch.zeros(2, dtype=torch.int64)
    asked = Pairs(zeros, zeros, torch.tensor([0, 1]), torch.tensor([3, 3]), torch.tensor([1, 0]))
    fit = fit_of([1], [0], [0], embedding, made)
    logits = made.gone_logits(embedding, embedding, asked.distance, asked.count)
    wanted = -logits.log_softmax(dim=1)[[0, 1], [1, 0]].mean()
    assert fit.gone_loss(asked).item() == pytest.approx(wanted.item())
    wrong = Pairs(zeros, zeros, asked.distance, asked.count, torch.tensor([0, 1]))
    assert fit.gone_loss(wrong).item() > fit.gone_loss(asked).item() + 1


def test_losses_go_down():
    """On drawn episodes, with an embedding that tells all tokens apart."""
    rollouts = random_rollouts(0, episodes=40, steps=6, tokens=10)
    steps = match_deltas(rollouts.episodes, SMALL.largest_birth_set)
    outcome = same_outcome(steps.sets, edit_operators(rollouts.tokens, len(rollouts.vocabulary.operators)))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = TokenMemory(len(rollouts.tokens), SMALL.metric_width, SMALL.survival_width)
    fit = TokenMemoryFit(made, torch.eye(len(rollouts.tokens)), steps, outcome, pairs(rollouts.episodes), SMALL)
    generator = torch.Generator().manual_seed(0)
    metrics = [fit.run_epoch(epoch, generator) for epoch in range(SMALL.epochs)]
    assert set(metrics[0]) == {"memory/births", "memory/gone"}
    assert metrics[-1]["memory/gone"] < metrics[0]["memory/gone"]


def test_sets_of_the_same_token_weigh_more():
    """All embeddings are alike, so that only whose sets they are tells them apart."""
    made = memory()
    made.same.fill_(2.0)
    fit = fit_of([1, 1, 1], [0, 0, 1], [0, 0, 1], torch.zeros(2, 2), made)
    right, wrong = np.exp(2), 1.0
    assert fit.births_loss(torch.tensor([0])).item() == pytest.approx(-np.log(right / (right + wrong)), rel=1e-4)
