"""A search as a study hands it to a process: everything by its name, with all rules of the library.

    task = SearchTask(subject, "greedy", {}, Budget())
    finding = carried_out(task)
    finding.result.best_ms, finding.wall_time_s

The time of a search begins when its prices are made ready, since a model that prices has to be loaded; the graph and
the rules, which every search has alike, are there by then.

Invariant: searches have nothing in common but the files that they are made from, so that none profits from another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlflow.cost.base import CostModel
from rlflow.cost.models import COST_MODELS
from rlflow.ir.graph import Graph
from rlflow.method import Budget, OptimisationResult
from rlflow.optimise.methods import METHODS
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from studies.subject import Subject

if TYPE_CHECKING:
    from rlflow.cost.base import CostModelFactory
    from rlflow.optimise.methods import MethodFactory


@dataclass(frozen=True)
class SearchTask:
    """One search, by the name of a method (`rlflow.optimise.methods`)."""

    subject: Subject
    method: str
    options: Mapping[str, Any]
    budget: Budget


@dataclass(frozen=True)
class Finding:
    """The outcome of a search from `graph`, with the rewriter and the cost model that it had."""

    graph: Graph
    rewriter: Rewriter
    cost_model: CostModel
    result: OptimisationResult
    wall_time_s: float


def carried_out(
    task: SearchTask,
    methods: Callable[[str], MethodFactory] = METHODS.get,
    cost_models: Callable[[str], CostModelFactory] = COST_MODELS.get,
) -> Finding:
    """Search by one of these methods and cost models.

    Raises what reading the model, making the method and pricing raise.
    """
    subject, rules = task.subject, library.load()
    graph = subject.graph()
    rewriter, make_prices, make_method = Rewriter(rules.rules), cost_models(subject.cost_model), methods(task.method)
    started = time.perf_counter()
    cost_model = make_prices(subject.context)
    method = make_method(rules, rewriter, cost_model, **task.options)
    result = method.optimise(graph, task.budget)
    return Finding(graph, method.rewriter, cost_model, result, time.perf_counter() - started)
