"""`rlflow replay TRAJECTORY MODEL`: apply recorded rewrites again."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer
from onnx import ModelProto

from rlflow.cli.arguments import parse_shape
from rlflow.cli.json_output import print_json
from rlflow.errors import EquivalenceError, GraphError, InputError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import check_model, save_model, to_onnx
from rlflow.optimise.diagnose import Derivation
from rlflow.optimise.gate import GateConfig, check, judgeable
from rlflow.optimise.refusal import Refused
from rlflow.optimise.source import Source
from rlflow.optimise.specialise import Assumptions
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.matching.sharing import rewriter_of
from rlflow.runtime.inputs import dimensions_of
from rlflow.schemas.replay import ReplayReport, ReplayStep
from rlflow.trajectory import record
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import replay as replay_trajectory

_LOGGER = logging.getLogger(__name__)


def replay(
    trajectory: Annotated[Path, typer.Argument(help="A file of trajectories, one on each line.")],
    model: Annotated[Path, typer.Argument(help="The ONNX model that the trajectory started from.")],
    number: Annotated[int, typer.Option(help="The line to replay, counted from 1.")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the last graph to this file, as a model.")
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            help="Shape of an input with dynamic dimensions, as in x=1x128, as it was for the recording; repeatable."
        ),
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(help="The library of rules it was recorded with, unless that is the shipped one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the steps as JSON.")] = False,
) -> None:
    """Apply a recorded trajectory to its model and check the hash after every step.

    A model is written only if it computes the same as the first one. Exit code 0 if every step could be replayed and
    the model is equivalent, 2 if the input cannot be used, 1 on any other failure.
    """
    chosen = _numbered(trajectory, number)
    library = rule_library.load(rules)
    rewriter = rewriter_of(chosen.matching, library.rules)
    source = Source.of(model)
    sizes = dimensions_of(source.model, dict(parse_shape(text) for text in shape or ()))
    graph = Assumptions(source.model, sizes, library.rules).start_of(chosen, rewriter)
    *_, last = replay_trajectory(graph, chosen, rewriter)
    if output:
        rewritten, steps = _exported(last, model), (graph, chosen, rewriter)
        _compare(Derivation(source.model, rewritten, *steps, source.argument, dimensions=sizes), output)
        save_model(rewritten, output)
    if as_json:
        print_json("replay", _report(trajectory, model, chosen))
    else:
        typer.echo(_listed(chosen, library))


def _numbered(trajectories: Path, number: int) -> Trajectory:
    """The trajectory on line `number` of a file, counted from 1. `InputError` if there is none."""
    recorded = record.load(trajectories)
    if not 1 <= number <= len(recorded):
        raise InputError(f"{trajectories} has {len(recorded)} trajectories: there is no number {number}")
    return recorded[number - 1]


def _exported(graph: Graph, model: Path) -> ModelProto:
    """The graph as a valid model. `GraphError` naming the file that it started from if it cannot be one."""
    try:
        rewritten = to_onnx(graph)
        check_model(rewritten)
    except GraphError as error:
        raise GraphError(f"{model}: {error}") from None
    return rewritten


def _compare(derivation: Derivation, output: Path) -> None:
    """`EquivalenceError` if they differ; a warning where that cannot be judged."""
    config = GateConfig(dimensions=derivation.dimensions)
    judgement = judgeable(derivation.original, config)
    if judgement.unjudgeable:
        _LOGGER.warning("the written model was not compared with the original: %s", judgement.unjudgeable)
        return
    try:
        check(derivation, config, Path(f"{output}.reproducer"), reference=judgement.reference)
    except Refused as refused:
        raise EquivalenceError(f"{refused}; no model was written") from None


def _report(trajectory: Path, model: Path, chosen: Trajectory) -> ReplayReport:
    steps = [ReplayStep(s.rule, s.location, s.hash, s.runtime_ms) for s in chosen.steps]
    final_hash = chosen.steps[-1].hash if chosen.steps else chosen.start_hash
    return ReplayReport(str(trajectory), str(model), True, chosen.start_hash, final_hash, steps)


def _listed(chosen: Trajectory, library: Library) -> str:
    """The steps, one on each line, and how many they are."""
    names = {rule.id: rule.name for rule in library.rules}
    lines = [
        f"{place:4d}  {names[step.rule]:32s} @{step.location:<4d} {step.hash}  {step.runtime_ms:10.4f} ms"
        for place, step in enumerate(chosen.steps, start=1)
    ]
    return "\n".join([*lines, f"{len(chosen.steps)} steps replayed; every hash agrees with the recording."])
