"""The settings of studies, composed outside of their programs."""

from collections.abc import Sequence

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig
from studies.program import CONF, GROUPS


def study_settings(study: str, overrides: Sequence[str] = ()) -> DictConfig:
    """What the program of conf/study/`study`.yaml is started with, unresolved."""
    with initialize_config_dir(str(CONF / "study"), version_base="1.3"):
        return compose(study, [*overrides, GROUPS])
