"""Depth-first order of an acyclic graph, operands first, and how an edit moves it.

The nodes that a walk comes to through a node stand right before it, in one piece that ends with it. So an edit only
concerns a piece that has all changed nodes in it, and of that only what does not move as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

Operands = Callable[[int], Sequence[int]]
"""Of a node those that it needs, from left to right."""

_WAITING, _DONE, _GONE = 0, 1, 2


class CycleError(Exception):
    """The walk came back to `node` before it was done with it."""

    def __init__(self, node: int) -> None:
        super().__init__(node)
        self.node = node


Pieces = Sequence[range | list[int]]
"""An order by where it comes from: places of the order before, or nodes that were walked anew."""


@dataclass(frozen=True, eq=False, slots=True)
class DepthFirst:
    """`nodes` in the order of a walk from the `roots`. `begins` (len(nodes),) int32: the place where the piece begins
    that ends with the node there. `places` (size,) int32: of each node's number its place among `nodes`, -1 where it
    has none. `pieces` tell what it has of the order that it was updated from.
    """

    roots: tuple[int, ...]
    nodes: tuple[int, ...]
    begins: np.ndarray
    places: np.ndarray
    pieces: Pieces = ()


def depth_first(roots: Sequence[int], operands: Operands, size: int) -> DepthFirst:
    """The walk from one root after the other; node numbers are below `size`. `CycleError` if there is one."""
    nothing = DepthFirst((), (), np.zeros(0, np.int32), np.full(size, -1, np.int32))
    return replace(_from_roots(nothing, (), (), roots, operands), pieces=())


def updated(
    before: DepthFirst,
    changed: Iterable[int],
    removed: Iterable[int],
    roots: Sequence[int],
    operands: Operands,
    size: int,
) -> DepthFirst:
    """The order after the `changed` nodes got other operands and others were removed. `CycleError` if there is one."""
    places = np.full(size, -1, np.int32)
    places[: len(before.places)] = before.places
    before = replace(before, places=places, pieces=[range(len(before.nodes))])
    gone = [place for place in places[list(removed)].tolist() if place >= 0]
    affected = [*gone, *(place for place in places[list(changed)].tolist() if place >= 0)]
    if before.roots != tuple(roots):
        return _from_roots(before, gone, affected, roots, operands)
    if not affected:
        return before
    pieces = max(affected) + np.flatnonzero(before.begins[max(affected) :] <= min(affected))
    root = next((place for place in pieces.tolist() if place not in gone), None)
    if root is not None:
        walk = _Walk(before, operands, int(before.begins[root]), root, gone, affected)
        if walk.come_to(before.nodes[root]) and walk.is_complete():
            return _spliced(before, walk, gone, roots)
    return _from_roots(before, gone, affected, roots, operands)


def _from_roots(
    before: DepthFirst, gone: Collection[int], affected: Collection[int], roots: Sequence[int], operands: Operands
) -> DepthFirst:
    walk = _Walk(before, operands, 0, len(before.nodes) - 1, gone, affected)
    for root in roots:
        walk.come_to(root)
    return _spliced(before, walk, gone, roots)


def spliced(pieces: Pieces, before: np.ndarray, made: Callable[[list[int]], ArrayLike]) -> np.ndarray:
    """What goes along an order, (nodes before,) -> (nodes,): `made` for the nodes that were walked anew."""
    parts = (before[p.start : p.stop] if isinstance(p, range) else np.array(made(p), before.dtype) for p in pieces)
    return np.concatenate((before[:0], *parts))


def _spliced(before: DepthFirst, walk: _Walk, gone: Collection[int], roots: Sequence[int]) -> DepthFirst:
    """The order with what was walked in place of the piece."""
    shift = len(walk.nodes) - (walk.end - walk.begin)
    places = before.places.copy()
    places[before.places >= walk.end] += shift
    at = walk.begin
    for piece in walk.pieces:
        if isinstance(piece, range) and piece.start != at:
            places[(before.places >= piece.start) & (before.places < piece.stop)] += at - piece.start
        at += len(piece)
    places[[before.nodes[place] for place in gone]] = -1
    places[list(walk.places)] = list(walk.places.values())
    after = before.begins[walk.end :]
    walked = np.array(walk.begins, np.int32)
    begins = (before.begins[: walk.begin], walked, np.where(after >= walk.end, after + np.int32(shift), after))
    nodes = (*before.nodes[: walk.begin], *walk.nodes, *before.nodes[walk.end :])
    pieces = [range(walk.begin), *walk.pieces, range(walk.end, len(before.nodes))]
    return DepthFirst(tuple(roots), nodes, np.concatenate(begins), places, pieces)


class _Walk:
    """A walk through the piece that ends with the node at place `root`: what stands before it is done. Pieces in it
    that the edit left alone are taken whole where all before them is done and nothing after, as it was when they were
    first walked.
    """

    def __init__(
        self,
        before: DepthFirst,
        operands: Operands,
        begin: int,
        root: int,
        gone: Iterable[int],
        affected: Collection[int],
    ) -> None:
        self.before, self.operands, self.begin, self.end, self.affected = before, operands, begin, root + 1, affected
        self.nodes: list[int] = []
        self.begins: list[int] = []
        self.places: dict[int, int] = {}  # of the nodes that were walked one by one; -1 until their operands are done
        self.pieces: list[range | list[int]] = []
        self.state = bytearray(self.end - begin)
        for place in gone:
            self.state[place - begin] = _GONE

    def come_to(self, root: int) -> bool:
        """Whether all that this walk comes to is new, of the piece, or before it."""
        place_before = self.before.places.data
        stack, starts = [root], list[int]()
        while stack:
            node = stack.pop()
            if node < 0:  # all operands of ~node are done
                self._finish(~node, starts.pop(), place_before[~node])
                continue
            place = place_before[node]
            if place >= self.end:
                return False
            if node in self.places:
                if self.places[node] < 0:
                    raise CycleError(node)
            elif not 0 <= place < self.begin and not (place >= 0 and self._is_done_or_whole(place)):
                self.places[node] = -1
                starts.append(self.begin + len(self.nodes))
                stack.append(~node)
                stack.extend(reversed(self.operands(node)))
        return True

    def is_complete(self) -> bool:
        """Whether it came to all of the piece but what the edit removed."""
        return _WAITING not in self.state

    def _finish(self, node: int, start: int, place_before: int) -> None:
        if place_before >= 0:
            self.state[place_before - self.begin] = _DONE
        if self.pieces and isinstance(self.pieces[-1], list):
            self.pieces[-1].append(node)
        else:
            self.pieces.append([node])
        self.places[node] = self.begin + len(self.nodes)
        self.nodes.append(node)
        self.begins.append(start)

    def _is_done_or_whole(self, place: int) -> bool:
        """Whether the node that was at this place is done, now if its piece can be taken whole."""
        if self.state[place - self.begin] == _DONE:
            return True
        start = int(self.before.begins[place])
        first, end = start - self.begin, place + 1 - self.begin
        if (
            _WAITING in self.state[:first]
            or _DONE in self.state[first:]
            or any(start <= p <= place for p in self.affected)
        ):
            return False
        move = self.begin + len(self.nodes) - start
        self.nodes += self.before.nodes[start : place + 1]
        self.begins += (self.before.begins[start : place + 1] + move).tolist()
        self.state[first:end] = bytes([_DONE]) * (end - first)
        self.pieces.append(range(start, place + 1))
        return True
