"""A section of conf/ becomes a configuration, or is refused."""

from dataclasses import dataclass

import pytest

from rlflow.errors import InputError
from rlflow.world_model.settings import read_config


@dataclass(frozen=True)
class Oven:
    """Settings with defaults."""

    temperature: float = 1.0
    minutes: int = 20


def test_a_section_sets_what_it_names_and_leaves_the_rest() -> None:
    assert read_config(Oven, {"temperature": 0.5}) == Oven(0.5, 20)


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"Oven: unknown setting tau; the settings are temperature, minutes"):
        read_config(Oven, {"tau": 0.5})
