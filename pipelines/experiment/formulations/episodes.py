"""Episodes of rollouts, in any formulation: what is told of each, where they begin, and what they have improved."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rlflow.schemas.figures import Figure

OnEpisode = Callable[[int, float, float], None]
"""Called with the number of an episode, its return, and the improvement at its end, in percent."""


def improvements(at_end: Sequence[float], best: float) -> dict[str, Any]:
    """Return the figures of what episodes have improved, in percent: where they end, and at best anywhere."""
    mean = float(np.mean(at_end))
    return {
        "mean_improvement_percent": Figure(mean, 0.0, "do_nothing", len(at_end)).to_json(),
        "best_improvement_percent": Figure(best, 0.0, "do_nothing", len(at_end)).to_json(),
    }
