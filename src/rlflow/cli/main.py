"""The entry point: which commands there are, and how errors reach a person.

A command's module is imported when the command runs, and not before: `rlflow --help` shows the sentences written here,
and loads neither numpy nor ONNX Runtime.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from rlflow.errors import InputError, RLFlowError

_INTERRUPTED = 130


@dataclass(frozen=True)
class _Entry:
    """One line of `rlflow --help`: the module that holds the command, its function or `Typer`, and its sentence."""

    module: str
    attribute: str
    summary: str


COMMANDS = {
    "optimise": _Entry(
        "rlflow.cli.optimise", "optimise", "Write a faster model that computes the same, checked and timed."
    ),
    "optimise-all": _Entry(
        "rlflow.cli.optimise_all", "optimise_all", "Replace models by faster ones, as a formatter does with files."
    ),
    "doctor": _Entry("rlflow.cli.doctor", "doctor", "Say what makes a model slow apart from its graph, and mend it."),
    "train": _Entry("rlflow.cli.train", "train", "Fine-tune the policy of --method rlflow on models of your own."),
    "equivalence": _Entry("rlflow.cli.equivalence", "equivalence", "Compare what two models compute on drawn inputs."),
    "show": _Entry("rlflow.cli.show", "show", "Describe a model, or draw it, alone or beside its optimised form."),
    "replay": _Entry("rlflow.cli.replay", "replay", "Apply a recorded trajectory to its model, step by step."),
    "rules": _Entry("rlflow.cli.rules", "app", "List, show, verify and generate the substitution rules."),
    "passes": _Entry(
        "rlflow.cli.passes", "app", "Run compiler passes in an order of choice, or search for the best one."
    ),
    "leaderboard": _Entry(
        "rlflow.cli.leaderboard", "app", "Compare methods by what they have found, verified by replaying it."
    ),
    "zoo": _Entry("rlflow.cli.zoo", "app", "Build models with seeded random weights, to try things on."),
}


class _CommandsOnDemand(TyperGroup):
    """The commands by name and sentence; the one that runs is imported when it is resolved."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        return entry and TyperCommand(cmd_name, help=entry.summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and _load(args[0]), rest


def _load(name: str) -> Any:
    """Return the command `name` of `COMMANDS`, ready to run; its module is imported now."""
    entry = COMMANDS[name]
    found = getattr(import_module(entry.module), entry.attribute)
    holder = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name, help=entry.summary)
    else:
        holder.command(name)(found)
    return typer.main.get_group(holder).commands[name]


app = typer.Typer(
    name="rlflow",
    cls=_CommandsOnDemand,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _say_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"rlflow {version('rlflow')}, onnx {version('onnx')}, onnxruntime {version('onnxruntime')}")
        raise typer.Exit


@app.callback()
def rlflow(
    _: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the versions and exit.")
    ] = False,
) -> None:
    """A learned, verified superoptimiser for ONNX models."""


def main() -> None:
    """Run a command; an expected error is one sentence on standard error and its exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    try:
        app()
    except RLFlowError as error:
        typer.echo(f"rlflow: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is None:
            raise
        typer.echo(f"rlflow: {error.filename2 or error.filename}: {error.strerror}: name another file", err=True)
        sys.exit(InputError.exit_code)
    except SystemExit as stop:  # Typer turns an interrupt into this
        if stop.code == _INTERRUPTED:
            typer.echo("rlflow: interrupted; no file was left half written", err=True)
        raise
