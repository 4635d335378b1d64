"""`rlflow optimise MODEL.onnx -o OUT.onnx`."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rlflow.cli.arguments import parse_budget, parse_shape
from rlflow.cli.interrupts import first_interrupt
from rlflow.cli.progress import progress_bar
from rlflow.cost.models import COST_MODELS
from rlflow.errors import InputError
from rlflow.onnx_io.saving import check_writable
from rlflow.optimise import DEFAULT_BUDGET_S, DEFAULT_COST_MODEL, DEFAULT_METHOD, DEFAULT_SETTING, PASS_BACKENDS
from rlflow.optimise import optimise as optimise_model
from rlflow.optimise.answers import Answers, Question
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.methods import METHODS
from rlflow.optimise.report import OptimisationReport
from rlflow.optimise.report_page import optimisation_content
from rlflow.plugins import unknown
from rlflow.rules.library import load as load_library
from rlflow.rules.user_rules import load_rules
from rlflow.runtime.hardware import fingerprint
from rlflow.runtime.runtimes import AUTO, ONNX_RUNTIME, PRECISIONS, runtime_names, setting_of, settings_of
from rlflow.runtime.timing.batches import PROTOCOL_VERSION
from rlflow.runtime.timing.sequential import SequentialTest
from rlflow.show.page import write as write_page

_TRAINED = "rlflow"


def optimise(
    model: Annotated[Path, typer.Argument(help="The ONNX model to optimise.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the result.")],
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS.names())}.")] = DEFAULT_METHOD,
    budget: Annotated[
        str,
        typer.Option(
            help="Wall time of everything, search, checks and timing, such as 15s or 5m; Ctrl-C ends it early."
        ),
    ] = f"{DEFAULT_BUDGET_S:.0f}s",
    setting: Annotated[
        str,
        typer.Option(help="How ONNX Runtime will run it: `deployed`, with its own optimisation, or `as_written`."),
    ] = DEFAULT_SETTING,
    runtime: Annotated[
        str,
        typer.Option(
            help="The runtime in which the model will run, and the result is checked and timed: onnxruntime, "
            "openvino, or one of another package; auto: ONNX Runtime, then all others beside it, of which the fastest "
            "counts."
        ),
    ] = ONNX_RUNTIME,
    precision: Annotated[
        str,
        typer.Option(
            help=f"The type in which that computes with floats: {', '.join(PRECISIONS)}, or auto, whatever is fastest "
            "within the tolerance."
        ),
    ] = "float32",
    tolerance: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="The relative error against float32 that you accept of a coarser precision; of float32 it says "
            "nothing.",
        ),
    ] = 1e-2,
    cost_model: Annotated[
        str, typer.Option(help=f"How the search prices a graph: one of {', '.join(COST_MODELS.names())}.")
    ] = DEFAULT_COST_MODEL,
    rules: Annotated[
        Path | None, typer.Option(help="Rules of your own, besides the shipped ones: a .py or a .jsonl.")
    ] = None,
    disable: Annotated[list[str] | None, typer.Option(help="A rule not to use, by id or name; repeatable.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Use no rule that assumes that values are finite or of ordinary size.")
    ] = False,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            help="Shape of an input with dynamic dimensions, as in x=1x128; repeatable. The dimensions stay dynamic "
            "unless a rewrite needs these sizes; then the result accepts no others, and the report says so."
        ),
    ] = None,
    read: Annotated[
        list[str] | None,
        typer.Option(
            help="What you read of an output, as in 'logits[:, -1]'; repeatable. The model then has these outputs "
            "alone, and computes nothing else."
        ),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Folder of a policy, for --method rlflow; else the one that ships.")
    ] = None,
    trained_on: Annotated[
        str | None,
        typer.Option(help="The graph on which a policy of `dvc repro` was trained, for --method rlflow."),
    ] = None,
    passes: Annotated[
        str | None,
        typer.Option(help=f"Run whole-graph passes of public libraries first: {' or '.join(PASS_BACKENDS)}."),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            min=1, help="Threads of the sessions in which models are checked and timed: as many as yours will have."
        ),
    ] = GateConfig.threads,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove", help="Deliver only what rounds alone prove to be faster, at 99 %; it takes longer to decide."
        ),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option("--report", help="Write a page about it as well, a .html that opens without a network."),
    ] = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Optimise even a model that was asked for in the same way before.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Write a faster model that computes the same, checked against the original and timed beside it.

    Written is what is faster with a probability of 0.9 by prediction and timing, and slower by 1 % with less than 0.02;
    otherwise the original, and the report says so. If a rewrite needs a
    newer opset, the model is upgraded to it where that is safe. A result that computes something else is not written;
    what shows the difference goes to the folder OUTPUT.reproducer.

    A model that was asked for in the same way before, on this machine and with at least this budget, is answered at
    once, if timing had decided it; a longer budget goes on from what was found, and so does a run that writes a page.
    The user's cache folder keeps answers, a gigabyte of them at most, and none of a model above 2 GB.

    Ctrl-C ends the search or the timing: the best result so far is checked and written, or the original if there is
    none, and the report says that it was interrupted. A second Ctrl-C ends at once and writes nothing.

    Exit code 0 if a model was written, 2 if the input cannot be used, 130 after a second Ctrl-C, 1 on any other
    failure.
    """
    started_s = time.perf_counter()
    options = _method_options(method, policy, trained_on)
    budget_s = parse_budget(budget)
    setting, *beside = _settings(setting, runtime, precision)
    shapes = dict(parse_shape(text) for text in shape or ())
    check_writable(output)
    if page is not None:
        _check_page(page)
    asked = {
        "method": method,
        "settings": [setting, *beside],
        "tolerance": None if precision == "float32" else tolerance,
        "cost_model": cost_model,
        "disable": disable or [],
        "strict": strict,
        "shape": shapes,
        "read": read or [],
        "trained_on": trained_on,
        "passes": passes,
        "prove": prove,
    }
    question = Question.of(model, asked, [path for path in (rules, policy) if path is not None], threads)
    answers = Answers(_cache_folder() / "answers")
    answer = None if anew else answers.known(question)
    if answer is not None and page is None and answer.covers(budget_s) and answers.write(question, answer, output):
        _say(replace(answer.report, input=str(model), output=str(output), kept_at=answer.kept_at), as_json)
        return
    with first_interrupt() as is_interrupted:
        with progress_bar(model.name) as on_progress:
            optimised = optimise_model(
                model,
                method=method,
                options=options,
                library=None if rules is None else load_library().extended(load_rules(rules)),
                disabled=disable or (),
                strict=strict,
                cost_model=cost_model,
                prices=_price_cache(),
                budget_s=budget_s,
                setting=setting,
                beside=beside,
                shapes=shapes,
                read=read or (),
                gate=GateConfig(
                    threads=threads,
                    proof=SequentialTest() if prove else None,
                    tolerance=None if precision == "float32" else tolerance,
                ),
                reproducer=Path(f"{output}.reproducer"),
                passes=passes,
                on_progress=on_progress,
                is_interrupted=is_interrupted,
                known=None if answer is None else answer.trajectory,
                since_s=started_s,
            )
        optimised.save(output)
    optimised = replace(optimised, report=replace(optimised.report, output=str(output)))
    _say(optimised.report, as_json)
    answers.keep(question, optimised)
    if page is not None:
        write_page(page, f"{model} → {output}", optimisation_content(optimised, ["rlflow", *sys.argv[1:]]))


