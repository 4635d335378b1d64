"""`rlflow doctor MODEL.onnx`: what makes a model slow apart from its graph, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from rlflow.cli.arguments import parse_budget, parse_shape
from rlflow.cli.interrupts import first_interrupt
from rlflow.cli.json_output import print_json
from rlflow.cli.progress import progress_bar
from rlflow.doctor.examination import DEFAULT_BUDGET_S, Examined, examine
from rlflow.doctor.finders import FINDERS
from rlflow.doctor.finding import Finding
from rlflow.onnx_io.saving import check_writable

_TO_DO = 1


def doctor(
    model: Annotated[Path, typer.Argument(help="The ONNX model to examine.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the model without what can be mended in it.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help=f"Look for one thing: {', '.join(FINDERS.names())}; repeatable.")
    ] = None,
    budget: Annotated[
        str, typer.Option(help="Wall time of everything, such as 30s or 5m; Ctrl-C ends it early.")
    ] = f"{DEFAULT_BUDGET_S:.0f}s",
    shape: Annotated[
        list[str] | None, typer.Option(help="Shape of an input with dynamic dimensions, as in x=1x128; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say what makes a model slower or larger than it need be, each with its effect on this machine and advice.

    Nothing is changed unless --output names a file: then the model is written without subnormal weights that no output
    depends on, without weights that are stored twice or that nobody reads, and without notes on its nodes. It computes
    the same. Where there is nothing to mend, it is a copy to the byte.

    Exit code 0 if there is nothing to do, or all of it was done in the file that was written; 1 if something is left to
    do; 2 if the input cannot be used.
    """
    budget_s = parse_budget(budget)
    shapes = dict(parse_shape(text) for text in shape or ())
    if output is not None:
        check_writable(output)
    with first_interrupt() as is_interrupted:
        with progress_bar(model.name) as on_progress:
            examined = examine(
                model,
                budget_s=budget_s,
                shapes=shapes,
                finders=only,
                on_progress=on_progress,
                is_interrupted=is_interrupted,
            )
        if output is not None:
            examined.save(output)
    if as_json:
        print_json("doctor", _document(examined, output, budget_s))
    else:
        typer.echo("\n".join(_lines(examined, output)))
    if any(finding.advice and not _is_mended(finding, output) for _, finding in examined.findings):
        raise typer.Exit(_TO_DO)


def _is_mended(finding: Finding, output: Path | None) -> bool:
    return finding.remedy is not None and output is not None


def _document(examined: Examined, output: Path | None, budget_s: float) -> dict[str, Any]:
    findings = [
        {
            "finder": name,
            "found": finding.found,
            "advice": finding.advice,
            "latency": None if finding.effect is None else finding.effect.to_json(),
            "bytes_saved": finding.bytes_saved,
            "is_mended": _is_mended(finding, output),
        }
        for name, finding in examined.findings
    ]
    return {
        "rlflow_version": version("rlflow"),
        "input": examined.source.name,
        "output": None if output is None else str(output),
        "findings": findings,
        "not_looked_for": dict(examined.not_looked_for),
        "budget_s": budget_s,
        "hardware": examined.hardware,
        "threads": examined.config.threads,
        "seed": examined.config.seed,
    }


def _lines(examined: Examined, output: Path | None) -> Iterator[str]:
    """Say in a paragraph each what was found; first how much of it asks for something."""
    asking = len(examined.to_do)
    what = {0: "nothing to do", 1: "one thing to do"}.get(asking, f"{asking} things to do")
    yield f"{examined.source.name} on {examined.hardware.partition(' / ')[0]}: {what}."
    for name, finding in examined.findings:
        effect = "" if finding.effect is None else f" Measured here: {finding.effect.summary}."
        advice = finding.advice and f" {finding.advice}"
        yield f"{name.capitalize()}: {finding.found}.{effect}{advice}"
    for name, reason in examined.not_looked_for.items():
        yield f"Not looked for: {name} ({reason})."
    if output is not None:
        mended = [name for name, finding in examined.findings if _is_mended(finding, output)]
        what = f"the model without {' and '.join(mended)}" if mended else "the model as it is"
        yield f"Wrote {output}: {what}."
