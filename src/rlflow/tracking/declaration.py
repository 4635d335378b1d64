"""The declaration of a stage in dvc.yaml, the one place that says what the stage reads and writes."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from rlflow.errors import InputError


@dataclass(frozen=True)
class StageDeclaration:
    """One stage of dvc.yaml; paths are relative to the repository's root.

    sections: keys of params.yaml. outputs: outs, metrics and plots alike.
    """

    name: str
    sections: tuple[str, ...]
    dependencies: tuple[str, ...]
    outputs: tuple[str, ...]


def read_declaration(name: str, root: Path) -> StageDeclaration:
    """The stage `name` of `root`/dvc.yaml. Raises InputError if there is none."""
    stages = _stages(root)
    if name not in stages:
        raise InputError(f"{root / 'dvc.yaml'} has no stage {name}; the stages are {', '.join(stages)}")
    stage = stages[name]
    written = [*stage.get("outs", []), *stage.get("metrics", []), *stage.get("plots", [])]
    return StageDeclaration(
        name=name,
        sections=tuple(stage.get("params", [])),
        dependencies=_paths(stage.get("deps", [])),
        outputs=_paths(written),
    )


def _stages(root: Path) -> dict[str, Any]:
    path = root / "dvc.yaml"
    if not path.is_file():
        raise InputError(f"{path} does not exist; start a stage from the root of the repository")
    content: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    stages: dict[str, Any] = content["stages"]
    return stages


def _paths(entries: Iterable[str | dict[str, Any]]) -> tuple[str, ...]:
    """The paths of entries, each of which is a path or a path with its settings."""
    return tuple(entry if isinstance(entry, str) else next(iter(entry)) for entry in entries)
