"""Curves of a training, from all the processes that it took; the training figures are drawn from them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlflow.atomic_file import written_whole


class Curves:
    """The points of each curve, continued from a file if it exists. units: the curves to keep, and the unit of each."""

    def __init__(self, path: Path, step_name: str, units: Mapping[str, str]) -> None:
        self._path, self._units = path, units
        self._curves: dict[str, Any]
        if path.exists():
            self._curves = json.loads(path.read_text())
        else:
            self._curves = {
                name: {"unit": unit, "step_name": step_name, "step": [], "value": []} for name, unit in units.items()
            }

    def add(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add the points of a step; a step that is repeated after a kill replaces the old one and all after it."""
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
        """The curves in the form in which schema `curves` has those of a graph; ones without a point are left out."""
        return {name: curve for name, curve in self._curves.items() if curve["step"]}
