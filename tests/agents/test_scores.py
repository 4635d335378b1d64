"""Scores of agents whose episodes are known."""

from typing import Any

import numpy as np
from support.slot_dream import SLOTS, SlotDream

from rlflow.agents.scores import mean_return


def test_only_the_first_episode_of_each_environment_counts() -> None:
    """Half of the dreams take slots 2 and 1, the others slot 3 and terminate, and would go on to earn more."""
    dream, steps = SlotDream(initial_fraction=1.0), iter([(2, 3), (1, SLOTS), (0, 3)])

    def act(observation: Any) -> np.ndarray:
        assert observation["filled"].shape == (8, SLOTS)
        patient, hasty = next(steps)
        return np.array([patient] * 4 + [hasty] * 4)

    assert mean_return(dream, act) == (4 * (2 + 1 + 0) + 4 * 3) / 8
    assert next(steps, None) is None, "the horizon ends the patient ones"
