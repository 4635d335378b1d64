"""Depth-first order of an acyclic graph, operands first, and how an edit moves it.

A walk from the roots writes a node down as soon as all its operands have been written. All nodes that it reached
through a node therefore stand right before that node, in one contiguous *piece* that ends with it. In the graph
d(b(a), c(a)) the order from d is

    place   0  1  2  3
    node    a  b  c  d
    begins  0  0  2  0

The piece of b is [a, b]; that of c is [c] alone, since a had been written before the walk reached c.

Invariant: `nodes[begins[i] : i + 1]` is the piece of `nodes[i]`, and two pieces overlap only if one contains the other.
So an edit concerns only the smallest piece that contains all changed nodes. `updated` walks this piece again; what
stands before and behind it is kept, and pieces inside it that the edit left alone are moved as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

Operands = Callable[[int], Sequence[int]]
"""Gives the nodes that a node needs, from left to right."""

_PIECES = 16  # that are tried before the whole graph is walked again

_WAITING, _DONE, _GONE = 0, 1, 2


class CycleError(Exception):
    """Raised when a walk comes back to `node` before it is done with it."""

    def __init__(self, node: int) -> None:
        super().__init__(node)
        self.node = node


Pieces = Sequence[range | list[int]]
"""The parts of an order by their origin: a range of places in the order before, or nodes that were walked anew."""


@dataclass(frozen=True, eq=False, slots=True)
class DepthFirst:
    """The order of a walk from the `roots`, with an index of its pieces.

    - `nodes`: node numbers, operands first.
    - `begins`, (len(nodes),) int32: the place where the piece begins that ends with the node there.
    - `places`, (size,) int32: the place of each node number in `nodes`, -1 for numbers that have none.
    - `pieces`: the parts of the order by their origin in the order that this one was updated from.
    """

    roots: tuple[int, ...]
    nodes: tuple[int, ...]
    begins: np.ndarray
    places: np.ndarray
    pieces: Pieces = ()


def depth_first(roots: Sequence[int], operands: Operands, size: int) -> DepthFirst:
    """Walk from one root after the other; node numbers are below `size`. Raises `CycleError` if there is a cycle."""
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
    """Return the order after `changed` nodes got other operands and others were `removed`; `CycleError` on a cycle."""
    places = np.full(size, -1, np.int32)
    places[: len(before.places)] = before.places
    before = replace(before, places=places, pieces=[range(len(before.nodes))])

    gone = [place for place in places[list(removed)].tolist() if place >= 0]
    affected = [*gone, *(place for place in places[list(changed)].tolist() if place >= 0)]
    if before.roots != tuple(roots):
        return _from_roots(before, gone, affected, roots, operands)
    if not affected:
        return before

    # Pieces that contain all affected places, the smallest first: each ends at or behind the last of these places and
    # begins at or before the first.
    first, last = min(affected), max(affected)
    enclosing = last + np.flatnonzero(before.begins[last:] <= first)
    for root in [place for place in enclosing[:_PIECES].tolist() if place not in gone]:
        walk = _Walk(before, operands, int(before.begins[root]), root, gone, affected)
        # The piece may now need a node from behind it, or no longer need one that others still do: a larger may not.
        if walk.visit(before.nodes[root]) and walk.is_complete():
            return _spliced(before, walk, gone, roots)
    return _from_roots(before, gone, affected, roots, operands)


def _from_roots(
    before: DepthFirst, gone: Collection[int], affected: Collection[int], roots: Sequence[int], operands: Operands
) -> DepthFirst:
    """Walk the whole graph again, which still moves untouched pieces as a whole."""
    walk = _Walk(before, operands, 0, len(before.nodes) - 1, gone, affected)
    for root in roots:
        walk.visit(root)
    return _spliced(before, walk, gone, roots)


def spliced(pieces: Pieces, before: np.ndarray, made: Callable[[list[int]], ArrayLike]) -> np.ndarray:
    """Rearrange an array along an order, (nodes before,) -> (nodes,); `made` gives entries of nodes walked anew."""
    parts = (before[p.start : p.stop] if isinstance(p, range) else np.array(made(p), before.dtype) for p in pieces)
    return np.concatenate((before[:0], *parts))  # the empty part keeps the dtype where there are no pieces


def _spliced(before: DepthFirst, walk: _Walk, gone: Collection[int], roots: Sequence[int]) -> DepthFirst:
    """Return the order with what was walked in place of the piece."""
    shift = len(walk.nodes) - (walk.end - walk.begin)

    places = before.places.copy()
    places[before.places >= walk.end] += shift
    # Pieces that were taken whole move by the distance between their old place and `at`, their new one.
    at = walk.begin
    for piece in walk.pieces:
        if isinstance(piece, range) and piece.start != at:
            places[(before.places >= piece.start) & (before.places < piece.stop)] += at - piece.start
        at += len(piece)
    places[[before.nodes[place] for place in gone]] = -1
    places[list(walk.places)] = list(walk.places.values())

    # Behind the walked piece, pieces that begin before it (and so contain it) still begin there.
    walked = np.array(walk.begins, np.int32)
    behind = before.begins[walk.end :]
    behind = np.where(behind >= walk.end, behind + np.int32(shift), behind)
    begins = (before.begins[: walk.begin], walked, behind)

    nodes = (*before.nodes[: walk.begin], *walk.nodes, *before.nodes[walk.end :])
    pieces = [range(walk.begin), *walk.pieces, range(walk.end, len(before.nodes))]
    return DepthFirst(tuple(roots), nodes, np.concatenate(begins), places, pieces)


class _Walk:
    """A walk through the piece from place `begin` to place `root`; everything before `begin` counts as done.

    A smaller piece that the edit left alone is taken whole if, when the walk reaches it, all places before it are done
    and none of its own: that is how things stood when it was first walked, so that a walk would write the same again.
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

    def visit(self, root: int) -> bool:
        """Walk from `root`; return False if that needs a node from behind the piece."""
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
                # ~node below its operands marks the moment at which all of them are done.
                self.places[node] = -1
                starts.append(self.begin + len(self.nodes))
                stack.append(~node)
                stack.extend(reversed(self.operands(node)))
        return True

    def is_complete(self) -> bool:
        """Return True if the walk reached everything in the piece except what the edit removed."""
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
        """Return True if the node from this place is done, or becomes so because its piece can be taken whole."""
        if self.state[place - self.begin] == _DONE:
            return True

        start = int(self.before.begins[place])
        first, end = start - self.begin, place + 1 - self.begin
        reached_in_another_order = _WAITING in self.state[:first] or _DONE in self.state[first:]
        if reached_in_another_order or any(start <= p <= place for p in self.affected):
            return False

        move = self.begin + len(self.nodes) - start
        self.nodes += self.before.nodes[start : place + 1]
        self.begins += (self.before.begins[start : place + 1] + move).tolist()
        self.state[first:end] = bytes([_DONE]) * (end - first)
        self.pieces.append(range(start, place + 1))
        return True
