"""Episodes of rollouts, in any formulation: what is told of each, where they begin, and what they have improved."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tracking.stage import Stage

from rlflow.schemas.figures import Figure
from rlflow.trajectory import record
from rlflow.trajectory.record import Trajectory

OnEpisode = Callable[[int, float, float], None]
"""Called with the number of an episode, its return, and the improvement at its end, in percent."""


def ways_before(stage: Stage) -> list[Trajectory]:
    """Return the trajectories of the policy of the round before; none in the first round."""
    if stage.before is None:
        return []
    return record.load(stage.input(f"{stage.before}/policies/{stage.graph}/ways.jsonl"))


def improvements(at_end: Sequence[float], best: float) -> dict[str, Any]:
    """Return the figures of what episodes have improved, in percent: where they end, and at best anywhere."""
    mean = float(np.mean(at_end))
    return {
        "mean_improvement_percent": Figure(mean, 0.0, "do_nothing", len(at_end)).to_json(),
        "best_improvement_percent": Figure(best, 0.0, "do_nothing", len(at_end)).to_json(),
    }
