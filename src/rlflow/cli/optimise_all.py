"""`rlflow optimise-all MODEL.onnx...`: models optimised where they lie, as formatters treat files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rlflow.atomic_file import written_whole
from rlflow.cli import optimise_options as option
from rlflow.cli.arguments import parse_budget, parse_shapes
from rlflow.cli.cache import kept_answers, price_cache
from rlflow.cli.progress import progress_bar
from rlflow.errors import InputError, RLFlowError
from rlflow.onnx_io.saving import check_writable
from rlflow.optimise import DEFAULT_BUDGET_S, DEFAULT_METHOD
from rlflow.optimise.asked import Asked
from rlflow.optimise.in_place import improvement
from rlflow.optimise.report import OptimisationReport
from rlflow.runtime.hardware import fingerprint
from rlflow.runtime.runtimes import ONNX_RUNTIME

_REPLACED = 1


@dataclass(frozen=True)
class _Row:
    """The verdict on a model in words, and the report on the one that replaces it, if any."""

    model: str
    verdict: str
    replacement: OptimisationReport | None = None
    is_failure: bool = False


def optimise_all(
    models: Annotated[list[Path], typer.Argument(help="The ONNX models to optimise, each where it lies.")],
    check: Annotated[
        bool, typer.Option("--check", help="Write no model; say which would be replaced, and exit in the same way.")
    ] = False,
    method: option.Method = DEFAULT_METHOD,
    budget: Annotated[
        str, typer.Option(help="Wall time for each model, search, checks and timing, such as 15s or 5m.")
    ] = f"{DEFAULT_BUDGET_S:.0f}s",
    runtime: option.Runtime = ONNX_RUNTIME,
    rules: option.Rules = None,
    disable: option.Disable = None,
    strict: option.Strict = False,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            help="Shape of an input with dynamic dimensions, as in x=1x128 or, at several sizes, x=1x128+8x384, which "
            "all models have; repeatable. A model whose faster form would accept no other sizes is left as it is."
        ),
    ] = None,
    threads: option.Threads = None,
    prove: option.Prove = False,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a table of all models as well, in Markdown, as a comment shows it.")
    ] = None,
) -> None:
    """Replace each model by a faster one that computes the same, checked against the original and timed beside it.

    A file is replaced whole where the faster model would be delivered by `rlflow optimise`, and left to the byte
    otherwise. What is written bears a mark in its metadata: until somebody changes it, it is left as it is, so that a
    second run changes nothing. Answers are kept as by `rlflow optimise`. Session options, which would be those of this
    machine, are not looked for, and models whose weights lie in other files are left as they are.

    Exit code 0 if all models stay as they are, 1 if one was replaced or, with --check, would be, 2 if one cannot be
    used or written, of which the others take no harm, and 130 after Ctrl-C, which leaves the model as it is.
    """
    budget_s = parse_budget(budget)
    asked = Asked(
        method=method,
        runtime=runtime,
        rules=rules,
        disable=disable or (),
        strict=strict,
        shape=dict(map(parse_shapes, shape or ())),
        threads=threads,
        prove=prove,
        default_options=True,  # this machine's would not be those of all who use the file
    )
    if markdown is not None:
        check_writable(markdown)
    rows = []
    for model in models:
        rows.append(_optimised(model, asked, budget_s, writes=not check))
        typer.echo(f"{model}: {_line(rows[-1])}", err=rows[-1].is_failure)
    typer.echo(_title(rows, check))
    if markdown is not None:
        with written_whole(markdown) as draft:
            draft.write_text("\n".join(_table(rows, check, asked.gate.threads)) + "\n")
    if any(row.is_failure for row in rows):
        raise typer.Exit(InputError.exit_code)
    if any(row.replacement for row in rows):
        raise typer.Exit(_REPLACED)


def _optimised(model: Path, asked: Asked, budget_s: float, *, writes: bool) -> _Row:
    try:
        with progress_bar(model.name) as on_progress:
            found = improvement(
                model,
                asked,
                budget_s=budget_s,
                answers=kept_answers(),
                prices=price_cache(),
                on_progress=on_progress,
            )
        if writes:
            found.save()
    except RLFlowError as error:
        return _Row(str(model), f"cannot be used: {error}", is_failure=True)
    if found.left_because:
        return _Row(str(model), f"as it was: {found.left_because}")
    return _Row(str(model), "optimised" if writes else "can be optimised", found.report)


def _line(row: _Row) -> str:
    changes = row.replacement.latency.values() if row.replacement else ()
    return "; ".join([row.verdict, *(change.summary for change in changes)])


def _title(rows: Sequence[_Row], check: bool) -> str:
    replaced = sum(row.replacement is not None for row in rows)
    return f"{replaced} of {len(rows)} models {'can be ' if check else ''}optimised"


def _table(rows: Sequence[_Row], check: bool, threads: int) -> Iterator[str]:
    """Yield lines of Markdown: a title, a row for each model, and where it was timed."""
    yield f"### RLFlow: {_title(rows, check)}"
    yield ""
    yield "| model | result | before, ms | after, ms | times as fast | nodes |"
    yield "|---|---|---:|---:|---:|---:|"
    for row in rows:
        yield f"| {' | '.join(map(_cell, (f'`{row.model}`', row.verdict, *_figures(row.replacement))))} |"
    session = f"{threads} thread{'' if threads == 1 else 's'} of {fingerprint(threads).cpu_model.partition(' / ')[0]}"
    yield ""
    yield f"Compared on drawn inputs and timed beside the original, with {session}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _figures(report: OptimisationReport | None) -> tuple[str, str, str, str]:
    """Both latencies, their ratio and the numbers of nodes."""
    if report is None:
        return "", "", "", ""
    nodes = f"{report.nodes_before} → {report.nodes_after}"
    change = next(iter(report.latency.values()), None)
    if change is None:
        return "", "", "", nodes
    return f"{change.before_ms:.3f}", f"{change.after_ms:.3f}", f"{change.verdict.ratio:.3f}", nodes
