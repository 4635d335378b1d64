"""Learning up to a dream: the same as its links one by one, and its settings are an experiment's sections."""

from dataclasses import asdict

import pytest
import torch
from support.token_worlds import FEW, SMALL, small_process
from support.walks import LIBRARY

from rlflow.agents.match_level.chain import FittedWorld
from rlflow.agents.match_level.learning import LearningConfig, dream_of_graph, dream_of_rollouts
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.agents.token_collection import collect_tokens
from rlflow.errors import InputError
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig

CONFIG = LearningConfig(FEW, SMALL, MatchLevelDreamConfig(num_envs=4, max_steps=3), MatchLevelControllerConfig())


def test_it_is_the_same_as_its_links():
    epochs = list[int]()
    dream = dream_of_graph(
        small_process(),
        "bert",
        CONFIG,
        seed=1,
        library_hash=LIBRARY.hash,
        on_epoch=lambda epoch, _: epochs.append(epoch),
    )
    rollouts = collect_tokens(small_process(), "bert", FEW, seed=1, library_hash=LIBRARY.hash).rollouts
    by_hand = FittedWorld.fit(rollouts, SMALL, seed=1).dream(rollouts, CONFIG.dream)
    for other in (by_hand, dream_of_rollouts(rollouts, CONFIG, seed=1)):
        assert other.config == dream.config
        assert torch.equal(other.starts.states.token, dream.starts.states.token)
        weights = other.model.state_dict()
        assert all(torch.equal(value, weights[name]) for name, value in dream.model.state_dict().items())
    assert len(epochs) == SMALL.encoder_epochs + SMALL.epochs


def test_settings_are_read_from_the_sections_of_an_experiment():
    rollouts = asdict(FEW) | {"led": list(FEW.led)}
    controller = {"dream": asdict(CONFIG.dream), "ppo": asdict(CONFIG.ppo), "training_share": 1.0}
    settings = {"seed": 0, "rollouts": rollouts, "world_model": asdict(SMALL), "controller": controller}
    assert LearningConfig.read(settings) == CONFIG
    with pytest.raises(InputError, match="unknown setting width"):
        LearningConfig.read(settings | {"world_model": {"width": 3}})
