"""Reading, writing and checking results files: what is published is what a schema admits."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from rlflow import schemas
from rlflow.atomic_file import written_whole
from rlflow.errors import InputError, RLFlowError

STAGES = tuple(name for name in schemas.names() if schemas.schema(name)["title"] == f"data/results/{name}/metrics.json")
"""Stages and studies: those that have a schema for their metrics."""
_SCHEMA_BY_FILE = {
    name: name for name in ("bench", "conformance", "curves", "exports", "fuzz", "mutants", "rules_applied")
}
_SCHEMA_BY_FILE |= {
    "big_model": "bench",
    "pass_walks": "bench",
    "latency": "headroom_latency",
    "summary": "learned_summary",
}
_SCHEMA_BY_FILE |= {"unseen": "learned_unseen", "delivered": "learned_delivered", "curves_by_prices": "curves"}
_PAPER = "paper"
_PASS_ORDERING = "pass_ordering"
# Published numbers are rounded; percentages agree with the costs beside them to this many points.
_PERCENT_POINTS = 0.05


@dataclass(frozen=True)
class Figure:
    """A published figure beside its trivial baseline and the number of non-vacuous cases behind it."""

    value: float
    baseline: float
    baseline_name: str
    cases: int

    def to_json(self) -> dict[str, Any]:
        """The form that the schemas call `figure`."""
        return asdict(self)


def write_results(path: Path, document: Any) -> None:
    """Write `document` as JSON to `path` after checking it; a refused document leaves the file as it was.

    The schema follows from the path (`schema_of`). Raises RLFlowError when the document is at fault,
    InputError when no schema belongs to the path.
    """
    name = schema_of(path)
    if name is None:
        raise InputError(f"no schema belongs to a results file at {path}; see rlflow.schemas.results.schema_of")
    schemas.validate(name, document)
    if problems := list(_inconsistencies(name, document)):
        raise RLFlowError(f"refused to write {path}: " + "; ".join(problems))
    with written_whole(path) as draft:
        draft.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def read_results(path: Path) -> Any:
    """The JSON document at `path`. Raises InputError when it is missing or not strict JSON (NaN is not)."""
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path} as JSON: {error}") from error


def parsed(text: str) -> Any:
    """The JSON document that `text` is. Raises ValueError if it is not strict JSON."""
    return json.loads(text, parse_constant=_refuse_constant)


def schema_of(path: Path) -> str | None:
    """Name of the schema for a results file: of the papers' parts and of compilers by their folder, of metrics.json by
    stage, else by its own name; None if there is none.
    """
    if path.parent.name == _PAPER:
        return _PAPER
    if path.name == "metrics.json":
        return path.parent.name if path.parent.name in STAGES else None
    if path.parent.name == _PASS_ORDERING and path.suffix == ".json":
        return f"{_PASS_ORDERING}_graphs"
    name = path.stem if path.suffix == ".json" else ""
    return _SCHEMA_BY_FILE.get(name)


def check_results(folder: Path) -> list[str]:
    """Problems of the results files under `folder`, one sentence each with the file's path; none means all
    are sound.

    Every .json file below `folder` must have a schema and follow it, and figures that depend on each other
    must agree. A folder that is missing or holds no results file is a problem too.
    """
    paths = sorted(folder.rglob("*.json"))
    if not paths:
        return [f"{folder}: no results file"]
    return [f"{path}: {problem}" for path in paths for problem in _problems(path)]


def _problems(path: Path) -> Iterator[str]:
    name = schema_of(path)
    if name is None:
        yield "no schema belongs to this file"
        return
    try:
        document = read_results(path)
        schemas.validate(name, document)
    except RLFlowError as error:
        yield str(error)
        return
    yield from _inconsistencies(name, document)


def _inconsistencies(name: str, document: Any) -> Iterator[str]:
    """Check the properties of a document that no schema can express."""
    yield from _unordered_intervals(document, "")
    if name == "evaluate":
        for graph, methods in document.items():
            for method, result in methods.items():
                yield from _improvement_problem(f"/{graph}/{method}", result)
    if name == "headroom":
        for graph, costs in document.items():
            for cost, methods in costs.items():
                for method, result in methods.items():
                    yield from _improvement_problem(f"/{graph}/{cost}/{method}", result)
                if not any(result["best_known"] for result in methods.values()):
                    yield f"at /{graph}/{cost}: no method is marked as the best known"
    if name == "curves":
        for graph, curves in document.items():
            for curve, points in curves.items():
                if len(points["step"]) != len(points["value"]):
                    yield f"at /{graph}/{curve}: {len(points['step'])} steps but {len(points['value'])} values"


def _unordered_intervals(document: Any, path: str) -> Iterator[str]:
    for key, value in _children(document):
        if isinstance(key, str) and key.endswith(("_ci95", "_interval")) and value and value[0] > value[1]:
            yield f"at {path}/{key}: the low end {value[0]} lies above the high end {value[1]}"
        yield from _unordered_intervals(value, f"{path}/{key}")


def _children(document: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(document, dict):
        return document.items()
    return enumerate(document) if isinstance(document, list) else ()


def _improvement_problem(path: str, result: dict[str, Any]) -> Iterator[str]:
    before, after, stated = (result[key] for key in ("cost_before_ms", "cost_after_ms", "improvement_percent"))
    expected = 100 * (before - after) / before if before else 0.0
    if abs(expected - stated) > _PERCENT_POINTS:
        yield f"at {path}/improvement_percent: {stated:.2f}, but the costs give {expected:.2f}"


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
