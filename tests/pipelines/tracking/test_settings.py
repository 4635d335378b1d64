"""The settings of a stage: only what it declares, as its round has it."""

import pytest
from tracking.settings import settings_of

from rlflow.errors import InputError

CONFIGURATION = {
    "seed": 7,
    "controller": {"steps": 100, "dream": {"envs": 8, "horizon": 12}},
    "rounds": {
        "first": {"controller": {"steps": 10, "dream": {"envs": 2}}},
        "second": {"controller": {}},
        "wrong": {"controller": {"dream": {"width": 3}}},
    },
}


def test_a_round_has_what_it_does_not_say_otherwise():
    settings = settings_of(["seed", "controller", "rounds.first.controller"], CONFIGURATION)
    assert settings == {"seed": 7, "controller": {"steps": 10, "dream": {"envs": 2, "horizon": 12}}}
    unchanged = settings_of(["controller", "rounds.second.controller"], CONFIGURATION)
    assert unchanged == {"controller": CONFIGURATION["controller"]}


def test_a_setting_that_there_is_not_is_refused():
    with pytest.raises(InputError, match=r"rounds\.wrong\.controller\.dream has no width: choose among envs, horizon"):
        settings_of(["controller", "rounds.wrong.controller"], CONFIGURATION)


def test_an_undeclared_section_is_refused():
    with pytest.raises(InputError, match="section controller is read but not declared"):
        settings_of(["seed"], CONFIGURATION)["controller"]
    with pytest.raises(InputError, match="section controller is read but not declared"):
        settings_of(["rounds.first.controller"], CONFIGURATION)
