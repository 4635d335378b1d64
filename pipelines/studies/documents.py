"""The types of all results files: of the experiment, of the studies, each beside its program, and of measurements."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import experiment.documents
from experiment.results import read_results, type_of

from rlflow.errors import RLFlowError
from rlflow.schemas import validate
from studies import measurements


@cache
def documents() -> Mapping[str, Any]:
    """The types by the pattern that the end of a file's path matches."""
    studies = [path.parent.name for path in sorted(Path(__file__).parent.glob("*/documents.py"))]
    modules = [import_module(f"studies.{study}.documents") for study in studies]
    found = experiment.documents.DOCUMENTS | measurements.DOCUMENTS
    return {pattern: kind for known in (found, *(m.DOCUMENTS for m in modules)) for pattern, kind in known.items()}


def document_type(path: Path) -> Any:
    """The type of a results file by its path; None if it has none."""
    return type_of(path, documents())


def check_results(folder: Path) -> list[str]:
    """Problems of the results files under `folder`, one sentence each with the file's path; none means all are sound.

    Every .json file below `folder` must have a type and follow it. A folder that is missing or holds no results file is
    a problem too.
    """
    paths = sorted(folder.rglob("*.json"))
    if not paths:
        return [f"{folder}: no results file"]
    return [f"{path}: {problem}" for path in paths for problem in _problems(path)]


def _problems(path: Path) -> Iterator[str]:
    kind = document_type(path)
    if kind is None:
        yield "no type of documents belongs to this file"
        return
    try:
        validate(kind, read_results(path))
    except RLFlowError as error:
        yield str(error)
