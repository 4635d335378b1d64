"""The declaration of a stage in dvc.yaml, the one place that says what the stage reads and writes.

    read_declaration("fit_world_model", root).outputs      # ("data/world_models", ...)
    outputs_by_kind(root)["data/world_models"]             # Kind.DIGITS, from its `meta: {reproduces: digits}`

dvc.lock tells what the last run wrote: `digests` reads it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from yaml import YAMLError

from rlflow.errors import InputError
from rlflow.schemas import Kind


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
    return StageDeclaration(
        name=name,
        sections=tuple(stage.get("params", [])),
        dependencies=_paths(stage.get("deps", [])),
        outputs=_paths(_written(stage)),
    )


def stage_names(root: Path) -> tuple[str, ...]:
    """The stages of `root`/dvc.yaml, in its order, in which each comes after those that it depends on."""
    return tuple(_stages(root))


def outputs_by_kind(root: Path) -> dict[str, Kind | None]:
    """The outputs of all stages of `root`/dvc.yaml, and how each is the same when it is written again, where `meta`
    says it.

    Raises InputError for a kind that there is not.
    """
    entries = [entry for stage in _stages(root).values() for entry in _written(stage)]
    return {path: _kind(path, settings) for path, settings in map(_path_and_settings, entries)}


def digests(lock: str) -> dict[str, str]:
    """The digests of all outputs by their paths, from the text of a dvc.lock. Raises InputError if it is no YAML."""
    try:
        content: Any = OmegaConf.to_container(OmegaConf.create(lock), resolve=False)
    except YAMLError as error:
        raise InputError(f"dvc.lock cannot be read: {error}") from error
    stages = content.get("stages", {}).values()
    return {out["path"]: out["md5"] for stage in stages for out in stage.get("outs", [])}


def _stages(root: Path) -> dict[str, Any]:
    path = root / "dvc.yaml"
    if not path.is_file():
        raise InputError(f"{path} does not exist; start a stage from the root of the repository")
    content: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    stages: dict[str, Any] = content["stages"]
    return stages


def _written(stage: dict[str, Any]) -> list[str | dict[str, Any]]:
    return [*stage.get("outs", []), *stage.get("metrics", []), *stage.get("plots", [])]


def _paths(entries: Iterable[str | dict[str, Any]]) -> tuple[str, ...]:
    return tuple(path for path, _ in map(_path_and_settings, entries))


def _path_and_settings(entry: str | dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """An entry is a path, or a path with its settings."""
    return (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))


def _kind(path: str, settings: dict[str, Any]) -> Kind | None:
    kind = settings.get("meta", {}).get("reproduces")
    if kind is not None and kind not in list(Kind):
        raise InputError(f"dvc.yaml: {path} reproduces as {kind!r}, which is none of {', '.join(Kind)}")
    return None if kind is None else Kind(kind)
