"""The settings of a stage: the sections of the configuration that dvc.yaml declares, and no others.

    settings = settings_of(["seed", "rollouts", "rounds.second.rollouts"], configuration)
    settings["rollouts"]["episodes"]                 as rounds.second.rollouts has it, if it does
    settings["controller"]                           InputError: not declared

The invariant: what a stage reads, DVC watches.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from rlflow.errors import InputError


class Settings(dict[str, Any]):
    """The declared sections of the configuration; reading another one raises `InputError`."""

    def __missing__(self, section: str) -> Any:
        raise InputError(f"section {section} is read but not declared; add it to the stage's params in dvc.yaml")


def settings_of(sections: Sequence[str], configuration: Mapping[str, Any]) -> Settings:
    """Return the declared sections, in which what a section `rounds.NAME.SECTION` has goes before what SECTION has.

    `InputError` for a setting of a round that its section does not have.
    """
    settings = Settings()
    for section in sections:
        *path, name = section.split(".")
        found = reduce(lambda part, key: part[key], [*path, name], configuration)
        settings[name] = _changed(settings[name], found, section) if path else found
    return settings


def _changed(settings: Any, changes: Any, place: str) -> Any:
    if not isinstance(changes, Mapping):
        return changes
    if unknown := changes.keys() - settings.keys():
        raise InputError(f"{place} has no {', '.join(sorted(unknown))}: choose among {', '.join(settings)}")
    return settings | {name: _changed(settings[name], part, f"{place}.{name}") for name, part in changes.items()}
