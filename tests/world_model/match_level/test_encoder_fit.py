"""What V is fitted on: labels of every kind that was met, and what rewrites that were taken made possible."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.random_token_rollouts import WORDS, random_rollouts, random_token
from support.token_worlds import SMALL
from support.written_episodes import SAVED, A, B, C, D, written_episode

from rlflow.representation.edit_graph import ADDED, REMOVED
from rlflow.representation.token_batch import TokenTable
from rlflow.representation.token_rollouts import Demonstration, TokenRollouts
from rlflow.world_model.match_level.encoder_fit import TokenEncoderFit, edit_operators, remembered, token_labels
from rlflow.world_model.match_level.token_encoder import TokenEncoder, TokenReading

OPERATORS = np.arange(8).reshape(4, 2)
"""Of four tokens: how many nodes each removes and adds of the only operator."""


def test_labels_in_closed_form():
    """At two percent a unit. A is met once, B once, C once, D twice; C was never taken."""
    labels = token_labels([written_episode([A], [A, B, D], unit_percent=2.0)], OPERATORS)
    assert labels.place.tolist() == [A, B, C, D]
    assert labels.saving.tolist() == pytest.approx(np.arcsinh(SAVED).tolist())
    assert labels.saving_weight.tolist() == pytest.approx(np.sqrt([1, 1, 2, 1]).tolist())
    assert labels.births_weight.tolist() == [1, 1, 0, 1]
    assert not labels.taken_weight.any()
    assert not labels.gain_weight.any()
    born = [OPERATORS[B], OPERATORS[C] + OPERATORS[D], [0, 0], [0, 0]]
    assert labels.births.tolist() == [pytest.approx(np.log1p(row).tolist()) for row in born]


def test_births_are_averaged_and_matches_counted():
    """B bears C and D both times, three of it thrice as many; A x 3 counts by the square root."""
    labels = token_labels([written_episode([A, A, A], [A, B]), written_episode([B], [B])], OPERATORS)
    assert labels.saving_weight[0].item() == pytest.approx(np.sqrt(3))
    assert labels.births[1].tolist() == pytest.approx(np.log1p(OPERATORS[C] + OPERATORS[D]).tolist())


def test_only_what_was_met_is_labelled():
    labels = token_labels([written_episode([C], [C])], OPERATORS)
    assert labels.place.tolist() == [C]
    assert len(labels.saving) == len(labels.saving_weight) == len(labels.births) == 1


def test_what_an_expert_wants_in_closed_form():
    """He takes the A, which leads to 3 units, and neither the C nor what A bears: four matches, a quarter each.

    What is taken weighs more, the more it leads to: 1 + log(1 + 3).
    """
    taken = (np.array([1, 0], np.float32), np.array([0, 0], np.float32))
    gain = (np.array([6, 0], np.float32), np.array([0, 0], np.float32))
    episode = replace(written_episode([A, C], [A], unit_percent=2.0), demonstration=Demonstration(taken, gain))
    labels = token_labels([episode], OPERATORS)
    assert labels.place.tolist() == [A, B, C]
    wanted = 0.25 * (1 + np.log(4))
    assert labels.taken.tolist() == pytest.approx([1, 0, 0])
    assert labels.taken_weight.tolist() == pytest.approx([wanted, 0.25, 0.5])
    assert labels.gain.tolist() == pytest.approx([np.log(4), 0, 0])
    assert labels.gain_weight.tolist() == pytest.approx([wanted, 0, 0])


def test_what_v_told_of_experts_stands_in_where_none_is_shown():
    """The expert shows A, B and C, not D, which comes once; it weighs as much as the others do on average."""
    taken = (np.array([1, 0], np.float32), np.array([0, 0], np.float32))
    gain = (np.array([6, 0], np.float32), np.array([0, 0], np.float32))
    shown = replace(written_episode([A, C], [A], unit_percent=2.0), demonstration=Demonstration(taken, gain))
    labels = token_labels([shown, written_episode([D], [D])], OPERATORS)
    told = torch.arange(4.0)
    before = TokenReading(torch.zeros(4, 2), told, told, taken=told - 2.0, gain=told + 0.5)
    found = remembered(labels, before)
    known, new = labels.place != D, labels.place == D
    for column, value in vars(labels).items():
        assert (np.asarray(getattr(found, column))[known] == np.asarray(value)[known]).all(), column
    probability = 1 / (1 + np.exp(-1.0))
    weight = labels.taken_weight[known].mean().item()
    assert weight > 0
    assert found.taken[new].tolist() == pytest.approx([probability])
    assert found.taken_weight[new].tolist() == pytest.approx([weight])
    assert found.gain[new].tolist() == [3.5]
    assert found.gain_weight[new].tolist() == pytest.approx([weight * probability])

    alone = remembered(token_labels([written_episode([D], [D])], OPERATORS), before)
    assert (alone.taken_weight.tolist(), alone.gain_weight.tolist()) == ([1.0], pytest.approx([probability]))


def test_operators_of_an_edit():
    rng = np.random.default_rng(0)
    tokens = [random_token(rng) for _ in range(10)]
    counts = edit_operators(tokens, len(WORDS.operators))
    assert counts.sum() > 5
    for token, row in zip(tokens, counts, strict=True):
        for role, part in ((REMOVED, row[: len(WORDS.operators)]), (ADDED, row[len(WORDS.operators) :])):
            assert part.tolist() == np.bincount(token.op[token.role == role], minlength=len(WORDS.operators)).tolist()


def fitted(rollouts: TokenRollouts, epochs: int) -> list[dict[str, float]]:
    operators = edit_operators(rollouts.tokens, len(rollouts.vocabulary.operators))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        words = rollouts.vocabulary
        encoder = TokenEncoder(len(words.operators), len(words.features), SMALL.encoder_width, SMALL.encoder_layers)
        fit = TokenEncoderFit(encoder, TokenTable(rollouts.tokens), token_labels(rollouts.episodes, operators), SMALL)
    generator = torch.Generator().manual_seed(0)
    return [fit.run_epoch(epoch, generator) for epoch in range(epochs)]


def test_losses_go_down():
    """On labels that are drawn without a law, so that they are learned by heart."""
    metrics = fitted(random_rollouts(0, episodes=6, tokens=12), SMALL.encoder_epochs)
    assert set(metrics[0]) == {f"encoder/{name}" for name in ("saving", "sigma", "births", "taken", "gain")}
    assert metrics[-1]["encoder/saving"] < metrics[0]["encoder/saving"]


def test_tokens_that_were_never_taken_teach_no_births():
    rollouts = random_rollouts(0, episodes=6, steps=0)
    assert rollouts.num_steps == 0
    assert fitted(rollouts, 1)[0]["encoder/births"] == 0
