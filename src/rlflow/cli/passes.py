"""`rlflow passes list | apply | search | replay`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from rlflow.atomic_file import written_whole
from rlflow.cli.progress import progress_bar
from rlflow.errors import EquivalenceError, InputError
from rlflow.passes.backend import Facts
from rlflow.passes.backends import BACKENDS
from rlflow.passes.factory import METHODS, search_with
from rlflow.passes.record import PassRecord, read_record, replayed, write_record
from rlflow.passes.transitions import Transitions
from rlflow.passes.worker import WorkerBackend

app = typer.Typer(no_args_is_help=True)

Backend = Annotated[str, typer.Option("--backend", "-b", help=f"A compiler: {', '.join(BACKENDS.built_in)}.")]
Program = Annotated[str, typer.Argument(help="A file, or a program of the compiler's dataset by its name.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write the program to this file.")]


@app.command("list")
def list_passes(
    backend: Backend = "onnx",
    sources: Annotated[bool, typer.Option(help="List the programs of its dataset instead.")] = False,
) -> None:
    """The passes of a compiler and its ready-made pipelines, or the programs of its dataset."""
    with WorkerBackend(backend) as compiler:
        if sources:
            for source in compiler.sources():
                typer.echo(f"{source.family:24s} {source.name}")
            return
        known = compiler.catalogue()
        for number, name in enumerate(known.passes):
            typer.echo(f"{number:3d} {name}")
        typer.echo(f"pipelines: {', '.join(known.pipelines)}; by default {known.default}")


@app.command()
def apply(
    program: Program,
    passes: Annotated[list[str], typer.Argument(help="Passes or pipelines, in their order.")],
    backend: Backend = "onnx",
    output: Output = None,
) -> None:
    """Run passes one after another, tell what each does, and compare the result with the original."""
    with _started(backend, program) as (transitions, start):
        facts = start
        for name in passes:
            outcome = transitions.step(facts.key, name)
            facts = outcome.facts
            typer.echo(f"{name:48s} {outcome.error or f'{facts.operations} operations'}")
        _finish(transitions, start, facts, output)


@app.command()
def search(
    program: Program,
    backend: Backend = "onnx",
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "beam",
    max_passes: Annotated[int, typer.Option(help="Passes in a row, at most.")] = 24,
    width: Annotated[int, typer.Option(help="Programs that a beam goes on from.")] = 3,
    episodes: Annotated[int, typer.Option(help="Random sequences.")] = 4,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
    output: Output = None,
    record: Annotated[
        Path | None, typer.Option(help="Write the passes to this file, for `rlflow passes replay`.")
    ] = None,
) -> None:
    """Look for passes that leave fewer operations, and compare the result with the original."""
    with _started(backend, program) as (transitions, start):
        with progress_bar(program) as on_progress:
            found = search_with(
                method,
                transitions,
                start,
                max_passes=max_passes,
                width=width,
                episodes=episodes,
                seed=seed,
                on_progress=on_progress,
            )
        typer.echo(f"{start.operations} operations, {found.facts.operations} after {found.tried} passes tried:")
        for name in found.passes:
            typer.echo(f"  {name}")
        _finish(transitions, start, found.facts, output)
        if record is not None:
            write_record(record, PassRecord.of(transitions, backend, program, start, found.passes))


@app.command()
def replay(
    record: Annotated[Path, typer.Argument(help="What `rlflow passes search --record` wrote.")],
    program: Annotated[str | None, typer.Argument(help="The program, if it lies elsewhere now.")] = None,
    output: Output = None,
) -> None:
    """Run recorded passes again, check the program after each, and compare the last one with the original."""
    written = read_record(record)
    with _started(written.backend, program or written.source) as (transitions, start):
        facts = replayed(transitions, written, start)
        typer.echo(f"{len(written.steps)} passes: {start.operations} operations, {facts.operations} after them")
        _finish(transitions, start, facts, output)


@contextmanager
def _started(backend: str, program: str) -> Iterator[tuple[Transitions, Facts]]:
    """A compiler in a process of its own, and the program that was named."""
    with WorkerBackend(backend) as compiler:
        transitions = Transitions(compiler)
        yield transitions, transitions.start(program)


def _finish(transitions: Transitions, start: Facts, facts: Facts, output: Path | None) -> None:
    """Write the program if it computes what the original does. `EquivalenceError` if it does not."""
    original, payload = transitions.payload(start.key), transitions.payload(facts.key)
    if difference := transitions.backend.check(original, payload, seed=0):
        raise EquivalenceError(f"the program after these passes is another one, and was not written: {difference}")
    typer.echo("it computes the same as the original")
    if output is not None:
        if not output.parent.is_dir():
            raise InputError(f"there is no folder {output.parent}: make it, or name another file")
        with written_whole(output) as draft:
            draft.write_bytes(payload)
