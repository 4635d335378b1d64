"""Figures by step, over all processes that a piece of work took: what its training figure is drawn from."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlflow.atomic_file import written_whole


class Curves:
    """Points by curve; goes on from those in a file. units: the curves that are kept, and the unit of each."""

    def __init__(self, path: Path, step_name: str, units: Mapping[str, str]) -> None:
        self._path, self._units = path, units
        empty = {name: {"unit": u, "step_name": step_name, "step": [], "value": []} for name, u in units.items()}
        self._curves: dict[str, Any] = json.loads(path.read_text()) if path.exists() else empty

    def add(self, step: int, metrics: Mapping[str, float]) -> None:
        """The points of a step; a step that is done again after a kill replaces the old one."""
        for name in self._units.keys() & metrics.keys():
            curve = self._curves[name]
            while curve["step"] and curve["step"][-1] >= step:
                curve["step"].pop()
                curve["value"].pop()
            curve["step"].append(step)
            curve["value"].append(float(metrics[name]))
        with written_whole(self._path) as draft:
            draft.write_text(json.dumps(self._curves))

    def to_json(self) -> dict[str, Any]:
        """Schema `curves`; curves without a point are left out."""
        return {name: curve for name, curve in self._curves.items() if curve["step"]}
