"""The result of a search, kept in a file, so that a comparison that was killed need not search again."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from pathlib import Path

from rlflow.atomic_file import written_whole
from rlflow.errors import RLFlowError
from rlflow.ir.graph import Graph
from rlflow.method import Effort, Milestone, Optimality, OptimisationResult
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import replay

log = logging.getLogger(__name__)


def write_result(path: Path, result: OptimisationResult) -> None:
    """Write the trajectory to the best graph and what it took; the file is written whole or not at all."""
    content = {
        "trajectory": result.trajectory.to_json(),
        "best_ms": result.best_ms,
        "start_ms": result.start_ms,
        "wall_time_s": result.wall_time_s,
        "effort": result.effort.to_json(),
        "milestones": [asdict(milestone) for milestone in result.milestones],
        "optimality": None if result.optimality is None else asdict(result.optimality),
    }
    with written_whole(path) as draft:
        draft.write_text(json.dumps(content) + "\n")


def read_result(path: Path, graph: Graph, rewriter: Rewriter) -> OptimisationResult | None:
    """Read a result by replaying its trajectory from `graph`; None if the file is missing or of another graph."""
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text())
        trajectory = Trajectory.from_json(content["trajectory"])
        *_, best = replay(graph, trajectory, rewriter)
        figures = {name: content[name] for name in ("best_ms", "start_ms", "wall_time_s")}
        effort = Effort.from_json(content["effort"])
        milestones = tuple(Milestone(**milestone) for milestone in content["milestones"])
        optimality = None if content["optimality"] is None else Optimality(**content["optimality"])
    except (OSError, ValueError, KeyError, TypeError, RLFlowError) as error:
        log.warning("%s cannot be used (%s); searching again", path, error)
        return None
    return OptimisationResult(
        best=best, trajectory=trajectory, effort=effort, milestones=milestones, optimality=optimality, **figures
    )
