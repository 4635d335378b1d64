"""Extraction by integer linear programming with scipy's HiGHS: the cheapest graph of all, with a proof or a bound.

    solution = extract(problem, incumbent=problem.solved(of_the_model, "as given"))
    solution.objective_ms, solution.bound_ms, solution.proven

Relax, prune, solve: the linear relaxation gives a bound and guides greedy extraction to good solutions, choices that
together with the bound cost more than the best solution are left out, and the integer program of the rest is solved.
Whenever an answer makes classes from each other, the rows that forbid it are added (`integer_program`) and it is solved
again. Such an answer always breaks a row, so that none comes twice.

Invariant: whatever ends the search, the best solution so far is returned, never dearer than the incumbent.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

import numpy as np

from rlflow.egraph import greedy_extraction
from rlflow.egraph.integer_program import IntegerProgram, Loop
from rlflow.egraph.problem import Problem, Solution
from rlflow.egraph.pruning import TOLERANCE, pruned, useful
from rlflow.errors import InputError

_CHOSEN = 0.5
_OPTIMAL, _LIMIT, _INFEASIBLE = 0, 1, 2  # what `milp` calls its ends
_SUPPORT = (0.01, 0.3, 0.6)  # loops of a relaxation are looked for among choices above each of these values


@dataclass(frozen=True)
class Limits:
    """Limits of one extraction: seconds, None for no limit, and nodes of HiGHS's branch and bound.

    With nodes alone results repeat anywhere. A solution within `relative_gap` of the bound counts as the optimum.
    `InputError` for a negative limit.
    """

    time_s: float | None = 60.0
    nodes: int = 2000
    relative_gap: float = 1e-5
    relaxations: int = 8

    def __post_init__(self) -> None:
        for name in ("time_s", "nodes", "relative_gap", "relaxations"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise InputError(f"a limit of an extraction cannot be negative: {name} is {limit}")


def extract(problem: Problem, incumbent: Solution | None = None, limits: Limits | None = None) -> Solution | None:
    """Return the cheapest solution, or the best found within the limits; None if the roots cannot be made.

    It is never dearer than `incumbent` and greedy extraction's.
    """
    best = _better(problem, incumbent, greedy_extraction.extract(problem))
    return None if best is None else _Extraction(problem, limits or Limits(), best).run()


def _better(problem: Problem, one: Solution | None, other: Solution | None) -> Solution | None:
    """Return the cheaper solution; of two at the same price that of lower rank, or else the first."""
    if one is None or other is None:
        return one or other
    if abs(other.objective_ms - one.objective_ms) > TOLERANCE * one.objective_ms:
        return other if other.objective_ms < one.objective_ms else one
    ranks = [sum(problem.choices[number].rank for number in solution.choices) for solution in (one, other)]
    return other if ranks[1] < ranks[0] else one


@dataclass
class _Extraction:
    """One extraction under way: the best solution and bound so far, and what they have cost."""

    problem: Problem
    limits: Limits
    best: Solution
    bound_ms: float = 0.0
    nodes: int = 0
    limited_by: str = ""
    started: float = field(default_factory=time.perf_counter)

    def run(self) -> Solution:
        kept = pruned(self.problem, self.best.objective_ms)
        program = self._relaxed(IntegerProgram(self.problem, kept, self.best.objective_ms))
        while not self.is_proven and not self.limited_by:
            program = self._solved(program)
        bound_ms = min(self.bound_ms, self.best.objective_ms)
        limited_by = "" if self.is_proven else self.limited_by
        return replace(self.best, bound_ms=bound_ms, proven=self.is_proven, method="ilp", limited_by=limited_by)

    @property
    def is_proven(self) -> bool:
        return self.best.objective_ms - self.bound_ms <= self.limits.relative_gap * self.best.objective_ms

    @property
    def left_s(self) -> float:
        time_s = self.limits.time_s
        return inf if time_s is None else time_s - (time.perf_counter() - self.started)

    def _relaxed(self, program: IntegerProgram) -> IntegerProgram:
        """Solve the linear relaxation until it breaks no loop; return the program without what turned out too dear."""
        for _ in range(self.limits.relaxations):
            relaxation = None if self.is_proven or self.left_s <= 0 else _relaxation(program, self.left_s)
            if relaxation is None:
                break
            self.bound_ms = max(self.bound_ms, relaxation.bound_ms)
            self._round(program, relaxation.values)
            loops = _fractional_loops(program, relaxation.values)
            program = self._without_excess(program, relaxation)
            if not loops:
                break
            program = replace(program, loops=(*program.loops, *loops))
        return program

    def _round(self, program: IntegerProgram, values: np.ndarray) -> None:
        """Extract greedily, choices being the cheaper the more of them the values hold, and keep the best solution."""
        prices = self.problem.choices
        guide = {n: prices[n].price_ms * (1.0 - min(values[column], 0.999)) for n, column in program.x.items()}
        self._keep(greedy_extraction.extract(self.problem, guide))

    def _keep(self, found: Solution | None) -> None:
        self.best = _better(self.problem, self.best, found) or self.best

    def _without_excess(self, program: IntegerProgram, relaxation: _Relaxation) -> IntegerProgram:
        """Leave out choices with which, by their reduced costs, no solution is cheaper than the best one."""
        most = self.best.objective_ms * (1 + TOLERANCE) - relaxation.bound_ms
        cheap = [n for n, column in program.x.items() if relaxation.excess_ms[column] <= most]
        smaller = replace(program, kept=useful(self.problem, cheap))
        if not smaller.is_possible:
            self.bound_ms = self.best.objective_ms
        return smaller

    def _solved(self, program: IntegerProgram) -> IntegerProgram:
        """Solve the integer program once: keep the solution, or return the program with its loops forbidden."""
        from scipy.optimize import milp

        if self.left_s <= 0:
            self.limited_by = "time"
            return program
        integrality = np.zeros(program.width)
        integrality[: len(program.kept)] = 1
        options = {
            "time_limit": self.left_s,
            "node_limit": max(self.limits.nodes - self.nodes, 1),
            "mip_rel_gap": self.limits.relative_gap,
        }
        answer = milp(**program.arguments(), integrality=integrality, options=options)
        self.nodes += answer.mip_node_count or 0
        self.bound_ms = max(self.bound_ms, (answer.mip_dual_bound or 0.0) / program.scale)
        if answer.status == _INFEASIBLE:
            self.bound_ms = self.best.objective_ms  # nothing but what was left out as no cheaper
        elif answer.status != _OPTIMAL:
            self.limited_by = "time" if self.left_s <= 0 else "nodes" if answer.status == _LIMIT else "solver"
        return program if answer.x is None else self._taken(program, answer.x, answer.status == _OPTIMAL)

    def _taken(self, program: IntegerProgram, values: np.ndarray, is_optimal: bool) -> IntegerProgram:
        """Keep the solution of these values, or forbid the loops that it has."""
        chosen = [n for n, column in program.x.items() if values[column] > _CHOSEN]
        derived = self.problem.derivable(chosen)
        if all(root in derived for root in self.problem.wanted):
            self._keep(self.problem.solved(derived, "ilp"))
            if is_optimal:  # up to the solver's tolerances
                self.bound_ms = self.best.objective_ms
            return program
        self._round(program, values)
        stuck = dict.fromkeys(c for n in chosen for c in self.problem.choices[n].made if c not in derived)
        loops = program.broken_loops(values, chosen, stuck)
        if not loops:
            self.limited_by = "solver"
        return replace(program, loops=(*program.loops, *loops))


class _Relaxation(NamedTuple):
    """The solution of a linear relaxation: values by column, their price, and the reduced cost of each column."""

    values: np.ndarray
    bound_ms: float
    excess_ms: np.ndarray


def _relaxation(program: IntegerProgram, time_s: float) -> _Relaxation | None:
    """Solve the program with fractions allowed; None if the solver gives up."""
    from scipy.optimize import linprog
    from scipy.sparse import vstack

    arguments = program.arguments()
    rows, bounds = arguments["constraints"], arguments["bounds"]
    equal = rows.lb == rows.ub
    above, below = ~equal & np.isfinite(rows.lb), ~equal & np.isfinite(rows.ub)
    answer = linprog(
        arguments["c"],
        A_ub=vstack([rows.A[below], -rows.A[above]]),
        b_ub=np.concatenate([rows.ub[below], -rows.lb[above]]),
        A_eq=rows.A[equal],
        b_eq=rows.ub[equal],
        bounds=np.stack([bounds.lb, bounds.ub], axis=1),
        method="highs",
        options={"time_limit": time_s},
    )
    if answer.status != 0:
        return None
    return _Relaxation(answer.x, answer.fun / program.scale, answer.lower.marginals / program.scale)


def _fractional_loops(program: IntegerProgram, values: np.ndarray) -> list[Loop]:
    """Return loops that the values break, looked for among the choices above several values."""
    loops: dict[Loop, None] = {}
    for least in _SUPPORT:
        support = [n for n, column in program.x.items() if values[column] > least]
        loops.update(dict.fromkeys(program.broken_loops(values, support, program.y)))
    return list(loops)
