"""Every world model that can be chosen has a formulation, and what is drawn of its fit is kept."""

from pathlib import Path

import pytest
import yaml
from experiment.formulations import FORMULATIONS, formulation_of


def test_every_world_model_has_a_formulation(repository: Path) -> None:
    files = list((repository / "conf/world_model").glob("*.yaml"))
    found = [formulation_of(yaml.safe_load(path.read_text(encoding="utf-8"))) for path in files]
    assert {id(one) for one in found} == {id(one) for one in FORMULATIONS.values()}
    assert len(files) == len(FORMULATIONS) > 1


@pytest.mark.parametrize("name", FORMULATIONS)
def test_curves_that_are_drawn_are_kept(name: str) -> None:
    formulation = FORMULATIONS[name]
    assert 1 < len(formulation.drawn) < len(formulation.curves)
    assert set(formulation.drawn) <= formulation.curves.keys()
