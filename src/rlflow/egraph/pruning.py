"""Choices that no cheapest solution needs, left out before the integer program is written.

- what is of no use: a choice that reads all that it makes, or an operand that nothing can make;
- what is dominated: another choice makes as much from no more operands, and is no dearer;
- what is too dear: the cheapest chain of choices from a root down through it costs more than a known solution;
- what no root leads to.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from math import inf

from rlflow.egraph.problem import Class, Problem

TOLERANCE = 1e-9
"""Relative; below it lies only the rounding of sums of prices."""


def pruned(problem: Problem, at_most_ms: float = inf) -> list[int]:
    """Return the choices, in their order, among which there is a cheapest solution if one costs up to `at_most_ms`."""
    kept: Sequence[int] = range(len(problem.choices))
    kept = [n for n in kept if not set(problem.choices[n].made) <= set(problem.reads(n))]
    kept = _undominated(problem, _possible(problem, kept))
    if at_most_ms < inf:
        kept = _affordable(problem, kept, at_most_ms * (1 + TOLERANCE))
    return useful(problem, kept)


def useful(problem: Problem, kept: Collection[int]) -> list[int]:
    """Leave out choices that can never be made, or that no root leads to."""
    return _reachable(problem, _possible(problem, kept))


def _possible(problem: Problem, kept: Collection[int]) -> list[int]:
    """Leave out choices that read what nothing can make."""
    derivable = problem.derivable(kept)
    return [n for n in kept if all(operand in derivable for operand in problem.reads(n))]


def _undominated(problem: Problem, kept: Sequence[int]) -> list[int]:
    """Leave out choices that another of no higher price and no more operands makes superfluous, the first if equal."""
    made = {n: frozenset(problem.choices[n].made) for n in kept}
    read = {n: frozenset(problem.reads(n)) for n in kept}
    remaining = set(kept)
    # The cheapest come first, so that only an earlier one can dominate.
    ordered = sorted(kept, key=lambda n: (problem.choices[n].price_ms, len(read[n]), -len(made[n]), n))
    place = {n: i for i, n in enumerate(ordered)}
    for number in ordered:
        rivals = (r for r in problem.makers[problem.choices[number].made[0]] if r in remaining)
        if any(place[r] < place[number] and made[r] >= made[number] and read[r] <= read[number] for r in rivals):
            remaining.discard(number)
    return [n for n in kept if n in remaining]


def _affordable(problem: Problem, kept: Sequence[int], at_most_ms: float) -> list[int]:
    """Leave out choices with which every chain from a root to the leaves costs more than `at_most_ms`."""
    below, above = _below_ms(problem, kept), _above_ms(problem, kept)

    def chain_ms(number: int) -> float:
        choice = problem.choices[number]
        under = max((below[operand] for operand in problem.reads(number)), default=0.0)
        return min((above.get(made, inf) for made in choice.made), default=inf) + choice.price_ms + under

    return [n for n in kept if chain_ms(n) <= at_most_ms]


def _below_ms(problem: Problem, kept: Sequence[int]) -> dict[Class, float]:
    """Return for each class the least price of the dearest chain below it: a lower bound of what it costs to make."""
    waiting = {n: len(problem.reads(n)) for n in kept}
    readers = problem.readers(kept)
    bound: dict[Class, float] = {}
    queue = [(problem.choices[n].price_ms, n) for n in kept if not waiting[n]]
    heapq.heapify(queue)
    while queue:
        price_ms, number = heapq.heappop(queue)
        for made in problem.choices[number].made:
            if made in bound:
                continue
            bound[made] = price_ms
            for reader in readers.get(made, ()):
                waiting[reader] -= 1
                if not waiting[reader]:  # classes settle in the order of their bounds: the last is the dearest
                    heapq.heappush(queue, (price_ms + problem.choices[reader].price_ms, reader))
    return bound


def _above_ms(problem: Problem, kept: Collection[int]) -> dict[Class, float]:
    """Return for each class the price of the cheapest chain of choices from a root down to it, without its own."""
    alive = frozenset(kept)
    bound: dict[Class, float] = {}
    queue = [(0.0, root) for root in problem.wanted]
    while queue:
        price_ms, current = heapq.heappop(queue)
        if current in bound:
            continue
        bound[current] = price_ms
        for number in problem.makers.get(current, ()):
            if number in alive:
                for operand in problem.reads(number):
                    if operand not in bound:
                        heapq.heappush(queue, (price_ms + problem.choices[number].price_ms, operand))
    return bound


def _reachable(problem: Problem, kept: Collection[int]) -> list[int]:
    alive, found = frozenset(kept), set[int]()
    stack, seen = list(problem.wanted), set(problem.wanted)
    while stack:
        for number in problem.makers.get(stack.pop(), ()):
            if number in alive and number not in found:
                found.add(number)
                fresh = [c for c in problem.reads(number) if c not in seen]
                seen.update(fresh)
                stack.extend(fresh)
    return sorted(found)
