"""Finding the rewrite that broke a model."""

from __future__ import annotations

from rlflow.ir.graph import Graph
from rlflow.onnx_io import to_onnx
from rlflow.rules.rewriter import Rewriter
from rlflow.runtime.equivalence import compare
from rlflow.trajectory.record import Step, Trajectory
from rlflow.trajectory.replay import replay


def first_wrong_step(
    graph: Graph, trajectory: Trajectory, rewriter: Rewriter, *, draws: int = 3, seed: int = 0
) -> tuple[int, Step] | None:
    """The number (from 1) of the first step whose graph computes something else, and the step; None if there is none.

    By halving, so it takes the logarithm of the steps in comparisons on ONNX Runtime.
    """
    graphs = list(replay(graph, trajectory, rewriter))
    original = to_onnx(graph)

    def is_right(number: int) -> bool:
        return compare(original, to_onnx(graphs[number]), draws=draws, seed=seed).equivalent

    right, wrong = 0, len(graphs) - 1
    if is_right(wrong):
        return None
    while wrong - right > 1:
        middle = (right + wrong) // 2
        right, wrong = (middle, wrong) if is_right(middle) else (right, middle)
    return wrong, trajectory.steps[wrong - 1]
