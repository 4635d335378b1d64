"""A section of conf/ becomes a configuration, or is refused."""

import pytest

from rlflow.errors import InputError
from rlflow.world_model.config import DreamConfig, WorldModelConfig, read_config


def test_a_section_sets_what_it_names_and_leaves_the_rest() -> None:
    config = read_config(DreamConfig, {"temperature": 0.5})
    assert config == DreamConfig(temperature=0.5)


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown setting tau; the settings are num_envs, max_steps"):
        read_config(DreamConfig, {"tau": 0.5})


def test_the_papers_sizes_are_the_defaults() -> None:
    config = WorldModelConfig()
    assert (config.hidden, config.mixtures) == (256, 8)
