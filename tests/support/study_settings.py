"""The settings of studies, composed outside of their programs."""

from collections.abc import Sequence
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf
from studies.program import CONF, GROUPS


def study_settings(study: str, overrides: Sequence[str] = ()) -> DictConfig:
    """What the program of conf/study/`study`.yaml is started with, unresolved."""
    with initialize_config_dir(str(CONF / "study"), version_base="1.3"):
        return compose(study, [*overrides, GROUPS])


def plain_settings(study: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Those settings resolved, as plain values."""
    composed: Any = OmegaConf.to_container(study_settings(study, overrides), resolve=True)
    return composed


def option_names(group: str) -> set[str]:
    """The options of a group of conf/."""
    return {file.stem for file in (CONF / group).glob("*.yaml")}
