"""The fit trains all it should, is the same run whatever interrupts it, and learns more than means of rules."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.resumable import demonstrated
from support.token_worlds import SMALL

from rlflow.errors import InputError
from rlflow.representation.token_rollouts import Demonstration, TokenRollouts
from rlflow.world_model.held_out import split_episodes
from rlflow.world_model.match_level.diagnostics import by_rule, rule_means, saving_report, savings
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.trainer import fit_token_model


def assert_same(one: MatchLevelModel, other: MatchLevelModel) -> None:
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


def test_every_parameter_of_v_and_m_is_trained(token_rollouts: TokenRollouts):
    """Against a run without a gradient step."""
    rollouts = demonstrated(token_rollouts)
    untrained = fit_token_model(rollouts, replace(SMALL, encoder_epochs=0, epochs=0), seed=0)
    before = dict(untrained.named_parameters())
    after = dict(fit_token_model(rollouts, SMALL, seed=0).named_parameters())
    assert {name for name in after if torch.equal(before[name], after[name])} == set()
    assert not any(parameter.requires_grad for parameter in after.values())


def test_the_same_seed_gives_the_same_weights(token_rollouts: TokenRollouts, token_model: MatchLevelModel):
    torch.rand(3)  # torch's global state must not matter
    assert_same(fit_token_model(token_rollouts, SMALL, seed=0), token_model)
    other = fit_token_model(token_rollouts, SMALL, seed=1)
    assert not torch.equal(other.memory.metric.weight, token_model.memory.metric.weight)


def test_rollouts_without_a_step_are_refused(token_rollouts: TokenRollouts):
    """Also where all steps are held out."""
    with pytest.raises(InputError, match="collect_rollouts"):
        fit_token_model(replace(token_rollouts, episodes=()), SMALL, seed=0)
    (training,), (held_out,) = split_episodes(range(2), 0.5, seed=0)
    episodes = [token_rollouts.episodes[0]] * 2
    episodes[training] = replace(episodes[0], states=episodes[0].states[:1], steps=())
    with pytest.raises(InputError, match="no step to fit it on"):
        fit_token_model(
            replace(token_rollouts, episodes=tuple(episodes)), replace(SMALL, held_out_fraction=0.5), seed=0
        )
    assert episodes[held_out].num_steps > 0


def test_the_fit_learns_more_than_means_of_rules(token_rollouts: TokenRollouts):
    """On episodes that were held out. Losses go down on the way."""
    metrics: dict[int, dict[str, float]] = {}
    config = replace(SMALL, encoder_width=24, encoder_layers=3, encoder_epochs=15, encoder_batch=32)
    model = fit_token_model(token_rollouts, config, seed=0, on_epoch=metrics.__setitem__)
    assert metrics[14]["encoder/saving"] < metrics[0]["encoder/saving"] / 4
    assert metrics[17]["memory/gone"] < metrics[15]["memory/gone"]
    training, held_out = split_episodes(token_rollouts.episodes, config.held_out_fraction, 0)
    means = by_rule(token_rollouts.rule_of, rule_means(token_rollouts, training))
    report = saving_report(held_out, token_rollouts.rule_of, savings(model.read(token_rollouts)), means)
    assert 1 - report["r2"] < (1 - report["r2_rule_mean"]) / 4
    assert report["regret_1"] < report["regret_1_rule_mean"] < report["regret_1_random"]
    assert report["within_rule"] > 0.9


def test_a_model_can_be_fitted_without_held_out_episodes(token_rollouts: TokenRollouts):
    """Its sigmas are left as they are."""
    config = replace(SMALL, encoder_epochs=1, epochs=1, held_out_fraction=0.0)
    assert fit_token_model(token_rollouts, config, seed=0).encoder.sigma_factor == 1


def thrifty(rollouts: TokenRollouts) -> TokenRollouts:
    """The same with an expert who takes what saves anything."""
    told = [
        Demonstration(
            tuple((state.saving > 0).astype(np.float32) for state in episode.states),
            tuple(state.saving.clip(0) for state in episode.states),
        )
        for episode in rollouts.episodes
    ]
    episodes = zip(rollouts.episodes, told, strict=True)
    return replace(rollouts, episodes=tuple(replace(one, demonstration=shown) for one, shown in episodes))


def test_a_fit_goes_on_from_another_and_remembers_what_it_told_of_experts(token_rollouts: TokenRollouts):
    """The rollouts show no expert: afresh, nothing is learned of any, and without a step all stays as it is."""
    expert = fit_token_model(thrifty(token_rollouts), replace(SMALL, encoder_epochs=20), seed=0)
    nothing = replace(SMALL, encoder_epochs=0, epochs=0, held_out_fraction=0.0)
    assert_same(fit_token_model(token_rollouts, nothing, seed=1, begin=expert), expert)
    later = fit_token_model(token_rollouts, replace(SMALL, encoder_epochs=10), seed=1, begin=expert)
    told, again = expert.read(token_rollouts).taken, later.read(token_rollouts).taken
    assert told.std() > 0.5, "else there is nothing to remember"
    assert torch.corrcoef(torch.stack([told, again]))[0, 1] > 0.9
    assert not torch.equal(later.encoder.saving[0].weight, expert.encoder.saving[0].weight)


def test_a_fit_does_not_go_on_from_a_model_of_another_size(token_rollouts: TokenRollouts, token_model: MatchLevelModel):
    wider = replace(SMALL, encoder_width=SMALL.encoder_width + 1)
    with pytest.raises(InputError, match=r"encoder_width is 13, and 12 in the model that the fit goes on from"):
        fit_token_model(token_rollouts, wider, seed=0, begin=token_model)


def test_where_no_expert_is_shown_v_tells_the_same_of_all(token_rollouts: TokenRollouts, token_model: MatchLevelModel):
    """So that a controller does not take what the network began with for an expert's word."""
    assert token_model.read(token_rollouts).taken.unique().tolist() == [0.0]
    shown = fit_token_model(thrifty(token_rollouts), SMALL, seed=0)
    assert len(shown.read(token_rollouts).taken.unique()) > 3
