"""The policy that V, M and C over match tokens go on from."""

from collections.abc import Mapping
from typing import Any

from rlflow.agents.match_level.taught_guide import TaughtGuide, shipped
from rlflow.errors import InputError


def pretrained(settings: Mapping[str, Any]) -> TaughtGuide | None:
    """Return the policy that ships; None where the setting is null. `InputError` for any other name."""
    name = settings["pretrained"]
    if name not in (None, "shipped"):
        raise InputError(f"pretrained={name}: choose shipped, or null for networks that begin afresh")
    return None if name is None else shipped()
