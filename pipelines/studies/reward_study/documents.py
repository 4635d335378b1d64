"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from rlflow.schemas.figures import NOT_EMPTY, TIMING, Count, Document, Percent, Seconds, Seed, Share
from studies.figures import MeasuredRatio, Median, Settings


class Setting(Document):
    """The latency of the original over that of the result, and the noise floor."""

    ratio: MeasuredRatio
    """The original over what was found."""
    control: MeasuredRatio
    """The original over itself."""


class Row(Document):
    """One seed of an agent that learns by one reward."""

    seed: Seed
    curve: Annotated[list[Percent], NOT_EMPTY]
    """The reward of an episode of the most probable actions, after each update."""
    interactions: Count
    """Rewrites that were carried out, trials included."""
    training_s: Seconds
    """Measurements included."""
    measurements: Annotated[Count, TIMING]
    """Graphs that were timed; 0 where rewards are computed."""
    measuring_s: Seconds
    rewards_measured: Annotated[Count, TIMING]
    """Rewards that compared two graphs."""
    rewards_noise: Annotated[Count, TIMING]
    """Those that were 0 because of noise."""
    noise_share: Share | None
    """Null where no reward is measured."""
    estimated_percent: Percent
    """What is saved by the cost model's price."""
    latency: Settings[Setting]


class Reward(Document):
    """One reward over its seeds."""

    seeds: Annotated[list[Row], NOT_EMPTY]
    latency_ratio_as_written: Median
    latency_ratio_deployed: Median
    training_s: Median
    measuring_s: Median
    measurements: Median
    noise_share: Median | None


RewardStudy = Annotated[dict[str, Annotated[dict[str, Reward], NOT_EMPTY]], NOT_EMPTY]
"""Graph -> reward -> what a model-free agent found that learned by it, in medians over seeds, and what the training
took.
"""


DOCUMENTS = {"reward_study/metrics.json": RewardStudy}
"""Types of results files, by the pattern that the end of a file's path matches."""
