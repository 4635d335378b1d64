"""The declaration of a stage in dvc.yaml, the one place that says what the stage reads and writes.

    read_declaration("fit_world_model", root).outputs      # ("data/world_models", ...)
    outputs_by_kind(root)["data/world_models"]             # Kind.DIGITS, from its `meta: {reproduces: digits}`

dvc.lock tells what the last run wrote: `digests` reads it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

from rlflow.errors import InputError
from rlflow.schemas import Kind


@dataclass(frozen=True)
class StageDeclaration:
    """One stage of dvc.yaml; paths are relative to the repository's root.

    sections: keys of params.yaml. outputs: outs, metrics and plots alike. results: the folder of its figures.
    description: `desc`.
    """

    name: str
    sections: tuple[str, ...]
    dependencies: tuple[str, ...]
    outputs: tuple[str, ...]
    results: str
    description: str = ""

    @property
    def summary(self) -> str | None:
        """The few figures that DVC shows, a YAML file beside the folder of all of them; None if there is none."""
        beside = Path(self.results).parent
        found = (path for path in self.outputs if Path(path).parent == beside and path.endswith(".yaml"))
        return next(found, None)


def read_declaration(name: str, root: Path) -> StageDeclaration:
    """The stage `name` of `root`/dvc.yaml. Raises InputError if there is none."""
    stages = _stages(root)
    if name not in stages:
        raise InputError(f"{root / 'dvc.yaml'} has no stage {name}; the stages are {', '.join(stages)}")
    return _declaration(name, stages[name])


def read_declarations(root: Path) -> dict[str, StageDeclaration]:
    """All stages of `root`/dvc.yaml by their names, in its order; none if there is no such file."""
    found = _stages(root) if (root / "dvc.yaml").is_file() else {}
    return {name: _declaration(name, stage) for name, stage in found.items()}


def _declaration(name: str, stage: dict[str, Any]) -> StageDeclaration:
    return StageDeclaration(
        name=name,
        sections=tuple(entry for entry in stage.get("params", []) if isinstance(entry, str)),
        dependencies=_paths(stage.get("deps", [])),
        outputs=_paths(_written(stage)),
        results=f"data/results/{name}",
        description=stage.get("desc", ""),
    )


def stage_names(root: Path) -> tuple[str, ...]:
    """The stages of `root`/dvc.yaml, each after those that it depends on."""
    stages = _stages(root)
    writers = {path: name for name, stage in stages.items() for path in _paths(_written(stage))}
    reads = {name: _paths(stage.get("deps", [])) for name, stage in stages.items()}
    before = {
        name: [writer for path, writer in writers.items() if any(_overlap(path, read) for read in reads[name])]
        for name in stages
    }
    return tuple(TopologicalSorter(before).static_order())


def _overlap(one: str, other: str) -> bool:
    return Path(one).is_relative_to(other) or Path(other).is_relative_to(one)


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
        content = yaml.safe_load(lock) or {}
    except yaml.YAMLError as error:
        raise InputError(f"dvc.lock cannot be read: {error}") from error
    stages = content.get("stages", {}).values()
    return {out["path"]: out["md5"] for stage in stages for out in stage.get("outs", [])}


def _stages(root: Path) -> dict[str, Any]:
    path = root / "dvc.yaml"
    if not path.is_file():
        raise InputError(f"{path} does not exist; start a stage from the root of the repository")
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {name: stage.get("do", stage) for name, stage in content["stages"].items()}  # `foreach` is as many alike


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
