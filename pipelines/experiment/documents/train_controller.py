"""The document of `train_controller`: what was trained in the dream."""

from typing import Annotated

from rlflow.schemas.figures import (
    DIGITS,
    EQUAL,
    NOT_EMPTY,
    TIMING,
    Cases,
    Count,
    Document,
    Figure,
    Positive,
    Seconds,
    Seed,
)


class Training(Document):
    """The controller of one graph, trained in the dream."""

    updates: Cases
    dream_steps: Cases
    dream_steps_per_s: Annotated[Positive, TIMING]
    """With PPO updates."""
    temperature: Annotated[Positive, EQUAL]
    """Tau of the dream."""
    dream_score_percent: Annotated[Figure, DIGITS]
    """Mean return of an episode in the dream after training, from the original; baseline: untrained or random."""
    real_score_percent: Annotated[Figure, DIGITS]
    """Improvement by a whole episode in the real environment, which may be longer than a dream; baseline: random."""
    real_interactions: Annotated[Count, DIGITS]
    """Steps of the real environment by which the best snapshot of the controller is chosen; a dream uses none."""
    training_s: Seconds
    seed: Seed


TrainController = Annotated[dict[str, Training], NOT_EMPTY]
"""Graph -> its controller, trained in the dream."""
