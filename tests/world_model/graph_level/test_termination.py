import pytest

from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.termination import termination_accuracy


def test_the_end_follows_from_the_action(world_model: GraphLevelModel, rollouts: Rollouts) -> None:
    """Every end of these episodes is a choice, so that M can know it; guessing the commoner outcome cannot."""
    accuracy, majority, cases = termination_accuracy(world_model, world_model.latents(rollouts), rollouts.episodes)
    steps = sum(episode.num_steps for episode in rollouts.episodes)
    ends = sum(int(episode.terminated.sum()) for episode in rollouts.episodes)
    assert 0 < ends < steps == cases
    assert majority == pytest.approx(max(ends, steps - ends) / steps)
    assert accuracy == 1.0
