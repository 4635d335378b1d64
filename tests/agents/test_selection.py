"""The snapshot that does best is kept, whatever comes after it, through an interruption too."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from rlflow.agents.config import ControllerConfig
from rlflow.agents.controller import Controller
from rlflow.agents.maskable_ppo import train_controller
from rlflow.agents.selection import Selection, Trial
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.config import DreamConfig
from rlflow.world_model.dream_env import DreamEnv, visited_states
from rlflow.world_model.model import WorldModel

Weights = dict[str, torch.Tensor]

# eight updates; trials after the third, the sixth and the last
CONFIG = ControllerConfig(
    total_steps=512, steps_per_update=8, updates_per_trial=3, batch_size=32, epochs=2, width=16, rule_embedding=4
)


class Interrupted(Exception):
    """Stands for a kill between two updates."""


class ScriptedJudge:
    """Gives these scores in turn, and remembers the weights that it was shown."""

    def __init__(self, *scores: float) -> None:
        self.scores, self.shown = list(scores), list[Weights]()

    def __call__(self, controller: Controller) -> Trial:
        self.shown.append({name: value.clone() for name, value in controller.policy.state_dict().items()})
        return Trial(self.scores[len(self.shown) - 1], interactions=7)


@pytest.fixture
def fresh(world_model: WorldModel, rollouts: Rollouts) -> Callable[[], DreamEnv]:
    starts = visited_states(world_model, rollouts)
    return lambda: DreamEnv(world_model, starts, DreamConfig(num_envs=8, max_steps=12), seed=0)


def same(one: Weights, two: Weights) -> bool:
    return all(torch.equal(value, two[name]) for name, value in one.items())


@pytest.mark.parametrize(
    ("scores", "best"), [((3.0, 2.0, 1.0), 0), ((1.0, 3.0, 2.0), 1), ((1.0, 2.0, 3.0), 2), ((2.0, 1.0, 2.0), 2)]
)
def test_the_best_snapshot_is_returned_and_of_equal_ones_the_latest(fresh, scores, best) -> None:
    judge = ScriptedJudge(*scores)
    selection = Selection(judge)
    controller = train_controller(fresh(), CONFIG, seed=0, selection=selection)
    assert not any(same(judge.shown[i], judge.shown[i - 1]) for i in (1, 2)), "PPO must have changed the weights"
    assert [same(weights, controller.policy.state_dict()) for weights in judge.shown].index(True) == best
    assert (selection.score_percent, selection.interactions) == (max(scores), 21)


def test_trials_do_not_change_the_training(fresh) -> None:
    judge = ScriptedJudge(1.0, 2.0, 3.0)
    tried = train_controller(fresh(), CONFIG, seed=0, selection=Selection(judge))
    plain = train_controller(fresh(), CONFIG, seed=0)
    assert same(plain.policy.state_dict(), tried.policy.state_dict())


def test_scores_are_reported_where_they_were_taken(fresh) -> None:
    reported: dict[int, float] = {}
    train_controller(
        fresh(),
        CONFIG,
        seed=0,
        selection=Selection(ScriptedJudge(1.0, 3.0, 2.0)),
        on_update=lambda update, metrics: (
            reported.update({update: metrics["real_score_percent"]}) if "real_score_percent" in metrics else None
        ),
    )
    assert reported == {3: 1.0, 6: 3.0, 8: 2.0}


def test_an_interrupted_training_still_knows_its_best_snapshot(fresh, tmp_path: Path) -> None:
    """The best one was met before the interruption: only the checkpoint can bring it back."""
    checkpoint = tmp_path / "c"

    def interrupt(update: int, _: dict[str, float]) -> None:
        if update == 4:
            raise Interrupted

    first = ScriptedJudge(9.0)
    with pytest.raises(Interrupted):
        train_controller(
            fresh(), CONFIG, seed=0, checkpoint=checkpoint, on_update=interrupt, selection=Selection(first)
        )
    second = Selection(ScriptedJudge(1.0, 2.0))
    resumed = train_controller(fresh(), CONFIG, seed=0, checkpoint=checkpoint, selection=second)
    assert same(first.shown[0], resumed.policy.state_dict())
    assert (second.score_percent, second.interactions) == (9.0, 21)
