"""Greedy extraction: every class takes the application whose graph is the cheapest, in one pass from the leaves.

The price of a class is that of the whole graph below it, each application paid for once. It is not the cheapest graph
of all: a class decides by itself, and two that could share a dear application may each take a cheaper one of their own.

    a = f(p) for 3 or g(s) for 1,  b = f(q) for 3 or h(s) for 1,  p and q for nothing,  s for 3
    alone, a and b pay 3 rather than 4; together they would share s and pay 5 instead of 6

Classes are settled in the order of their prices (Knuth 1977, a generalisation of Dijkstra's algorithm), so that
nothing is ever made from itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from math import fsum

from rlflow.egraph.problem import Class, Problem, Solution


def extract(problem: Problem, guide: Mapping[int, float] | None = None) -> Solution | None:
    """Return a solution; None if the roots cannot be made.

    A `guide` gives prices to go by in place of the real ones, and only choices that it names are taken.
    """
    prices = {n: choice.price_ms for n, choice in enumerate(problem.choices)} if guide is None else guide
    waiting = {number: len(problem.reads(number)) for number in prices}
    readers = problem.readers(prices)
    settled: dict[Class, int] = {}
    below: dict[Class, frozenset[int]] = {}

    queue = [(prices[number], number, frozenset({number})) for number, count in waiting.items() if not count]
    heapq.heapify(queue)
    while queue:
        _, number, graph = heapq.heappop(queue)
        for made in problem.choices[number].made:
            if made in settled or made in problem.given:
                continue
            settled[made], below[made] = number, graph
            for reader in readers.get(made, ()):
                waiting[reader] -= 1
                if not waiting[reader]:
                    larger = frozenset({reader}).union(*(below[c] for c in problem.reads(reader)))
                    heapq.heappush(queue, (fsum(prices[n] for n in larger), reader, larger))
    return problem.solved(settled, "greedy") if all(root in settled for root in problem.wanted) else None
