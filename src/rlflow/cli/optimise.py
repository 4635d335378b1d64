"""`rlflow optimise MODEL.onnx -o OUT.onnx`."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from onnx import ModelProto, TensorProto

from rlflow.atomic_file import written_whole
from rlflow.cli.progress import progress_bar
from rlflow.errors import InputError
from rlflow.onnx_io import load_model, save_model
from rlflow.onnx_io.exporter import check_place
from rlflow.optimise import optimise as optimise_model
from rlflow.optimise.api import METHODS, OptimiseConfig
from rlflow.runtime.hardware import fingerprint

_UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")


def optimise(
    model: Annotated[Path, typer.Argument(help="An ONNX model.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")],
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "backtracking",
    budget: Annotated[str, typer.Option(help="Time for the search: 500ms, 60s, 5m.")] = "60s",
    setting: Annotated[str, typer.Option(help="Optimise for `deployed` or `as_written` ONNX Runtime.")] = "deployed",
    disable: Annotated[list[str] | None, typer.Option(help="A rule not to use, by id or name; repeatable.")] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            help="Shape of an input whose sizes are open, as in x=1x128; repeatable. Sizes stay open unless a rewrite "
            "needs them: then the model takes these alone, and the report says so."
        ),
    ] = None,
    policy: Annotated[Path, typer.Option(help="Folder of the trained policy, for --method rlflow.")] = Path("data"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Write a faster model that computes the same, checked and timed against the original.

    If the result is not faster beyond noise, the original is written and the report says so. Where a rewrite needs a
    newer opset, the model is raised to it if that is safe. A result that computes something else is not written: what
    shows it goes to the folder OUTPUT.reproducer. Exit code 0 when a checked model was written, 2 on input that cannot
    be used, 1 on failure.
    """
    config = OptimiseConfig(
        method=method,
        budget_s=parse_budget(budget),
        setting=setting,  # type: ignore[arg-type]
        disabled=tuple(disable or ()),
        shapes=dict(parse_shape(text) for text in shape or ()),
        policy=policy,
        prices=_price_cache(),
    )
    _check_output(output)
    load_model(model)
    with progress_bar(model.name) as on_progress:
        optimised = optimise_model(model, config, output=str(output), on_progress=on_progress)
    if optimised.written == "optimised":
        save_model(optimised.model, output)
    else:
        _copy(model, optimised.model, output)
    report = optimised.report
    typer.echo(json.dumps(report.to_json(), indent=1) if as_json else report.summary())


def parse_budget(text: str) -> float:
    """Seconds; `InputError` for anything that is not a positive time."""
    found = _BUDGET.fullmatch(text.strip())
    seconds = float(found[1]) * _UNITS_S[found[2] or "s"] if found else 0.0
    if seconds <= 0:
        raise InputError(f"{text!r} is no budget: give a positive time such as 500ms, 60s or 5m")
    return seconds


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Name of an input and its shape; `InputError` for anything that is not like x=1x128."""
    name, _, sizes = text.rpartition("=")
    if not name or not re.fullmatch(r"\d+(x\d+)*", sizes):
        raise InputError(f"{text!r} is no shape: write the input's name and its sizes, as in x=1x128")
    return name, tuple(int(size) for size in sizes.split("x"))


def _check_output(output: Path) -> None:
    """Before hours are spent: can the file be written at all?"""
    check_place(output)
    try:
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise InputError(
            f"{output.parent} cannot be written ({error.strerror}): choose another place for {output.name}"
        ) from None


def _price_cache() -> Path:
    """One price list a machine, in the user's cache folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "rlflow" / f"prices-{fingerprint(OptimiseConfig().pricing.threads).key}.json"


def _copy(source: Path, original: ModelProto, output: Path) -> None:
    """The original, byte for byte; with its external data inside if it has any."""
    if any(t.data_location == TensorProto.EXTERNAL for t in load_model(source).graph.initializer):
        save_model(original, output)
        return
    if output.exists() and output.samefile(source):
        return
    with written_whole(output) as draft:
        shutil.copyfile(source, draft)
