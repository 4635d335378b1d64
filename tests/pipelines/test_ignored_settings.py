"""No stage of dvc.yaml takes a group of settings that it ignores, and each takes those that it reads."""

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf
from tracking.composition import compose_configuration, graph_names
from tracking.declaration import StageDeclaration, read_declaration, stage_names
from tracking.overrides import refuse_ignored
from tracking.settings import settings_of

from rlflow.errors import InputError

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
SCRIPTS = tuple(name for name in stage_names(ROOT) if name not in ("code", "config"))
OPTIONS = {
    "agent": ("+agent=candidates",),
    "controller": ("controller=cma_es",),
    "cost": ("cost=analytic",),
    "environment": ("environment=substitution", "environment.max_steps=7"),
    "evaluation": ("evaluation=default", "evaluation.longest_s=7.0"),
    "experiment": ("experiment=smoke",),
    "graph": ("graph=vit",),
    "pass_agent": ("+pass_agent=ppo", "+steps=64", "+episode.max_steps=24"),
    "reward": ("reward=runtime",),
    "rollouts": ("rollouts=random",),
    "rules": ("rules=default", "rules.selection.size=7"),
    "search": ("+search@evaluation.methods.another=greedy",),
    "world_model": ("world_model=graph_level",),
}
"""Of each group an option, and what it takes beside it to be another than the experiment's and to compose."""


@cache
def composed(*overrides: str) -> DictConfig:
    return compose_configuration(overrides, CONF)


@cache
def declaration(stage: str) -> StageDeclaration:
    return read_declaration(stage, ROOT)


def given(stage: str, config: DictConfig) -> Any:
    """What a stage is given of a configuration; nothing if it takes no such settings."""
    try:
        everything: Any = OmegaConf.to_container(config, resolve=True)
        sections = settings_of(declaration(stage).sections, everything)
    except InputError:
        return None
    return dict(sections), graph_names(config)


def test_every_group_is_tried():
    """But `sweep`, whose options say what a multirun goes over; each is refused where its settings are."""
    groups = {folder.name for folder in CONF.iterdir() if folder.is_dir() and folder.name not in ("hydra", "study")}
    assert OPTIONS.keys() == groups - {"sweep"}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("group", OPTIONS)
def test_a_group_is_refused_where_it_changes_nothing(group: str, script: str):
    """By what is given to the stage under this and under the experiment's option, whatever it declares."""
    option, *beside = OPTIONS[group]
    other = composed(option, *beside)
    if given(script, composed()) == given(script, other):
        with pytest.raises(InputError, match=f"^{script} ignores .*: {group}.* is read by "):
            refuse_ignored(script, [option], other, [CONF], ROOT)
    else:
        refuse_ignored(script, [option], other, [CONF], ROOT)


def test_some_are_refused_and_some_are_not():
    """Not vacuous: the pairs of stage and group that the issue names, and how many there are."""
    pairs = {pair for pair in product(OPTIONS, SCRIPTS) if refused(*pair)}
    assert ("reward", "fit_world_model") in pairs
    assert ("reward", "train_controller") not in pairs
    assert ("reward", "collect_rollouts") not in pairs
    assert {script for group, script in pairs if group == "controller"} == {
        "generate_rules",
        "collect_rollouts",
        "fit_world_model",
        "evaluate",
    }
    assert len(pairs) > len(SCRIPTS) * 4
    assert len(pairs) < len(SCRIPTS) * (len(OPTIONS) - 3)


def refused(group: str, script: str) -> bool:
    try:
        refuse_ignored(script, OPTIONS[group][:1], composed(), [CONF], ROOT)
    except InputError:
        return True
    return False


@pytest.mark.parametrize(
    ("script", "override"),
    [
        ("fit_world_model", "graphs.bert.settings.layers=2"),  # it reads rollouts, whatever graph these were of
        ("evaluate", "temperature=0.5,1.0"),
        ("evaluate", "world_model.epochs=3"),
        ("collect_rollouts", "controller.ppo.epochs=1"),
        ("train_controller", "rollouts.episodes=5"),
        ("generate_rules", "reward.kind=runtime"),
        ("temperature_sweep", "evaluation.gate.draws=1"),
        ("train_controller", "sweep.seeds=[7]"),
    ],
)
def test_single_settings_are_refused_alike(script: str, override: str):
    with pytest.raises(InputError, match=f"^{script} ignores {override.split('=')[0]}="):
        refuse_ignored(script, [override], composed(), [CONF], ROOT)
