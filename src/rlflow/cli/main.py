"""The entry point: commands, and how errors reach a person."""

from __future__ import annotations

import logging
import sys

import typer

from rlflow.cli import equivalence, optimise, replay, results, rules, zoo
from rlflow.errors import RLFlowError

app = typer.Typer(
    name="rlflow",
    help="A learned, verified superoptimiser for ONNX models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("optimise")(optimise.optimise)
app.command("equivalence")(equivalence.equivalence)
app.command("replay")(replay.replay)
app.command("check-results")(results.check_results)
app.add_typer(rules.app, name="rules", help="The library of substitution rules.")
app.add_typer(zoo.app, name="zoo", help="Models with seeded random weights, to try things on.")


def main() -> None:
    """Run a command; an expected error is one sentence on standard error and its exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    try:
        app()
    except RLFlowError as error:
        typer.echo(f"rlflow: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("rlflow: interrupted; nothing was written", err=True)
        sys.exit(130)
