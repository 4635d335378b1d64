"""The controller over match tokens on real graphs, with weights as initialised: what is tested holds for any policy."""

from dataclasses import replace

import pytest
import torch
from support.formulations import match_level_search
from support.token_worlds import SMALL, small_graph

from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.errors import InputError
from rlflow.method import Budget


def test_drawn_episodes_follow_from_the_seed() -> None:
    one, other, again = (match_level_search(seed=seed).drawn(small_graph(), 4) for seed in (0, 1, 0))
    assert one != other
    assert one == again


def test_an_untrained_controller_is_another() -> None:
    trained = match_level_search()
    with torch.no_grad():
        for parameter in trained.controller.policy.parameters():
            parameter.add_(1.0)
    weights = [next(one.controller.policy.parameters()) for one in (trained, trained.untrained())]
    assert not torch.equal(*weights)
    assert trained.untrained().world_model is trained.world_model


def test_a_controller_of_another_world_model_is_refused() -> None:
    made = match_level_search()
    other = replace(made.controller.arguments, embedding=SMALL.encoder_width + 1)
    stranger = MatchLevelController(other.new_policy(), other)
    with pytest.raises(InputError, match="train them together"):
        replace(made, controller=stranger).optimise(small_graph(), Budget())
