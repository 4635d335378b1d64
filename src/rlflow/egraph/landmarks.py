"""Landmarks: the classes without which a class cannot be made, whichever of its choices makes it.

    y <- Gather(MatMul(x, w))         from class 1 = MatMul(x, w), which needs class 3 = x
    y <- MatMul(Gather(x), w)         from class 2 = Gather(x),    which needs class 3, too
    the landmarks of y are y and x, though no choice of y reads x

An integer program that knows them has a far better relaxation: half a choice of each kind needs half of class 1 and
half of class 2, but all of class 3. They are the greatest solution of

    landmarks(class)  = {class} and what the landmarks of all choices that make it have in common
    landmarks(choice) = all landmarks of its operands

(Zhu and Givan, Landmark Extraction via Planning Graph Propagation, 2003). Sets are numbers of which bit i stands for
the class that has the i-th fewest landmarks, so that the highest bit of a set is a class nearest to its owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, or_

from rlflow.egraph.problem import Class, Problem

Members = Sequence[int]


class Landmarks:
    """The landmarks of the classes that some choices make, given the choices that `makers` names for each."""

    def __init__(self, problem: Problem, makers: Mapping[Class, Members]) -> None:
        self._problem, self._makers = problem, makers
        found = self._propagated(list(makers))
        self._classes = sorted(found, key=lambda c: found[c].bit_count())
        place = {c: i for i, c in enumerate(self._classes)}
        renamed = {c: i for i, c in enumerate(makers)}
        order = [place[c] for c in renamed]
        self._of = {c: sum(1 << order[i] for i in _bits(mask)) for c, mask in found.items()}

    def _propagated(self, classes: Sequence[Class]) -> dict[Class, int]:
        """Return the landmarks of each class, bit i standing for the i-th class."""
        everything = (1 << len(classes)) - 1
        found = dict.fromkeys(classes, everything)
        own = {c: 1 << i for i, c in enumerate(classes)}
        # Operands come before their readers, so that two or three sweeps are enough.
        ordered = list(self._problem.derivable({n for members in self._makers.values() for n in members}))
        changed = True
        while changed:
            changed = False
            for current in ordered:
                reads = (self._problem.reads(n) for n in self._makers[current])
                needs = (reduce(or_, (found[c] for c in operands), 0) for operands in reads)
                mask = own[current] | reduce(and_, needs)
                changed |= mask != found[current]
                found[current] = mask
        return found

    def of(self, current: Class) -> frozenset[Class]:
        """Return the landmarks of a class, itself included."""
        return frozenset(self._classes[i] for i in _bits(self._of[current]))

    def of_choice(self, number: int) -> frozenset[Class]:
        """Return the landmarks of a choice."""
        return frozenset(self._classes[i] for i in _bits(self._mask(number)))

    def _mask(self, number: int) -> int:
        return reduce(or_, (self._of[c] for c in self._problem.reads(number)), 0)

    def nearest(self, members: Members) -> Iterator[tuple[Class, Members]]:
        """Yield landmarks of a class's choices, each with those of the choices that need it, without what follows.

        A landmark follows from another one if that needs it and all of its choices need that one as well.
        """
        masks = {n: self._mask(n) for n in members}
        left, told = reduce(or_, masks.values(), 0), list[tuple[int, frozenset[int]]]()
        while left:
            place = left.bit_length() - 1
            group = [n for n, mask in masks.items() if mask >> place & 1]
            if not any(below >> place & 1 and known.issuperset(group) for below, known in told):
                current = self._classes[place]
                yield current, group
                told.append((self._of[current], frozenset(group)))
                if len(group) == len(masks):  # all that this class needs follows
                    left &= ~self._of[current]
            left &= ~(1 << place)

    def needing(self, members: Members, current: Class) -> list[int]:
        """Return those of the choices of which a class is a landmark."""
        if current not in self._of:
            return []
        place = self._of[current].bit_length() - 1
        return [n for n in members if self._mask(n) >> place & 1]


def _bits(mask: int) -> Iterator[int]:
    """Yield the places of the bits that are set, the highest first."""
    while mask:
        place = mask.bit_length() - 1
        yield place
        mask &= ~(1 << place)
