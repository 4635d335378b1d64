"""The settings of a stage: the sections of the configuration that dvc.yaml declares, and no others.

    settings = settings_of(["seed", "rollouts"], configuration)
    settings["rollouts"]["episodes"]
    settings["controller"]                           InputError: not declared

The invariant: what a stage reads, DVC watches.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rlflow.errors import InputError


class Settings(dict[str, Any]):
    """The declared sections of the configuration; reading another one raises `InputError`."""

    def __missing__(self, section: str) -> Any:
        raise InputError(f"section {section} is read but not declared; add it to the stage's params in dvc.yaml")


def settings_of(sections: Sequence[str], configuration: Mapping[str, Any]) -> Settings:
    """Return the declared sections."""
    return Settings({section: configuration[section] for section in sections})
