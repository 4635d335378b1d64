"""The settings that stand where conf/ says nothing are those of the paper."""

from rlflow.world_model.graph_level.graph_level_config import GraphLevelModelConfig


def test_the_papers_sizes_are_the_defaults() -> None:
    config = GraphLevelModelConfig()
    assert (config.hidden, config.mixtures) == (256, 8)
