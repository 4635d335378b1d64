"""`rlflow equivalence A.onnx B.onnx`: compare what two models compute."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rlflow.cli.arguments import parse_shape
from rlflow.cli.json_output import print_json
from rlflow.equivalence import equivalence as equivalence_of
from rlflow.equivalence.report import EquivalenceReport
from rlflow.errors import InputError
from rlflow.git_lfs import require_content
from rlflow.onnx_io.model_file import brief
from rlflow.optimise.source import Source
from rlflow.runtime.session import SETTINGS

_DIFFERENT = 1


def equivalence(
    original: Annotated[Path, typer.Argument(help="The ONNX model that sets the interface and the tolerance.")],
    candidate: Annotated[Path, typer.Argument(help="The ONNX model to compare with it.")],
    setting: Annotated[
        str | None,
        typer.Option(
            help=f"Compare in one setting of ONNX Runtime alone: {' or '.join(SETTINGS)}. Without it, in both."
        ),
    ] = None,
    draws: Annotated[int, typer.Option(help="Number of inputs to draw.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the drawn inputs.")] = 0,
    shape: Annotated[
        list[str] | None, typer.Option(help="Shape of an input with dynamic dimensions, as in x=1x128; repeatable.")
    ] = None,
    read: Annotated[
        list[str] | None,
        typer.Option(help="What the other model has of an output of the original, as in 'logits[:, -1]'; repeatable."),
    ] = None,
    inputs: Annotated[
        Path | None, typer.Option(help="An .npz file with an array for each input, to use instead of drawn ones.")
    ] = None,
    mutants: Annotated[
        int, typer.Option(min=0, help="Mutants of the original, at most, that the inputs are to tell from it.")
    ] = 64,
    finite: Annotated[bool, typer.Option("--finite", help="Take it that no input holds NaN or infinities.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Compare what two models compute on drawn inputs, within a tolerance derived from the original's type and depth.

    Both run as written and as deployed, where ONNX Runtime fuses nodes; what the original computes as written counts.

    Exit code 0 if they are equivalent, 1 if they differ or no input could tell, 2 if the input cannot be used.
    """
    shapes = dict(parse_shape(text) for text in shape or ())
    given = None if inputs is None else [_read(inputs)]
    chosen: Any = setting
    report = equivalence_of(
        Source.of(original).reading(read).model if read else original,
        candidate,
        draws=draws,
        seed=seed,
        setting=chosen,
        shapes=shapes,
        inputs=given,
        mutants=mutants,
        finite=finite,
    )
    if as_json:
        document = {"original": str(original), "candidate": str(candidate), "seed": seed, **_document(report)}
        print_json("equivalence", document)
    else:
        typer.echo(report.summary)
    if not (report.equivalent and report.could_tell):
        raise typer.Exit(_DIFFERENT)


def _document(report: EquivalenceReport) -> dict[str, Any]:
    """Return the figures of a report that the type of the document has; infinite errors are null."""
    kept = (
        "equivalent reason tolerance draws non_vacuous_draws exceptional_draws worst_output worst_draw worst_setting"
    ).split()
    document = {name: getattr(report, name) for name in kept} | report.errors_json()
    document["vacuous_outputs"] = list(report.vacuous_outputs)
    if report.survey is not None:
        document["mutants"] = {**vars(report.survey), "survivors": list(report.survey.survivors)}
    if report.float64 is not None:
        errors = {name: _finite(value) for name, value in vars(report.float64).items()}
        document["float64"] = errors | {"further": report.float64.further}
    return document


def _finite(value: Any) -> Any:
    return None if value in (math.inf, -math.inf) else value


def _read(path: Path) -> dict[str, np.ndarray]:
    require_content(path)
    try:
        with path.open("rb") as file, np.load(file) as arrays:
            return dict(arrays)
    except Exception as error:  # numpy lets through whatever zip, its tokeniser and its parser raise
        raise InputError(f"cannot read {path} as an .npz file: {brief(error)}") from None