def _say(report: OptimisationReport, as_json: bool) -> None:
    typer.echo(json.dumps(report.to_json(), indent=1) if as_json else report.summary())


def _settings(setting: str, runtime: str, precision: str) -> list[str]:
    """Return the setting to optimise for, then those to compare it with.

    `InputError` for a setting of ONNX Runtime in another runtime.
    """
    if precision not in (*PRECISIONS, AUTO):
        raise InputError(unknown("precision", precision, (*PRECISIONS, AUTO)))
    if runtime != AUTO and precision != AUTO:
        found = [setting_of(runtime, precision)]  # type: ignore[arg-type]
    else:
        found = settings_of(ONNX_RUNTIME if runtime == AUTO else runtime)
        others = runtime_names() if runtime == AUTO else []
        found += [other for name in others for other in settings_of(name) if other not in found]
    if setting == DEFAULT_SETTING:
        return found
    if found != [DEFAULT_SETTING]:
        raise InputError(f"--setting {setting} is for ONNX Runtime, and float32, alone: leave it out")
    return [setting]


def _check_page(path: Path) -> None:
    """`InputError` where no page can be written, before anything is done."""
    if path.suffix != ".html":
        raise InputError(f"--report {path} does not name a page: let it end in .html")
    check_writable(path)


def _method_options(method: str, policy: Path | None, trained_on: str | None) -> dict[str, Path | str]:
    """Return the options of the method. `InputError` for those of another one."""
    options = {key: value for key, value in (("folder", policy), ("trained_on", trained_on)) if value is not None}
    if options and method != _TRAINED:
        raise InputError(f"--policy and --trained-on are for --method {_TRAINED} alone, not for {method}")
    return options


def _price_cache() -> Path:
    """One price list for each machine and way of measuring."""
    return _cache_folder() / f"prices-{fingerprint(threads=1).key}-{PROTOCOL_VERSION}.json"


def _cache_folder() -> Path:
    """RLFlow's part of the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rlflow"
