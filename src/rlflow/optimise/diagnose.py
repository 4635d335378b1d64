"""Finding what broke a model: the step, its rule and the values that it replaced, and where to see it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
from onnx import ModelProto

from rlflow.equivalence.compare import EquivalenceReport, compare
from rlflow.equivalence.drawing import Inputs
from rlflow.errors import RLFlowError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import save_model, to_onnx
from rlflow.optimise import reproducer
from rlflow.optimise.reproducer import Pair, smallest_pair
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.bisect import IsWrong, WrongStep, first_wrong_step
from rlflow.trajectory.minimise import minimise
from rlflow.trajectory.record import Trajectory

_SOURCE = "model.onnx"


@dataclass(frozen=True)
class Derivation:
    """The way from `original` to `candidate`, which may hold at the sizes `dimensions` alone.

    The steps of `trajectory` start from `graph`. It is the graph of `source`: a model, or the argument by which a
    command takes its file. That is the original, or the original after passes and with subgraphs that were optimised
    before.
    """

    original: ModelProto | Path
    candidate: ModelProto | Path
    graph: Graph
    trajectory: Trajectory
    rewriter: Rewriter
    source: str | ModelProto = "MODEL"
    dimensions: Mapping[str, int] | None = None


def explain(derivation: Derivation, report: EquivalenceReport, drawn: list[Inputs], folder: Path | None) -> str:
    """Say in a sentence what made the models differ, as `report` found on the inputs `drawn`.

    A reproducer is written to `folder`, if one is given.
    """
    witness = drawn if report.worst_draw is None else [drawn[report.worst_draw]]

    def is_wrong(graph: Graph) -> bool:
        candidate = to_onnx(graph)
        return not compare(derivation.original, candidate, dimensions=derivation.dimensions, inputs=witness).equivalent

    wrong = None
    if not is_wrong(derivation.graph):
        wrong = first_wrong_step(derivation.graph, derivation.trajectory, derivation.rewriter, is_wrong)
    is_original = isinstance(derivation.source, str)
    start = "import or export" if is_original else "import, export, passes or a subgraph's rewrites"
    what = f"it broke at {wrong or f'{start}: no step changes what it computes'}"
    if folder is None:
        return what
    try:
        _write(folder, f"It is {report.summary}; {what}.", derivation, wrong, witness, is_wrong)
    except (OSError, RLFlowError) as error:
        return f"{what}; no reproducer could be written to {folder} ({error})"
    return f"{what}; to see it again, read {folder / 'README.txt'}"


def _write(
    folder: Path, what: str, derivation: Derivation, wrong: WrongStep | None, witness: list[Inputs], is_wrong: IsWrong
) -> None:
    if wrong is None:
        sides = (_loaded(derivation.original), _loaded(derivation.candidate))
        reproducer.write(folder, what, Pair(*sides, witness[0], "the original", "the model that was made of it"))
        return
    broken = replace(derivation.trajectory, steps=derivation.trajectory.steps[: wrong.number])
    shortest = minimise(derivation.graph, broken, derivation.rewriter, is_wrong)
    steps = len(derivation.trajectory.steps)
    pair = smallest_pair(wrong, witness)
    shapes = {name: value.shape for name, value in witness[0].items() if value.shape} if derivation.dimensions else {}
    model = derivation.source if isinstance(derivation.source, str) else _SOURCE
    reproducer.write(folder, what, pair, shortest=shortest, steps=steps, model=model, shapes=shapes)
    if isinstance(derivation.source, ModelProto):
        save_model(derivation.source, folder / _SOURCE)


def _loaded(model: ModelProto | Path) -> ModelProto:
    return model if isinstance(model, ModelProto) else onnx.load(model)
