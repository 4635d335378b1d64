"""A policy that learns on the real graph: it repeats itself, goes on after a kill, and counts what it does."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.token_worlds import SMALL, small_process, small_token_rollouts
from support.walks import LIBRARY

from rlflow.agents.dream_training import DreamTraining, train_in_dream
from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.model_free import RealGraph
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.agents.selection import Trial
from rlflow.environments.end_to_end import EndToEnd
from rlflow.environments.reward_config import RewardConfig
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.runtime.timing.savings import Saving
from rlflow.world_model.match_level.model import MatchLevelModel, MatchLevelModelArguments

EPISODES = RealEpisodesConfig(num_envs=4, max_steps=3, max_kinds=48)
PPO = MatchLevelControllerConfig(
    total_steps=96,
    steps_per_update=8,
    batch_size=32,
    epochs=1,
    width=8,
    updates_per_trial=1,
    greedy_weight=0.0,
    terminate_bias=-20.0,
)


@pytest.fixture(scope="module")
def model() -> MatchLevelModel:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        arguments = MatchLevelModelArguments(small_token_rollouts().vocabulary, LIBRARY.hash, SMALL)
        return MatchLevelModel(arguments).eval().requires_grad_(False)


def weights(controller: MatchLevelController) -> list[torch.Tensor]:
    return list(controller.policy.state_dict().values())


def same(one: MatchLevelController, other: MatchLevelController) -> bool:
    return all(torch.equal(*pair) for pair in zip(weights(one), weights(other), strict=True))


@pytest.mark.slow
def test_every_step_is_counted_and_a_killed_training_ends_alike(model: MatchLevelModel, tmp_path: Path) -> None:
    class Interrupted(Exception):
        """Stands for a kill."""

    def interrupt(update: int, _: dict[str, float]) -> None:
        if update == 2:
            raise Interrupted

    def trained(**options: Any) -> DreamTraining[MatchLevelController]:
        return train_in_dream(RealGraph(model, small_process(), EPISODES), PPO, **{"seed": 0} | options)

    counted: list[float] = []
    training = trained(on_round=lambda _, said: counted.append(said["rewrites"]))
    assert training.rewrites == counted[-1], "neither more nor less, since there was no judge"
    whole = training.controller
    assert all(rewrites >= 32 * update for update, rewrites in enumerate(counted, start=1)), "one a choice at least"
    assert len(counted) == 3
    with pytest.raises(Interrupted):
        trained(checkpoint=tmp_path / "c", on_round=interrupt)
    again = trained(checkpoint=tmp_path / "c")
    assert same(again.controller, whole)
    assert again.rewrites == training.rewrites
    assert not same(trained(seed=1).controller, whole)


@pytest.mark.slow
def test_a_measured_reward_goes_on_from_what_it_knew(model: MatchLevelModel, tmp_path: Path) -> None:
    """A killed training ends alike, and times no graph again; another reward is another training."""
    timed: list[str] = []

    def by_weight(start: Graph, graph: Graph, config: RewardConfig) -> Saving:
        timed.append(structural_hash(graph))
        saved = 10.0 * (len(start.order) - len(graph.order))
        return Saving(saved, saved, saved)

    def trained(every: int, until: int = 3, checkpoint: Path | None = None) -> MatchLevelController:
        told: list[dict[str, float]] = []

        def on_update(update: int, said: dict[str, float]) -> None:
            told.append(said)
            if update == until != 3:
                raise InterruptedError

        reward = EndToEnd(RewardConfig("end_to_end", every=every), by_weight)
        graph = RealGraph(model, small_process(), EPISODES, reward)
        controller = train_in_dream(graph, PPO, seed=0, checkpoint=checkpoint, on_round=on_update).controller
        assert all(said["measurements"] <= said["rewrites"] for said in told)
        assert told[-1]["measurements"] > 0
        return controller

    whole = trained(every=1)
    assert len(timed) == len({*timed})
    alone = {*timed}
    timed.clear()
    with pytest.raises(InterruptedError):
        trained(every=1, until=2, checkpoint=tmp_path / "c")
    assert same(trained(every=1, checkpoint=tmp_path / "c"), whole)
    assert len(timed) == len({*timed})
    assert {*timed} == alone
    assert not same(trained(every=2, checkpoint=tmp_path / "c"), whole), "it does not go on from that checkpoint"


@pytest.mark.slow
def test_the_best_of_what_was_tried_is_kept(model: MatchLevelModel) -> None:
    """By what the judge says of each. Not vacuous: the second is the best, and snapshots differ."""
    process, scores, tried = small_process(), iter([1.0, 3.0, 2.0, 0.0, 2.5]), list[dict[str, torch.Tensor]]()

    def judge(controller: MatchLevelController) -> Trial:
        tried.append({name: weight.clone() for name, weight in controller.policy.state_dict().items()})
        return Trial(next(scores), 3)

    short, longer = replace(EPISODES, max_steps=2), replace(PPO, total_steps=192, updates_per_trial=2)
    best = train_in_dream(RealGraph(model, process, short), longer, seed=0, judge=judge).controller
    alike = [all(torch.equal(weight, one[name]) for name, weight in best.policy.state_dict().items()) for one in tried]
    assert alike == [number == 1 for number in range(len(tried))]
    assert len(tried) >= 3, "else the best is the last"
