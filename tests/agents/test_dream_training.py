"""A controller is trained in the dream alone, by either formulation and algorithm, and scored beside the untrained one.

The dream over match tokens is written down by hand, that of one vector is of a fitted model.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.token_dreams import EMBEDDING, Entry, Set, memory, precomputed, stacked, state

from rlflow.agents.dream_training import Dream, dream_score, train_in_dream
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.dream import GraphLevelDream
from rlflow.agents.match_level.dream import MatchLevelDream
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig
from rlflow.agents.policy_controller import PolicyController
from rlflow.agents.selection import Trial
from rlflow.errors import InputError
from rlflow.representation.rollouts import Rollouts
from rlflow.representation.vocabulary import PADDING, Vocabulary
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig, MatchLevelModelConfig
from rlflow.world_model.match_level.model import MatchLevelModel, MatchLevelModelArguments
from rlflow.world_model.match_level.starts import TokenStarts

A, B, C = range(3)
ROUNDS = 4
"""Of each training here, with a trial on the graph after every second one."""
FACTORED = ControllerConfig(
    total_steps=512, steps_per_update=16, batch_size=64, epochs=1, width=16, rule_embedding=4, updates_per_trial=2
)
POINTER = MatchLevelControllerConfig(
    total_steps=128, steps_per_update=4, batch_size=32, epochs=1, width=8, updates_per_trial=2
)
CMA_ES = CmaEsConfig(generations=ROUNDS, population=4, generations_per_trial=2)

Subject = tuple[Dream[Any], Any]


@pytest.fixture(scope="module")
def graph_dream(world_model: GraphLevelModel, rollouts: Rollouts) -> GraphLevelDream:
    return GraphLevelDream.of(world_model, rollouts, GraphLevelDreamConfig(num_envs=8, max_steps=15, temperature=0.5))


@pytest.fixture(scope="module")
def token_dream() -> MatchLevelDream:
    """Taking A costs one percent and bears B, which pays three; C only costs."""
    arguments = MatchLevelModelArguments(
        Vocabulary((PADDING, "Relu"), ("size",)),
        "library",
        MatchLevelModelConfig(encoder_width=EMBEDDING, metric_width=1, survival_width=1),
    )
    model = MatchLevelModel(arguments)
    model.memory = memory()
    states = stacked([state([(A, 1), (C, 2)], 4), state([(C, 1), (A, 1)], 4)])
    starts = TokenStarts(states, torch.ones(2, dtype=torch.bool))
    config = MatchLevelDreamConfig(num_envs=8, max_kinds=4, max_steps=4)
    return MatchLevelDream(model, starts, config, precomputed({A: [Set([Entry(B)])]}, [-0.88, 1.82, -0.88]))


@pytest.fixture(
    params=[("graph_dream", FACTORED), ("token_dream", POINTER), ("token_dream", CMA_ES)],
    ids=["graph level", "match level, by PPO", "match level, by evolution"],
)
def subject(request: pytest.FixtureRequest) -> Subject:
    """A dream, and the settings of a training in it."""
    name, config = request.param
    return request.getfixturevalue(name), config


def same(one: PolicyController, weights: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, weights[name]) for name, value in one.policy.state_dict().items())


def test_the_same_seed_trains_the_same_controller(subject: Subject, tmp_path: Path):
    dream, config = subject
    trainings = {name: train_in_dream(dream, config, seed=seed) for name, seed in (("a", 0), ("b", 0), ("c", 1))}
    for name, training in trainings.items():
        training.controller.save(tmp_path / name)
    weights = [(tmp_path / name / "controller.safetensors").read_bytes() for name in trainings]
    assert weights[0] == weights[1] != weights[2]
    assert (tmp_path / "a/controller.json").read_bytes() == (tmp_path / "b/controller.json").read_bytes()

    first = trainings["a"]
    assert first.score_percent == trainings["b"].score_percent
    assert first.rewrites == 0, "there is no judge, and so no real step"
    loaded = type(first.controller).load(tmp_path / "a")
    assert loaded.arguments == first.controller.arguments
    assert dream_score(dream, loaded, seed=0) == first.score_percent


def test_an_interrupted_training_goes_on_to_the_same_weights(subject: Subject, tmp_path: Path):
    class Interrupted(Exception):
        """Stands for a kill."""

    def interrupt(number: int, _: dict[str, float]) -> None:
        if number == 2:
            raise Interrupted

    dream, config = subject
    train = partial(train_in_dream, dream, config, seed=0)
    rounds: list[int] = []
    whole = train()
    with pytest.raises(Interrupted):
        train(checkpoint=tmp_path / "c", on_round=interrupt)
    resumed = train(checkpoint=tmp_path / "c", on_round=lambda number, _: rounds.append(number))
    assert rounds == [3, ROUNDS]
    assert same(resumed.controller, whole.controller.policy.state_dict())


def test_a_controller_goes_on_from_another(subject: Subject):
    """Its score before the training is that of the other one, whose weights the seed does not draw."""
    dream, config = subject
    before = train_in_dream(dream, config, seed=0).controller
    further = train_in_dream(dream, config, seed=1, begin=before)
    assert further.untrained_percent == dream_score(dream, before, seed=1)
    assert not same(further.controller, before.policy.state_dict())
    assert not same(further.controller, train_in_dream(dream, config, seed=1).controller.policy.state_dict())


def test_one_of_another_network_is_refused(token_dream: MatchLevelDream):
    wide = token_dream.untrained(replace(POINTER, width=16), seed=0)
    for begin, config in ((wide, POINTER), (wide, CMA_ES)):
        with pytest.raises(InputError, match="cannot go on from one of another network"):
            train_in_dream(token_dream, config, seed=0, begin=begin)


def test_the_judge_tries_controllers_and_its_choice_is_kept(subject: Subject):
    """Two trials; the first scores best."""
    dream, config = subject
    shown: list[dict[str, torch.Tensor]] = []

    def judge(controller: PolicyController) -> Trial:
        assert controller.arguments.config == config
        shown.append({name: value.clone() for name, value in controller.policy.state_dict().items()})
        return Trial(-len(shown), rewrites=3)

    chosen = train_in_dream(dream, config, seed=0, judge=judge)
    assert [same(chosen.controller, weights) for weights in shown] == [True, False]
    assert chosen.rewrites == 6


def test_the_baseline_is_the_network_before_training(subject: Subject):
    """It has other weights than after it, the same ones each time, and torch's own generator is left as it was."""
    dream, config = subject
    trained = train_in_dream(dream, config, seed=0)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, second = (dream.untrained(config, seed=0) for _ in range(2))
    assert dream_score(dream, first, seed=0) == trained.untrained_percent
    assert torch.equal(torch.get_rng_state(), before)
    assert same(first, second.policy.state_dict())
    assert not same(first, trained.controller.policy.state_dict())
    assert not any(weight.requires_grad for weight in first.policy.parameters())


