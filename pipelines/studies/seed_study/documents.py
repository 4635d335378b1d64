"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from rlflow.schemas.figures import NOT_EMPTY, Count, Document, Percent, Seconds, Seed


class Row(Document):
    """One seed: rollouts, world model and controller made anew."""

    seed: Seed
    rlflow_percent: Percent
    """Best graph of the controller's episodes on the real graph."""
    untrained_percent: Percent
    """The same episodes with the controller as it was before its training: the baseline of rlflow_percent."""
    controller_alone_percent: Percent
    """The controller's episodes without trying its proposals on the real graph."""
    untrained_alone_percent: Percent
    """The baseline of controller_alone_percent."""
    greedy_percent: Percent
    """Greedy search to its fixpoint."""
    backtracking_percent: Percent
    """TASO's search."""
    random_percent: Percent
    """Best graph of the rollouts: the trivial baseline."""
    share_of_best_search: float
    """rlflow_percent over the larger of greedy_percent and backtracking_percent."""
    dream_score_percent: Percent
    """What the dream promised, reduced by the expected errors of its rewards."""
    rules: Count
    """In the agent's set."""
    rules_that_fire: Count
    """Applied at least once in the rollouts."""
    rollout_steps: Count
    """Real interactions of the training."""
    trial_steps: Count
    """Real interactions by which the best snapshot of the controller is chosen."""
    policy_steps: Count
    """Real interactions of the controller's episodes."""
    backtracking_expansions: Count
    training_s: Seconds


SeedStudy = Annotated[dict[str, Annotated[list[Row], NOT_EMPTY]], NOT_EMPTY]
"""Graph -> one row a seed: rollouts, world model and controller from that seed, against searches on the same rules
and prices. Improvements are drops of the predicted runtime in percent.
"""


DOCUMENTS = {"seed_study/metrics.json": SeedStudy}
"""Types of results files, by the pattern that the end of a file's path matches."""
