"""Episodes of rollouts, in any formulation: what is told of each, where they begin, and what they have improved."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rlflow.environments.end_to_end import EndToEnd
from rlflow.environments.reward_config import RewardConfig
from rlflow.schemas.figures import Figure

OnEpisode = Callable[[int, float, float], None]
"""Called with the number of an episode, what it has saved by price, and the improvement at its end, in percent."""


def timed_by(settings: Mapping[str, Any]) -> EndToEnd | None:
    """Return what times the graphs on the way, if the reward of the settings is measured.

    Rollouts tell what any computed reward is a function of, so they are the same by all of these.
    """
    reward = RewardConfig(**settings["reward"])
    return EndToEnd(reward) if reward.is_measured else None


def improvements(at_end: Sequence[float], best: float) -> dict[str, Any]:
    """Return the figures of what episodes have improved, in percent: where they end, and at best anywhere."""
    mean = float(np.mean(at_end))
    return {
        "mean_improvement_percent": Figure(mean, 0.0, "do_nothing", len(at_end)).to_json(),
        "best_improvement_percent": Figure(best, 0.0, "do_nothing", len(at_end)).to_json(),
    }
