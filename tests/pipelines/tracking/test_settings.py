"""The settings of a stage: only what it declares."""

import pytest
from tracking.settings import settings_of

from rlflow.errors import InputError

CONFIGURATION = {"seed": 7, "controller": {"steps": 100, "dream": {"envs": 8, "horizon": 12}}}


def test_the_settings_are_the_declared_sections():
    assert settings_of(["seed"], CONFIGURATION) == {"seed": 7}
    assert settings_of(["seed", "controller"], CONFIGURATION) == CONFIGURATION


def test_an_undeclared_section_is_refused():
    with pytest.raises(InputError, match="section controller is read but not declared"):
        settings_of(["seed"], CONFIGURATION)["controller"]
