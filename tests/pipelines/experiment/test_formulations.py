"""Every world model that can be chosen has all parts of a formulation, and what is drawn of its fit is kept."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from experiment.formulations.controllers import CONTROLLERS, controller_of
from experiment.formulations.match_level.pretrained import pretrained
from experiment.formulations.rollouts import ROLLOUTS, rollouts_of
from experiment.formulations.world_models import WORLD_MODELS, world_model_of

from rlflow.agents.match_level.taught_guide import shipped
from rlflow.errors import InputError
from rlflow.plugins import Registry

PARTS = {rollouts_of: ROLLOUTS, world_model_of: WORLD_MODELS, controller_of: CONTROLLERS}


@pytest.mark.parametrize(("part_of", "parts"), PARTS.items())
def test_every_world_model_has_a_formulation(part_of: Any, parts: Registry[Any], repository: Path) -> None:
    files = list((repository / "conf/world_model").glob("*.yaml"))
    found = [part_of(yaml.safe_load(path.read_text(encoding="utf-8"))) for path in files]
    assert {id(one) for one in found} == {id(parts.get(name)) for name in parts.names()}
    assert len(files) == len(found) > 1


@pytest.mark.parametrize("name", WORLD_MODELS.names())
def test_curves_that_are_drawn_are_kept(name: str) -> None:
    world_model = WORLD_MODELS.get(name)
    assert 1 < len(world_model.DRAWN) < len(world_model.CURVES)
    assert set(world_model.DRAWN) <= world_model.CURVES.keys()


def test_v_goes_on_from_the_policy_that_ships_or_from_nothing() -> None:
    assert pretrained({"pretrained": None}) is None
    known = pretrained({"pretrained": "shipped"})
    assert known is not None
    assert known.model.state_dict().keys() == shipped().model.state_dict().keys()
    assert known.controller is not None
    with pytest.raises(InputError, match="pretrained=other: choose shipped, or null"):
        pretrained({"pretrained": "other"})
