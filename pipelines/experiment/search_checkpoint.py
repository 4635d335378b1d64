"""The result of a search, kept in a file, so that a comparison that was killed need not search again."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from rlflow.ir.graph import Graph
from rlflow.kept import Kept
from rlflow.method import Effort, Milestone, Optimality, OptimisationResult
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import replay


def kept_results(folder: Path, graph: Graph, rewriter: Rewriter) -> Kept[OptimisationResult]:
    """Return the results of searches from a graph; one of another graph, or by other rules, is made again."""
    return Kept.as_json(folder, _content, partial(_result, graph, rewriter))


def _content(result: OptimisationResult) -> dict[str, Any]:
    """Return the trajectory to the best graph and what it took."""
    return {
        "trajectory": result.trajectory.to_json(),
        "best_ms": result.best_ms,
        "start_ms": result.start_ms,
        "wall_time_s": result.wall_time_s,
        "effort": result.effort.to_json(),
        "milestones": [asdict(milestone) for milestone in result.milestones],
        "optimality": None if result.optimality is None else asdict(result.optimality),
    }


def _result(graph: Graph, rewriter: Rewriter, content: Any) -> OptimisationResult:
    """Return the result that `_content` describes, by replaying its trajectory from the graph."""
    trajectory = Trajectory.from_json(content["trajectory"])
    *_, best = replay(graph, trajectory, rewriter)
    return OptimisationResult(
        best=best,
        trajectory=trajectory,
        effort=Effort.from_json(content["effort"]),
        milestones=tuple(Milestone(**milestone) for milestone in content["milestones"]),
        optimality=None if content["optimality"] is None else Optimality(**content["optimality"]),
        **{name: content[name] for name in ("best_ms", "start_ms", "wall_time_s")},
    )
