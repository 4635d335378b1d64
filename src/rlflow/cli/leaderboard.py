"""`rlflow leaderboard show | submit | check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from rlflow.cli.json_output import print_json
from rlflow.cli.progress import progress_bar
from rlflow.errors import InputError, RLFlowError
from rlflow.leaderboard import Entry, disagreement, is_level, standings
from rlflow.leaderboard import submit as submit_entry
from rlflow.runtime.hardware import processor_name
from rlflow.schemas.leaderboard import Standing
from rlflow.trajectory import record

app = typer.Typer(no_args_is_help=True)
Board = Annotated[Path, typer.Option("--board", help="Folder of the leaderboard; that of the project is this.")]
_PUBLIC = Path("data/leaderboard")


@app.command()
def show(
    board: Board = _PUBLIC,
    model: Annotated[str | None, typer.Option(help="Rows of this model alone.")] = None,
    cost_model: Annotated[str | None, typer.Option(help="Rows at the prices of this cost model alone.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The methods of each row by what they save, model by model and cost model by cost model."""
    rows = {
        (of_model, cost): entries
        for (of_model, cost), entries in standings(board).items()
        if model in (None, of_model) and cost_model in (None, cost)
    }
    if not rows:
        raise InputError(f"{board} has no such row; `rlflow leaderboard submit` writes entries")
    ranked = [standing for entries in rows.values() for standing in _ranked(entries)]
    if as_json:
        print_json("leaderboard show", ranked)
        return
    typer.echo("\n\n".join("\n".join(_listed(entries)) for entries in rows.values()))


@app.command()
def submit(
    trajectory: Annotated[Path, typer.Argument(help="A file of trajectories, one on each line.")],
    model: Annotated[str, typer.Option(help="The model that it starts from: a name of the zoo or of conf/graph.")],
    method: Annotated[str, typer.Option(help="The name of the method that has found it.")],
    cost_model: Annotated[str, typer.Option(help="The prices by which it counts.")] = "predicted",
    number: Annotated[int, typer.Option(min=1, help="The line to submit, counted from 1.")] = 1,
    seed: Annotated[int, typer.Option(help="The method's seed.")] = 0,
    rewrites: Annotated[
        int | None, typer.Option(min=0, help="Rewrites that the method carried out to find it.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0.0, help="Seconds that it took on this machine.")] = None,
    board: Board = _PUBLIC,
) -> None:
    """Verify what a method has found, by replaying it, and enter it.

    The trajectory is replayed by the shipped rules, its last graph is priced and compared with the original on drawn
    inputs. Exit code 0 if it was entered, 2 if the input cannot be used, 1 if it does not hold.
    """
    recorded = record.load(trajectory)
    if number > len(recorded):
        raise InputError(f"{trajectory} has {len(recorded)} trajectories: there is no number {number}")
    processor = "" if seconds is None else processor_name()
    entry = Entry(model, cost_model, method, recorded[number - 1], seed, rewrites, seconds, processor)
    found = submit_entry(entry, board)
    rank = next(one.rank for one in _ranked(standings(board)[entry.row]) if (one.method, one.seed) == (method, seed))
    typer.echo(
        f"{entry.place(board)}: {method} saves {found.saved_percent:.3f} % of {model} at {cost_model} prices in "
        f"{found.steps} steps, which is number {rank}."
    )


@app.command()
def check(board: Board = _PUBLIC) -> None:
    """Verify all entries again. Exit code 1, naming what does not hold any more, if any does not."""
    entries = [entry for row in standings(board).values() for entry in row]
    problems = []
    with progress_bar("leaderboard") as on_progress:
        for done, entry in enumerate(entries):
            on_progress(done / len(entries), f"{entry.model}, {entry.method}")
            if (problem := disagreement(entry)) is not None:
                problems.append(f"{entry.place(board)}: {problem}")
    if problems:
        raise RLFlowError("\n".join(problems))
    typer.echo(f"{len(entries)} entries hold.")


def _ranked(entries: Sequence[Entry]) -> Iterator[Standing]:
    """The entries of a row with their ranks; those that save the same share one."""
    rank = 0
    for number, entry in enumerate(entries):
        if number == 0 or not is_level(entries[number - 1], entry):
            rank = number + 1
        assert entry.saved_percent is not None
        yield Standing(
            model=entry.model,
            cost=entry.cost,
            rank=rank,
            method=entry.method,
            seed=entry.seed,
            saved_percent=entry.saved_percent,
            steps=len(entry.trajectory.steps),
            rewrites=entry.rewrites,
            seconds=entry.seconds,
            processor=entry.processor,
        )


def _listed(entries: Sequence[Entry]) -> Iterator[str]:
    """A row as a table."""
    yield f"{entries[0].model} at {entries[0].cost} prices"
    yield f"{'':4s}{'method':24s} {'seed':>4s} {'saved %':>8s} {'steps':>6s} {'rewrites':>9s} {'seconds':>8s}"
    for one in _ranked(entries):
        rewrites = "" if one.rewrites is None else str(one.rewrites)
        seconds = "" if one.seconds is None else f"{one.seconds:.1f}"
        yield (
            f"{one.rank:3d} {one.method:24s} {one.seed:4d} {one.saved_percent:8.3f} {one.steps:6d} {rewrites:>9s} "
            f"{seconds:>8s}"
        )
