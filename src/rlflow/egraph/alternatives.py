"""Several good solutions of one extraction, for prices that are no sums over applications.

A runtime fuses operators, so that what a graph really costs is known of whole graphs alone. Solutions that are the
cheapest under slightly different prices are good under the given ones, and differ in more than one detail:

    for solution in [best, *alternatives(problem, best, count=4)]:
        price the graph that it stands for, and keep the cheapest
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlflow.egraph import ilp
from rlflow.egraph.problem import Choice, Problem, Solution


def alternatives(
    problem: Problem,
    best: Solution,
    count: int,
    limits: ilp.Limits | None = None,
    seed: int = 0,
    spread: float = 0.1,
) -> list[Solution]:
    """Return at most `count` solutions that differ from `best` and from each other, the cheapest first.

    Each is the best one found under prices that are multiplied by numbers around 1, of which the logarithms deviate
    by `spread` from 0; its own price is by the given ones. `limits` hold for each.
    """
    rng = np.random.default_rng(seed)
    found = {frozenset(best.choices): best}
    for _ in range(count):
        factors = np.exp(spread * rng.standard_normal(len(problem.choices)))
        priced = tuple(
            choice._replace(price_ms=choice.price_ms * float(factor))
            for choice, factor in zip(problem.choices, factors, strict=True)
        )
        solution = ilp.extract(replace(problem, choices=priced), _priced(best, priced), limits)
        assert solution is not None  # `best` is one
        found.setdefault(frozenset(solution.choices), problem.solved(solution.chosen, "ilp"))
    others = [solution for solution in found.values() if solution is not best]
    return sorted(others, key=lambda solution: solution.objective_ms)


def _priced(solution: Solution, choices: tuple[Choice, ...]) -> Solution:
    return replace(solution, objective_ms=float(sum(choices[n].price_ms for n in solution.choices)))
