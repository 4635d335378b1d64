"""Small problems of extraction, drawn at random or of a known kind, and the cheapest solution by trying everything."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from hypothesis import strategies as st

from rlflow.egraph.problem import Choice, Class, Problem


@st.composite
def problems(draw: st.DrawFn, classes: int = 6, choices: int = 12) -> Problem:
    """Problems with loops, several outputs, given classes and pieces that nothing can make; prices are whole."""
    numbers = st.integers(0, classes - 1)
    output = st.one_of(numbers, numbers, st.none())
    made = []
    for _ in range(draw(st.integers(1, choices))):
        outputs = (draw(numbers), *draw(st.lists(output, max_size=1)))
        operands = tuple(draw(st.lists(numbers, max_size=2)))
        made.append(Choice(float(draw(st.integers(0, 9))), outputs, operands))
    roots = tuple(draw(st.lists(numbers, min_size=1, max_size=2)))
    return Problem(tuple(made), roots, frozenset(draw(st.lists(numbers, max_size=1))))


def cheapest_ms(problem: Problem) -> float:
    """Return the price of the cheapest solution by trying all, infinity if there is none."""
    return min((problem.solved(chosen, "all").objective_ms for chosen in solutions(problem)), default=inf)


def solutions(problem: Problem) -> Iterator[dict[Class, int]]:
    """Yield every acyclic assignment of choices to the classes that it needs."""

    def extended(chosen: dict[Class, int], open_classes: tuple[Class, ...]) -> Iterator[dict[Class, int]]:
        if not open_classes:
            if problem.is_solution(chosen):
                yield chosen
            return
        current, *rest = open_classes
        if current in chosen:
            yield from extended(chosen, tuple(rest))
            return
        for number in problem.makers.get(current, ()):
            yield from extended({**chosen, current: number}, (*rest, *problem.reads(number)))

    yield from extended({}, problem.wanted)


def shared(width: int) -> Problem:
    """Return a root that reads `width` classes, each from nothing for 3 or, for 1, from one class that costs 4.

    Each class alone is cheaper by itself, and together they are cheaper by what they share: width + 4 < 3 width.
    """
    top = Choice(1.0, (0,), tuple(range(1, width + 1)))
    alone = [Choice(3.0, (c,), ()) for c in range(1, width + 1)]
    sharing = [Choice(1.0, (c,), (width + 1,)) for c in range(1, width + 1)]
    return Problem((top, *alone, *sharing, Choice(4.0, (width + 1,), ())), (0,))


def ring(length: int) -> Problem:
    """Return classes that each can be made from the next for 1, the last from the first, or from nothing for 10."""
    around = [Choice(1.0, (c,), ((c + 1) % length,)) for c in range(length)]
    return Problem((*around, *(Choice(10.0, (c,), ()) for c in range(length))), tuple(range(length)))
