"""`rlflow replay TRAJECTORY MODEL`: do recorded rewrites again."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated

import typer

from rlflow import schemas
from rlflow.cli.optimise import parse_shape
from rlflow.errors import GraphError, InputError
from rlflow.onnx_io import check_model, load_model, save_model, to_onnx
from rlflow.optimise.diagnose import Derivation
from rlflow.optimise.gate import DeliveryConfig, check, judgeable
from rlflow.optimise.specialise import Assumptions
from rlflow.rules import library as rule_library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.inputs import dimensions_of
from rlflow.trajectory import record
from rlflow.trajectory.replay import replay as replay_trajectory

_LOGGER = logging.getLogger(__name__)


def replay(
    trajectory: Annotated[Path, typer.Argument(help="A trajectory file, one trajectory a line.")],
    model: Annotated[Path, typer.Argument(help="The ONNX model that it started from.")],
    number: Annotated[int, typer.Option(help="Which line, from 1.")] = 1,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the last graph as a model.")] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(help="Shape of an input whose sizes are open: those of the recording, and for --output."),
    ] = None,
    rules: Annotated[Path | None, typer.Option(help="The library it was recorded with; the shipped one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the steps as JSON.")] = False,
) -> None:
    """Apply a recorded trajectory to its model and check the hash after every step.

    A model is written only if it computes what the first one does. Exit code 0 when all that holds, 2 on input that
    cannot be used, 1 on failure.
    """
    recorded = record.load(trajectory)
    if not 1 <= number <= len(recorded):
        raise InputError(f"{trajectory} has {len(recorded)} trajectories, not number {number}")
    chosen = recorded[number - 1]
    library = rule_library.load(rules)
    names = {r.id: r.name for r in library.rules}
    rewriter = Rewriter(library.rules)
    sizes = dimensions_of(load_model(model), dict(parse_shape(text) for text in shape or ()))
    graph = Assumptions.of(model, sizes, library.rules).start_of(chosen, rewriter)
    *_, last = replay_trajectory(graph, chosen, rewriter)
    if output:
        try:
            rewritten = to_onnx(last)
            check_model(rewritten)
        except GraphError as error:
            raise GraphError(f"{model}: {error}") from None
        _compare(Derivation(model, rewritten, graph, chosen, rewriter, str(model.resolve()), dimensions=sizes), output)
        save_model(rewritten, output)
    if as_json:
        document = {
            "trajectory": str(trajectory),
            "model": str(model),
            "faithful": True,
            "start_hash": chosen.start_hash,
            "final_hash": chosen.steps[-1].hash if chosen.steps else chosen.start_hash,
            "steps": [
                {"rule": s.rule, "location": s.location, "hash": s.hash, "cost_ms": s.runtime_ms} for s in chosen.steps
            ],
        }
        schemas.validate("replay", document)
        typer.echo(json.dumps(document, indent=1))
        return
    for place, step in enumerate(chosen.steps, start=1):
        typer.echo(f"{place:4d}  {names[step.rule]:32s} @{step.location:<4d} {step.hash}  {step.runtime_ms:10.4f} ms")
    typer.echo(f"{len(chosen.steps)} steps replayed; every hash agrees.")


def _compare(derivation: Derivation, output: Path) -> None:
    """`EquivalenceError` on a difference; a warning where nobody can tell."""
    config = DeliveryConfig(dimensions=derivation.dimensions)
    _, unjudgeable = judgeable(derivation.original, config)
    if unjudgeable:
        _LOGGER.warning("the model written was not compared with the original: %s", unjudgeable)
        return
    check(derivation, config, Path(f"{output}.reproducer"))
