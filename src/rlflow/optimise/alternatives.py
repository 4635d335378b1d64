"""Other results to which the steps of a search lead as well, each of which relies on something less.

A search is flattered by the prices that it goes by: it ends where they are wrong in its favour. What it relied on is a
rule whose steps were said to save much. So the same steps are taken once more without those of the rule that saves
most, and without those of the rule that saves second most:

    for other in alternatives(start, found, rewriter, cost_model, most=2):
        other.without       ids of the rules whose steps were left out
        other.result        the cheapest graph on the way that is left

Prices are those of ONNX Runtime. For another runtime, what is left out first are all rules that were measured to gain
nothing there (`rlflow.rules.portability`).

Steps that only prepared what is left out go as well: those of rules by which the price rises on the whole. Only running
them tells which one is right (`optimise.timing`).

Invariant: an alternative is predicted to be cheaper than the original, and no two lead to the same graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.method import OptimisationResult
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Step, Trajectory
from rlflow.trajectory.replay import of_its_rules
from rlflow.trajectory.transfer import steps_taken


@dataclass(frozen=True)
class Alternative:
    """A result, and the rules whose steps it does without."""

    result: OptimisationResult
    without: tuple[str, ...] = ()


def alternatives(
    start: Graph,
    found: OptimisationResult,
    rewriter: Rewriter,
    cost_model: CostModel,
    most: int,
    gainless: Collection[str] = (),
) -> Iterator[Alternative]:
    """Yield at most so many alternatives to what was found from this graph: that without `gainless` rules first, then
    that without the most saving rule.
    """
    savings_ms, known = _savings_ms(found.trajectory), {_end(found.trajectory)}
    preparing = [rule for rule, saving_ms in savings_ms.items() if saving_ms < 0.0]
    saving = [rule for rule, saving_ms in savings_ms.most_common(most) if saving_ms > 0.0]
    doubted = [tuple(rule for rule in savings_ms if rule in gainless), *((rule,) for rule in saving)]
    for rules in islice(filter(None, doubted), most):
        if len(savings_ms) == 1:
            break
        without = (*rules, *(rule for rule in preparing if rule not in rules))
        result = _without(without, start, found, rewriter, cost_model)
        if result.trajectory.steps and _end(result.trajectory) not in known:
            known.add(_end(result.trajectory))
            yield Alternative(result, without)


def _savings_ms(trajectory: Trajectory) -> Counter[str]:
    """Return the savings of each rule's steps together; less than nothing for those that only prepare others."""
    savings_ms: Counter[str] = Counter()
    before_ms = trajectory.start_runtime_ms
    for step in trajectory.steps:
        savings_ms[step.rule] += before_ms - step.runtime_ms  # type: ignore[assignment]
        before_ms = step.runtime_ms
    return savings_ms


def _without(
    rules: Collection[str], start: Graph, found: OptimisationResult, rewriter: Rewriter, cost_model: CostModel
) -> OptimisationResult:
    """Take the steps of all other rules, as far as they still can be, and end at the cheapest graph on that way."""
    rewriter = of_its_rules(found.trajectory, rewriter)
    best, best_ms, steps, length = start, found.start_ms, list[Step](), 0
    for step, graph in steps_taken(start, found.trajectory, start, rewriter, rewriter, rules):
        if step is None:
            continue
        runtime_ms = cost_model.runtime_ms(graph)
        steps.append(replace(step, runtime_ms=runtime_ms, reward=0.0))
        if runtime_ms < best_ms:
            best, best_ms, length = graph, runtime_ms, len(steps)
    trajectory = replace(found.trajectory, steps=tuple(steps[:length]))
    return replace(found, best=best, best_ms=best_ms, trajectory=trajectory, milestones=(), optimality=None)


def _end(trajectory: Trajectory) -> str:
    """The hash of the graph that a trajectory leads to."""
    return trajectory.steps[-1].hash if trajectory.steps else trajectory.start_hash
