"""`rlflow zoo list | build`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from rlflow import zoo
from rlflow.cli.json_output import print_json
from rlflow.errors import InputError
from rlflow.onnx_io import save_model
from rlflow.schemas.rules import ZooModel

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_models(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """The models that can be built, and their settings."""
    entries = [zoo.describe(name) for name in zoo.names()]
    if as_json:
        print_json("zoo list", [ZooModel(e.name, e.family, e.summary, dict[str, Any](e.settings)) for e in entries])
        return
    for entry in entries:
        settings = " ".join(f"{key}={value}" for key, value in entry.settings.items())
        typer.echo(f"{entry.name:16s} {entry.summary}\n{'':16s} {settings}")


@app.command()
def build(
    name: Annotated[str, typer.Argument(help="A model from `rlflow zoo list`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write it.")],
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value, such as layers=2 or attention_mask=false; repeatable."),
    ] = None,
) -> None:
    """Build a model with seeded random weights."""
    model = zoo.build(name, **dict(_parsed(s) for s in setting or ()))
    save_model(model, output)
    typer.echo(f"Wrote {output}: {name}, {len(model.graph.node)} nodes.")


def _parsed(text: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise InputError(f"{text!r} is no setting: write key=value, such as layers=2")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value  # a word such as gelu, without the quotation marks that JSON wants
