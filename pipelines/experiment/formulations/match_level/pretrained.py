"""The world model that one over match tokens goes on from."""

from collections.abc import Mapping
from typing import Any

from rlflow.agents.match_level.taught_guide import shipped
from rlflow.errors import InputError
from rlflow.world_model.match_level.model import MatchLevelModel


def pretrained(settings: Mapping[str, Any]) -> MatchLevelModel | None:
    """Return the model of the policy that ships; None where the setting is null. `InputError` for any other name."""
    name = settings["pretrained"]
    if name not in (None, "shipped"):
        raise InputError(f"pretrained={name}: choose shipped, or null for a V that begins afresh")
    return None if name is None else shipped().model
