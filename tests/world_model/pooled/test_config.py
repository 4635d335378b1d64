"""The settings that stand where conf/ says nothing are those of the paper."""

from rlflow.world_model.pooled.config import WorldModelConfig


def test_the_papers_sizes_are_the_defaults() -> None:
    config = WorldModelConfig()
    assert (config.hidden, config.mixtures) == (256, 8)
