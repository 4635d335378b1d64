"""Disjoint sets of numbers that only ever become one another (Tarjan, Journal of the ACM 22, 1975)."""

from __future__ import annotations


class UnionFind:
    """The numbers from 0 on, each in a set of its own until two sets are joined.

    A set is called by the least number in it, so that names depend on nothing but which numbers are together.
    """

    def __init__(self) -> None:
        self._parents: list[int] = []

    def find(self, member: int) -> int:
        """Return the name of the set that this number has become part of."""
        parents = self._parents
        while parents[member] != member:
            parents[member] = member = parents[parents[member]]  # halves the path, so that later searches are shorter
        return member

    def extend(self, count: int) -> None:
        """Add the next numbers, so many."""
        self._parents.extend(range(len(self._parents), len(self._parents) + count))

    def join(self, one: int, other: int) -> None:
        """Make two sets one, given their names in ascending order."""
        self._parents[other] = one
