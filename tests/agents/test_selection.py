"""The snapshot that does best is kept, whatever comes after it, through an interruption too."""

from pathlib import Path
from typing import Any

import pytest
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from support.slot_dream import SlotDream, SlotPolicy

from rlflow.agents.maskable_ppo import train_policy
from rlflow.agents.ppo_config import PPOConfig
from rlflow.agents.selection import Selection, Trial

Weights = dict[str, torch.Tensor]

# eight updates; trials after the third, the sixth and the last
CONFIG = PPOConfig(total_steps=512, steps_per_update=8, updates_per_trial=3, batch_size=32, epochs=2)


class Interrupted(Exception):
    """Stands for a kill between two updates."""


class ScriptedJudge:
    """Gives these scores in turn, and remembers the weights that it was shown."""

    def __init__(self, *scores: float) -> None:
        self.scores, self.shown = list(scores), list[Weights]()

    def __call__(self, policy: MaskableActorCriticPolicy) -> Trial:
        self.shown.append({name: value.clone() for name, value in policy.state_dict().items()})
        return Trial(self.scores[len(self.shown) - 1], rewrites=7)


def train(**settings: Any) -> MaskableActorCriticPolicy:
    return train_policy(SlotDream(), SlotPolicy, {"net_arch": [16]}, CONFIG, seed=0, fingerprint="", **settings)


def same(one: Weights, two: Weights) -> bool:
    return all(torch.equal(value, two[name]) for name, value in one.items())


@pytest.mark.parametrize(
    ("scores", "best"), [((3.0, 2.0, 1.0), 0), ((1.0, 3.0, 2.0), 1), ((1.0, 2.0, 3.0), 2), ((2.0, 1.0, 2.0), 2)]
)
def test_the_best_snapshot_is_returned_and_of_equal_ones_the_latest(scores, best) -> None:
    judge = ScriptedJudge(*scores)
    selection = Selection(judge)
    policy = train(selection=selection)
    assert not any(same(judge.shown[i], judge.shown[i - 1]) for i in (1, 2)), "PPO must have changed the weights"
    assert [same(weights, policy.state_dict()) for weights in judge.shown].index(True) == best
    assert (selection.score_percent, selection.rewrites) == (max(scores), 21)


def test_trials_do_not_change_the_training() -> None:
    judge = ScriptedJudge(1.0, 2.0, 3.0)
    tried = train(selection=Selection(judge))
    plain = train()
    assert same(plain.state_dict(), tried.state_dict())


def test_scores_are_reported_where_they_were_taken() -> None:
    reported: dict[int, float] = {}
    train(
        selection=Selection(ScriptedJudge(1.0, 3.0, 2.0)),
        on_update=lambda update, metrics: (
            reported.update({update: metrics["real_score_percent"]}) if "real_score_percent" in metrics else None
        ),
    )
    assert reported == {3: 1.0, 6: 3.0, 8: 2.0}


def test_an_interrupted_training_still_knows_its_best_snapshot(tmp_path: Path) -> None:
    """The best one was met before the interruption: only the checkpoint can bring it back."""
    checkpoint = tmp_path / "c"

    def interrupt(update: int, _: dict[str, float]) -> None:
        if update == 4:
            raise Interrupted

    first = ScriptedJudge(9.0)
    with pytest.raises(Interrupted):
        train(checkpoint=checkpoint, on_update=interrupt, selection=Selection(first))
    second = Selection(ScriptedJudge(1.0, 2.0))
    resumed = train(checkpoint=checkpoint, selection=second)
    assert same(first.shown[0], resumed.state_dict())
    assert (second.score_percent, second.rewrites) == (9.0, 21)
