"""The integer program of an extraction, and the rows that forbid its loops.

x of a choice is 1 if the application is in the graph, y of a class if the class is needed:

    minimise    sum of price * x
    subject to  y = 1                                           for every root
                y <= sum of x of the choices that make it       (equal, if each of them makes nothing else)
                sum of x of the choices that make only c and need k  <=  y of k
                y of k <= sum of x of the choices that make a class of S and need none,     for k in a set of classes S

A choice needs its operands, and their landmarks (`egraph/landmarks.py`), without which the relaxation is worth
little. The last rows forbid that the classes of S are made from each other alone (the loop formulas of Lin and Zhao,
2004). There is one for every S: those of two classes are part of the rows before, others are written once a solution
breaks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np

from rlflow.egraph.landmarks import Landmarks
from rlflow.egraph.problem import Class, Problem

_BROKEN = 1e-5  # a row that is broken by less is left to the solver's own tolerance
_RANK = 1e-6  # the price of a rank, where the best known solution costs 1000: it decides between equals alone


class Loop(NamedTuple):
    """A set of classes of which one, if it is needed, must be made from outside of the set."""

    needed: Class
    classes: frozenset[Class]


class Row(NamedTuple):
    """A linear form, as coefficients by column, and its limits."""

    form: Mapping[int, float]
    low: float
    high: float


@dataclass(frozen=True)
class IntegerProgram:
    """The program over some of a problem's choices. Column i is x of choice `kept[i]`; the columns of y come after.

    Prices are scaled so that `unit_ms` counts 1000, because the solver's tolerances are absolute. A loop of which the
    needed class is made by no choice that is kept is no loop any more.
    """

    problem: Problem
    kept: Sequence[int]
    unit_ms: float
    loops: tuple[Loop, ...] = ()

    @cached_property
    def x(self) -> Mapping[int, int]:
        return {number: column for column, number in enumerate(self.kept)}

    @cached_property
    def makers(self) -> Mapping[Class, Sequence[int]]:
        """The choices that make each class, without those that read it."""
        makers: dict[Class, list[int]] = {}
        for number in self.kept:
            for current in self.problem.choices[number].made:
                if current not in self.problem.given and current not in self.problem.reads(number):
                    makers.setdefault(current, []).append(number)
        return makers

    @cached_property
    def landmarks(self) -> Landmarks:
        return Landmarks(self.problem, self.makers)

    @cached_property
    def y(self) -> Mapping[Class, int]:
        return {c: len(self.kept) + place for place, c in enumerate(self.makers)}

    @property
    def width(self) -> int:
        return len(self.kept) + len(self.y)

    @property
    def is_possible(self) -> bool:
        """Tell if something makes each root."""
        return all(root in self.makers for root in self.problem.wanted)

    @property
    def scale(self) -> float:
        return 1000.0 / self.unit_ms if self.unit_ms else 1.0

    def arguments(self) -> dict[str, Any]:
        """Return the program as the arguments that `scipy.optimize.milp` takes."""
        from scipy.optimize import Bounds, LinearConstraint

        lower, prices = np.zeros(self.width), np.zeros(self.width)
        lower[[self.y[root] for root in self.problem.wanted]] = 1.0
        choices = [self.problem.choices[number] for number in self.kept]
        prices[: len(choices)] = [choice.price_ms * self.scale + choice.rank * _RANK for choice in choices]
        rows = [*self._rows, *(self._loop_row(loop) for loop in self.loops if loop.needed in self.y)]
        limits = (np.array([row.low for row in rows]), np.array([row.high for row in rows]))
        return {
            "c": prices,
            "bounds": Bounds(lower, np.ones(self.width)),
            "constraints": LinearConstraint(_matrix([row.form for row in rows], self.width), *limits),
        }

    @cached_property
    def _rows(self) -> list[Row]:
        """The rows that every program has."""
        rows = [row for current in self.makers for row in self._rows_of(current)]
        for number in self.kept:
            if len(self.problem.choices[number].made) > 1:
                for operand in self.problem.reads(number):
                    rows.append(Row({self.x[number]: 1.0, self.y[operand]: -1.0}, -inf, 0.0))
        return rows

    def _rows_of(self, current: Class) -> Iterable[Row]:
        makers, alone = self.makers[current], self._making_alone(current)
        exact = len(alone) == len(makers)
        yield self._compared(makers, current, 0.0, 0.0 if exact else inf)
        if alone and not exact:
            yield self._compared(alone, current, -inf, 0.0)
        for needed, group in self.landmarks.nearest(alone):
            # If choices of that class need this one in their turn, one of the two is made without the other.
            back = self.landmarks.needing(self._making_alone(needed), current)
            yield self._compared([*group, *back], needed, -inf, 0.0)
        for needed, group in self.landmarks.nearest(makers) if not exact else ():
            if len(group) == len(makers):
                yield Row({self.y[current]: 1.0, self.y[needed]: -1.0}, -inf, 0.0)

    def _making_alone(self, current: Class) -> list[int]:
        """Return the choices that make this class and nothing else: a cheapest solution has at most one of them."""
        return [n for n in self.makers[current] if len(self.problem.choices[n].made) == 1]

    def _compared(self, choices: Sequence[int], current: Class, low: float, high: float) -> Row:
        """Return the row of the choices minus the need for the class."""
        return Row({**{self.x[n]: 1.0 for n in choices}, self.y[current]: -1.0}, low, high)

    def _loop_row(self, loop: Loop) -> Row:
        return self._compared(self._from_outside(loop.classes), loop.needed, 0.0, inf)

    def _from_outside(self, classes: frozenset[Class]) -> list[int]:
        """Return the choices that make one of the classes and need none of them."""
        makers = sorted({n for c in classes for n in self.makers.get(c, ())})
        return [n for n in makers if classes.isdisjoint(self.landmarks.of_choice(n))]

    def broken_loops(self, values: np.ndarray, support: Sequence[int], within: Iterable[Class]) -> list[Loop]:
        """Return the loops among classes that the choices in `support` make from each other and that `values` break."""
        loops = []
        for classes in map(frozenset, self._components(support, list(within))):
            supply = sum(values[self.x[n]] for n in self._from_outside(classes))
            loops += [Loop(c, classes) for c in sorted(classes) if values[self.y[c]] > supply + _BROKEN]
        return loops

    def _components(self, support: Sequence[int], classes: Sequence[Class]) -> list[list[Class]]:
        """Return the sets of classes, two or more, that can all be reached from each other through the support."""
        from scipy.sparse.csgraph import connected_components

        place = {c: i for i, c in enumerate(classes)}
        edges: list[dict[int, float]] = [{} for _ in classes]
        for number in support:
            operands = [place[c] for c in self.problem.reads(number) if c in place]
            for made in self.problem.choices[number].made:
                if made in place:
                    edges[place[made]].update(dict.fromkeys(operands, 1.0))
        count, labels = connected_components(_matrix(edges, len(classes)), connection="strong")
        components: list[list[Class]] = [[] for _ in range(count)]
        for current, label in zip(classes, labels, strict=True):
            components[label].append(current)
        return [component for component in components if len(component) > 1]


def _matrix(forms: Sequence[Mapping[int, float]], width: int) -> Any:
    """Return the linear forms as the rows of a sparse matrix."""
    from scipy.sparse import csr_array

    size = sum(map(len, forms))
    columns = np.fromiter((column for form in forms for column in form), np.int32, size)
    values = np.fromiter((value for form in forms for value in form.values()), np.float64, size)
    starts = np.concatenate([[0], np.cumsum([len(form) for form in forms])]).astype(np.int32)
    return csr_array((values, columns, starts), shape=(len(forms), width))
