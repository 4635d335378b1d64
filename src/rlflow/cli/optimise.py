"""`rlflow optimise MODEL.onnx -o OUT.onnx`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import typer

from rlflow import schemas
from rlflow.cli import optimise_options as option
from rlflow.cli.arguments import parse_budget, parse_shapes
from rlflow.cli.cache import kept_answers, price_cache
from rlflow.cli.interrupts import first_interrupt
from rlflow.cli.progress import progress_bar
from rlflow.errors import InputError
from rlflow.onnx_io import load_model
from rlflow.onnx_io.saving import check_writable
from rlflow.optimise import DEFAULT_BUDGET_S, DEFAULT_COST_MODEL, DEFAULT_METHOD, DEFAULT_SETTING
from rlflow.optimise import optimise as optimise_model
from rlflow.optimise.answers import Question
from rlflow.optimise.asked import Asked
from rlflow.optimise.dispatch import sized, write_table
from rlflow.optimise.report import OptimisationReport
from rlflow.runtime.runtimes import ONNX_RUNTIME
from rlflow.runtime.sizes import each_size
from rlflow.schemas.optimise import DispatchReport

NOT_ASKED = frozenset({"output", "budget", "page", "anew", "as_json", "dispatch"})
"""The options that do not change an answer: where it goes, how it is told, how long it may be looked for, and whether
sizes are asked for one after another.
"""


def optimise(
    model: option.Model,
    output: option.Output,
    method: option.Method = DEFAULT_METHOD,
    budget: option.Budget = f"{DEFAULT_BUDGET_S:.0f}s",
    setting: option.Setting = DEFAULT_SETTING,
    runtime: option.Runtime = ONNX_RUNTIME,
    precision: option.Precision = "float32",
    tolerance: option.Tolerance = 1e-2,
    cost_model: option.CostModel = DEFAULT_COST_MODEL,
    rules: option.Rules = None,
    disable: option.Disable = None,
    strict: option.Strict = False,
    shape: option.Shape = None,
    dispatch: option.Dispatch = False,
    read: option.Read = None,
    policy: option.Policy = None,
    trained_on: option.TrainedOn = None,
    passes: option.Passes = None,
    threads: option.Threads = None,
    prove: option.Prove = False,
    default_options: option.DefaultOptions = False,
    page: option.Page = None,
    anew: option.Anew = False,
    as_json: option.AsJson = False,
) -> None:
    """Write a faster model that computes the same, checked against the original and timed beside it.

    Written is what is faster with a probability of 0.9 by prediction and timing, and slower by 1 % with less than 0.02;
    otherwise the original, and the report says so. If a rewrite needs a
    newer opset, the model is upgraded to it where that is safe. A result that computes something else is not written;
    what shows the difference goes to the folder OUTPUT.reproducer.

    Where ONNX Runtime runs it faster with other session options, by the same decision, the model carries these in its
    metadata, OUTPUT.options.json says them, and the report tells how to use them; without any, that file is removed.

    A model that was asked for in the same way before, on this machine and with at least this budget, is answered at
    once, if timing had decided it; a longer budget goes on from what was found, and so does a run that writes a page.
    The user's cache folder keeps answers, a gigabyte of them at most, and none of a model above 2 GB.

    Shapes at several sizes, as in --shape x=1x128+8x384, ask for one model for all of them: it is faster at one and
    slower at none, or the original is written. With --dispatch there is one for each.

    Ctrl-C ends the search or the timing: the best result so far is checked and written, or the original if there is
    none, and the report says that it was interrupted. A second Ctrl-C ends at once and writes nothing.

    Exit code 0 if a model was written, 2 if the input cannot be used, 130 after a second Ctrl-C, 1 on any other
    failure.
    """
    started_s = time.perf_counter()
    budget_s = parse_budget(budget)
    asked = Asked(
        method=method,
        setting=setting,
        runtime=runtime,
        precision=precision,
        tolerance=tolerance,
        cost_model=cost_model,
        rules=rules,
        disable=disable or (),
        strict=strict,
        shape=dict(map(parse_shapes, shape or ())),
        read=read or (),
        policy=policy,
        trained_on=trained_on,
        passes=passes,
        threads=threads,
        prove=prove,
        default_options=default_options,
    )
    check_writable(output)
    if page is not None:
        _check_page(page)
    given = [_Asked(asked, output, page)]
    if dispatch:
        given = _at_each_size(model, given[0])
    with first_interrupt() as is_interrupted:
        reports, since_s = list[OptimisationReport](), started_s
        for each in given:
            reports.append(_answer(model, each, budget_s / len(given), since_s, anew, is_interrupted))
            since_s = time.perf_counter()
    if dispatch:
        table = write_table(output, reports)
        document = {"table": str(table), "reports": [report.to_json() for report in reports]}
        schemas.validate(DispatchReport, document)
        told = [*(report.summary() for report in reports), f"Wrote {table}: rlflow.dispatch_session opens it."]
        typer.echo(json.dumps(document, indent=1) if as_json else "\n\n".join(told))
    else:
        typer.echo(json.dumps(reports[0].to_json(), indent=1) if as_json else reports[0].summary())


class _Asked(NamedTuple):
    """A question, and the files for its answer and for the page about it."""

    asked: Asked
    output: Path
    page: Path | None


def _at_each_size(model: Path, given: _Asked) -> list[_Asked]:
    """Ask the same at each of several sizes by itself. `InputError` for shapes that are none of this model."""
    sizes = [size.shapes for size in each_size(load_model(model), given.asked.shape)]
    if len(sizes) == 1:
        raise InputError("--dispatch writes a model for each of several sizes: name them, as in --shape x=1x128+8x384")
    return [
        _Asked(
            replace(given.asked, shape=each),
            sized(given.output, each, sizes),
            None if given.page is None else sized(given.page, each, sizes),
        )
        for each in sizes
    ]


def _answer(
    model: Path, given: _Asked, budget_s: float, since_s: float, anew: bool, is_interrupted: Callable[[], bool]
) -> OptimisationReport:
    """Write the answer that is kept, or a new one."""
    asked, output, page = given
    question, answers = Question.of(model, asked), kept_answers()
    answer = None if anew else answers.known(question)
    if answer is not None and page is None and answer.covers(budget_s) and answers.write(question, answer, output):
        return replace(answer.report, input=str(model), output=str(output), kept_at=answer.kept_at)
    with progress_bar(model.name) as on_progress:
        optimised = optimise_model(
            question.source,
            **asked.arguments(),
            prices=price_cache(),
            budget_s=budget_s,
            reproducer=Path(f"{output}.reproducer"),
            on_progress=on_progress,
            is_interrupted=is_interrupted,
            known=None if answer is None else answer.trajectory,
            since_s=since_s,
        )
    optimised.save(output)
    optimised = replace(optimised, report=replace(optimised.report, output=str(output)))
    answers.keep(question, optimised)
    if page is not None:
        from rlflow.optimise.report_page import optimisation_content  # with networkx, for who wants a page
        from rlflow.show.page import write as write_page

        write_page(page, f"{model} → {output}", optimisation_content(optimised, ["rlflow", *sys.argv[1:]]))
    return optimised.report


def _check_page(path: Path) -> None:
    """`InputError` where no page can be written, before anything is done."""
    if path.suffix != ".html":
        raise InputError(f"--report {path} does not name a page: let it end in .html")
    check_writable(path)
