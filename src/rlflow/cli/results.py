"""`rlflow check-results`: every published figure against its schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlflow.errors import RLFlowError
from rlflow.schemas.results import check_results as problems_in


def check_results(
    folder: Annotated[Path, typer.Argument(help="Where the results lie.")] = Path("data/results"),
) -> None:
    """Validate all results files; exit code 1 naming what is wrong."""
    problems = problems_in(folder)
    for problem in problems:
        typer.echo(problem, err=True)
    if problems:
        raise RLFlowError(f"{len(problems)} problems in {folder}")
    typer.echo(f"{folder}: every results file agrees with its schema.")
