"""What V is fitted on: labels of every kind that was met, and what rewrites that were taken made possible."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.random_token_rollouts import WORDS, random_rollouts, random_token
from support.token_worlds import SMALL
from support.written_demonstrations import as_demonstration
from support.written_episodes import SAVED, A, B, C, D, written_episode

from rlflow.representation.edit_graph import ADDED, REMOVED
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.tokens.encoder_fit import TokenEncoderFit, edit_operators, token_labels
from rlflow.world_model.tokens.token_batch import TokenTable
from rlflow.world_model.tokens.token_encoder import TokenEncoder

OPERATORS = np.arange(8).reshape(4, 2)
"""Of four tokens: how many nodes each removes and adds of the only operator."""


def test_labels_in_closed_form():
    """At two percent a unit. A is met once, B once, C once, D twice; C was never taken."""
    labels = token_labels([written_episode([A], [A, B, D], unit_percent=2.0)], OPERATORS)
    assert labels.place.tolist() == [A, B, C, D]
    assert labels.saving.tolist() == pytest.approx(np.arcsinh(SAVED).tolist())
    assert labels.saving_weight.tolist() == pytest.approx(np.sqrt([1, 1, 2, 1]).tolist())
    assert labels.births_weight.tolist() == [1, 1, 0, 1]
    born = [OPERATORS[B], OPERATORS[C] + OPERATORS[D], [0, 0], [0, 0]]
    assert labels.births.tolist() == [pytest.approx(np.log1p(row).tolist()) for row in born]


def test_births_are_averaged_and_matches_counted():
    """B bears C and D both times; A x 3 counts by the square root."""
    labels = token_labels([written_episode([A, A, A], [A, B]), written_episode([B], [B])], OPERATORS)
    assert labels.saving_weight[0].item() == pytest.approx(np.sqrt(3 + 2 + 2))
    assert labels.births[1].tolist() == pytest.approx(np.log1p(OPERATORS[C] + OPERATORS[D]).tolist())


def test_without_an_expert_nothing_is_known_of_his_choices():
    labels = token_labels([written_episode([A], [A, B])], OPERATORS)
    assert labels.taken_weight.tolist() == labels.gain_weight.tolist() == [0, 0, 0, 0]


def test_labels_of_a_demonstration_in_closed_form():
    """At two percent a unit, six percent are 3 units: what is taken weighs 1 + log(1 + 3), what is passed 1.

    Of ten matches in three states, an A of two is taken in the first, and the B that it bears in the second.
    """
    episode = as_demonstration(written_episode([A, A, C], [A, B], unit_percent=2.0), gain=6.0)
    labels = token_labels([episode], OPERATORS)
    matches = sum(int(state.count.sum()) for state in episode.states)
    weight = 1 + np.log1p(3)
    passed = {A: 1 + 1 + 1, B: 0, C: 1 + 1 + 2, D: 1}
    taken = {A: weight, B: weight, C: 0, D: 0}
    assert labels.place.tolist() == [A, B, C, D]
    for place, token in enumerate((A, B, C, D)):
        shown = taken[token] + passed[token]
        assert labels.taken_weight[place].item() == pytest.approx(shown / matches)
        assert labels.taken[place].item() == pytest.approx(taken[token] / shown)
        assert labels.gain_weight[place].item() == pytest.approx(taken[token] / matches)
        assert labels.gain[place].item() == pytest.approx(np.log1p(3) if taken[token] else 0)


def test_every_demonstration_weighs_the_same():
    """However many matches its states have."""
    small, large = (as_demonstration(written_episode(start, [A])) for start in ([A], [A, *[C] * 20]))
    for episode in (small, large):
        labels = token_labels([episode], OPERATORS)
        gained = labels.gain_weight.sum().item() * np.log1p(1.0) / (1 + np.log1p(1.0))
        assert labels.taken_weight.sum().item() - gained == pytest.approx(1.0)


def test_only_what_was_met_is_labelled():
    labels = token_labels([written_episode([C], [C])], OPERATORS)
    assert labels.place.tolist() == [C]
    assert len(labels.saving) == len(labels.saving_weight) == len(labels.births) == 1


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


def test_what_an_expert_takes_is_learned():
    """By heart: of the tokens that are shown, those that are taken more often than not are told from the others."""
    rollouts = random_rollouts(0, episodes=6, tokens=12)
    shown = replace(rollouts, episodes=tuple(as_demonstration(one, gain=3.0) for one in rollouts.episodes))
    metrics = fitted(shown, SMALL.encoder_epochs)
    assert metrics[-1]["encoder/taken"] < metrics[0]["encoder/taken"]
    assert metrics[-1]["encoder/gain"] < metrics[0]["encoder/gain"]
    assert all(one["encoder/taken"] == 0 for one in fitted(rollouts, 1))


def test_tokens_that_were_never_taken_teach_no_births():
    rollouts = random_rollouts(0, episodes=6, steps=0)
    assert rollouts.num_steps == 0
    assert fitted(rollouts, 1)[0]["encoder/births"] == 0
