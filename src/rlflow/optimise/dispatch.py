"""One model for each size instead of one for all: their files, and the table that says which is for which shapes.

    reports = [optimise at one size, and write to sized(output, shapes, each), for shapes in each]
    write_table(output, reports)                "faster.onnx.dispatch.json", for `rlflow.dispatch_session`

Each model is optimised, checked and timed at its own size, as if there were no other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from rlflow import schemas
from rlflow.atomic_file import written_whole
from rlflow.errors import InputError
from rlflow.optimise.report import OptimisationReport
from rlflow.schemas.optimise import DispatchTable

Shapes = Mapping[str, tuple[int, ...]]


def sized(path: Path, shapes: Shapes, each: Sequence[Shapes]) -> Path:
    """Return the file for a size beside a path, as in faster.1x128.onnx: its stem with the shapes that are not the same
    at each size, in the order of inputs; once where all inputs agree.
    """
    vary = [name for name in shapes if len({other[name] for other in each}) > 1]
    texts = ["x".join(map(str, shapes[name])) for name in vary]
    if all(len({other[name] for name in vary}) == 1 for other in each):
        texts = texts[:1]
    return path.with_name(f"{path.stem}.{'_'.join(texts)}{path.suffix}")


def table_of(output: Path) -> Path:
    """The file of the table beside the models for an output."""
    return Path(f"{output}.dispatch.json")


def write_table(output: Path, reports: Sequence[OptimisationReport]) -> Path:
    """Write the table of models that were optimised at one size each and lie beside the output; return its file."""
    rows = []
    for report in reports:
        if report.output is None or not report.shapes:
            raise InputError("a dispatch table is of models that were optimised for shapes, and saved")
        changes = [change.to_json() for change in report.latency.values()]
        rows.append(
            {
                "shapes": {name: list(shape) for name, shape in report.shapes.items()},
                "file": Path(report.output).name,
                "written": report.written,
                "reason": report.reason,
                "latency": changes[0] if changes else None,
            }
        )
    table = {"rlflow_version": version("rlflow"), "models": rows}
    schemas.validate(DispatchTable, table)
    path = table_of(output)
    with written_whole(path) as draft:
        draft.write_text(json.dumps(table, indent=1) + "\n")
    return path