def test_networks_of_other_seeds_differ(graph_dream: GraphLevelDream):
    """Not so the linear ones, whose weights are all 0 at first."""
    first, other = (graph_dream.untrained(FACTORED, seed=seed) for seed in (0, 1))
    assert not same(first, other.policy.state_dict())


def test_a_controller_names_what_it_was_trained_on(
    graph_dream: GraphLevelDream, token_dream: MatchLevelDream, rollouts: Rollouts
):
    known = graph_dream.untrained(FACTORED, seed=0).arguments
    assert (known.rule_ids, known.library_hash, known.config) == (rollouts.rule_ids, "synthetic", FACTORED)
    assert known.max_locations == rollouts.action_space.max_locations
    of_tokens = token_dream.untrained(POINTER, seed=0).arguments
    assert (of_tokens.embedding, of_tokens.library_hash, of_tokens.config) == (EMBEDDING, "library", POINTER)


def test_a_dream_at_another_temperature_is_the_same_otherwise(subject: Subject):
    dream, _ = subject
    hot = dream.at(1.5)
    assert hot.config == replace(dream.config, temperature=1.5) != dream.config
    assert (hot.model, hot.starts) == (dream.model, dream.starts)


@pytest.mark.parametrize(
    "config",
    [
        replace(
            POINTER,
            total_steps=3000,
            steps_per_update=16,
            batch_size=64,
            epochs=3,
            greedy_weight=0.0,
            terminate_bias=-1.0,
        ),
        replace(CMA_ES, generations=20, population=10, initial_sigma=1.0),
    ],
    ids=["ppo", "cma_es"],
)
def test_a_loss_is_taken_that_leads_to_a_gain(
    token_dream: MatchLevelDream, config: MatchLevelControllerConfig | CmaEsConfig
):
    """A, then B, then terminate: sinh(1.82) - sinh(0.88). Greedy would not begin."""
    training = train_in_dream(token_dream, config, seed=0)
    assert training.score_percent == pytest.approx(3.005 - 0.998, abs=0.01)
    assert training.untrained_percent < 1.0


class Quitter:
    """Terminates at once."""

    def __init__(self, num_rules: int) -> None:
        self.num_rules = num_rules

    def act(self, observation: np.ndarray) -> np.ndarray:
        return np.tile([self.num_rules, 0], (len(observation), 1))


def test_who_does_nothing_scores_nothing(graph_dream: GraphLevelDream):
    """Only the first episode of each dream counts: with the following ones the reward of terminate would add up."""
    quitter = Quitter(len(graph_dream.model.arguments.rule_ids))
    assert dream_score(graph_dream, quitter, seed=0) == pytest.approx(0.0, abs=0.5)  # type: ignore[arg-type]
