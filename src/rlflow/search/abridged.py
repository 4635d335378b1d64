"""Deep graphs in short: three copies of a part that repeats, and how what was found there is carried over to all.

    embeddings -> layer 1 -> layer 2 -> ... -> layer 96 -> head          the graph
    embeddings -> layer 1 -> layer 2 ->        layer 96 -> head          in short, in which a search takes no longer

The short graph computes something else. It is searched, and each of its rewrites is repeated in the whole: one in what
leads up to the second copy as it is, one in the second copy in that and all that were left out, one behind it as it is.

    found = in_short(work, state, 550, search.improve)      # None: the graph has at most so many nodes, or no such part

Values are followed by their places. What value 7 of the second copy is in the tenth is known at first by the place of
the node that computes it, and then by what took the place of what.

Invariant: every step goes through the workspace's rewriter, which says whether it is right. Nothing is proven of the
whole graph by what is known of the short one, and a rewrite that does not fit at one copy is left out there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rlflow.ir.graph import Graph, make_graph
from rlflow.ir.node import Ref
from rlflow.method import Optimality, State, Workspace
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.rules.matching.sharing import rewriter_of
from rlflow.search.greedy import descend
from rlflow.search.locality import colours_in
from rlflow.search.seeding import some_rules
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import recorded_match, replay

Improve = Callable[[Workspace, State], State]
"""A search from a state in a workspace."""

_IN_SHORT = 0.5  # of what is left of the budget: the share of the search of the graph in short
_COPIES = 3  # that are kept: one has others like it on both sides
_PERIODS = 8  # lengths of the part that are tried, those first at which most nodes are like others
_NEAR = 1  # edges: nodes that have the same so near them may be at the same place of two copies


@dataclass(frozen=True)
class Abridged:
    """A graph in short, whose nodes have the numbers that they have in the whole.

    `second` are the nodes of the second copy, `behind` those of what comes after it. Each of `images` says for one copy
    of the whole what values there are in the place of values of the second copy, and of what that reads; the first is
    that of the second copy itself, the last that of the last copy but one, for all behind it.
    """

    graph: Graph
    second: frozenset[int]
    behind: frozenset[int]
    images: tuple[Mapping[Ref, Ref], ...]


def abridged(graph: Graph) -> Abridged | None:
    """Return a graph without most copies of the part that repeats most often; None if none repeats four times."""
    stretch = _longest_stretch(graph)
    return None if stretch is None else _cut(graph, stretch)


class _Stretch(NamedTuple):
    """A stretch of a graph's order: `copies` of a part of `length` nodes, the first from `start` on."""

    start: int
    length: int
    copies: int

    @property
    def spared(self) -> int:
        return (self.copies - _COPIES) * self.length


def _longest_stretch(graph: Graph) -> _Stretch | None:
    """Return the stretch of which most can be left out, the one with the smallest part of several."""
    of_node = colours_in(graph, _NEAR)
    colours = np.array([of_node[node] for node in graph.order], dtype=np.int64)
    crossing = _crossing(graph)
    found = [_stretch(colours, length, crossing) for length in _lengths(colours)]
    return max((s for s in found if s.spared > 0), key=lambda s: (s.spared, -s.length), default=None)


def _lengths(colours: np.ndarray) -> list[int]:
    """Return the distances from some node to the next of its colour at which most nodes have one of theirs."""
    by_colour = np.argsort(colours, kind="stable")
    is_same = colours[by_colour][1:] == colours[by_colour][:-1]
    distances = np.unique(np.diff(by_colour)[is_same]).tolist()
    alike = {length: int((colours[length:] == colours[:-length]).sum()) for length in distances}
    return nlargest(_PERIODS, alike, key=lambda length: (alike[length], -length))


def _stretch(colours: np.ndarray, length: int, crossing: np.ndarray) -> _Stretch:
    """Return the longest stretch of parts of a length, cut where the fewest values cross."""
    is_like = np.concatenate(([0], colours[length:] == colours[:-length], [0])).astype(np.int8)
    begins, ends = (np.flatnonzero(np.diff(is_like) == step) for step in (1, -1))
    longest = int(np.argmax(ends - begins)) if len(begins) else 0
    begin, end = (int(begins[longest]), int(ends[longest]) + length) if len(begins) else (0, 0)
    starts = range(begin, min(begin + length, end))
    start = min(starts, key=lambda place: (int(crossing[min(place + length, len(colours))]), place), default=0)
    return _Stretch(start, length, (end - start) // length)


def _crossing(graph: Graph) -> np.ndarray:
    """(N + 1,): how many values that are computed before each place of the order are read there or later."""
    place = {node: number for number, node in enumerate(graph.order)}
    steps = np.zeros(len(place) + 2, dtype=np.int64)
    for node, number in place.items():
        last = max((place.get(reader, -1) for reader in graph.consumers[node]), default=-1)
        if last > number:
            steps[number + 1] += 1
            steps[last + 1] -= 1
    return np.cumsum(steps)[:-1]


def _cut(graph: Graph, stretch: _Stretch) -> Abridged | None:
    """Leave out all copies of a stretch but the first, the second and the last; None if what is behind reads others."""
    order, (start, length, copies) = graph.order, stretch
    second, out, behind = start + length, start + 2 * length, start + (copies - 1) * length
    place = {identifier: number for number, identifier in enumerate(order[:behind])}

    def instead(ref: Ref | None) -> Ref | None:
        is_left_out = ref is not None and place.get(ref.node, 0) >= out
        return Ref(order[place[ref.node] - stretch.spared], ref.index) if ref and is_left_out else ref

    nodes = {identifier: node for identifier, node in graph.nodes.items() if place.get(identifier, 0) < out}
    for identifier in order[behind:]:
        node = nodes[identifier]
        inputs = tuple(map(instead, node.inputs))
        for before, after in zip(node.inputs, inputs, strict=True):
            if before is not None and after is not None and before != after:
                if place[after.node] < start or graph.type_of(before) != graph.type_of(after):
                    return None
        nodes[identifier] = node.with_inputs(inputs)
    outputs = [(ref, name) for ref, name in zip(graph.outputs, graph.output_names, strict=True) if ref.node in nodes]
    if not outputs:
        return None
    short = make_graph(nodes, graph.inputs, [ref for ref, _ in outputs], [name for _, name in outputs], graph.header)

    copied = [dict(zip(order[start:out], order[start + n * length :], strict=False)) for n in range(copies - 2)]
    fixed = {identifier: identifier for identifier in order[behind:]}
    kept = {Ref(i, index): Ref(i, index) for i in short.nodes if i not in fixed for index in _outputs(short, i)}
    images = [kept, *(_values(short, graph, nodes_there) for nodes_there in copied[1:-1])]
    images.append(kept | _values(short, graph, copied[-1] | fixed))
    return Abridged(short, frozenset(order[second:out]), frozenset(fixed), tuple(images))


def _values(short: Graph, graph: Graph, nodes: Mapping[int, int]) -> dict[Ref, Ref]:
    """Return what the values of some nodes, and those that they read, are in the whole graph, by where nodes are."""
    values = {Ref(i, index): Ref(there, index) for i, there in nodes.items() for index in _outputs(short, i)}
    waiting = list(nodes.items())
    while waiting:
        identifier, there = waiting.pop()
        for ref, other in zip(short.nodes[identifier].inputs, graph.nodes[there].inputs, strict=False):
            if ref is not None and other is not None and ref not in values:
                values[ref] = other
                if short.nodes[ref.node].constant:
                    waiting.append((ref.node, other.node))
    return values


def _outputs(graph: Graph, identifier: int) -> range:
    return range(len(graph.nodes[identifier].types))


def in_short(work: Workspace, state: State, whole_nodes: int | None, improve: Improve) -> State | None:
    """Return where a search of the state's graph in short leads the whole, and greedy search from there.

    None if the graph has at most `whole_nodes` nodes that run, or these are None, if no part of it repeats, or if the
    budget is spent. `improve` may do the same with the graph in short, in which another part may repeat. Where some
    rewrite could not be repeated, what greedy search finds by itself is returned if it is cheaper.
    """
    is_small = whole_nodes is None or len(state.graph.order) <= whole_nodes
    short = None if is_small or work.is_spent else abridged(state.graph)
    if short is None:
        return None
    ledger = replace(work.ledger.part(_IN_SHORT), milestones=[])
    inside = Workspace.begin(short.graph, work.rewriter, work.evaluator.cost_model, work.library_hash, ledger)
    way = inside.trajectory(inside.start, improve(inside, inside.start))
    carried, refused = carried_over(work, state, short, way)
    found = descend(work, _cheapest(carried.path(state)))
    if refused:
        found = _cheapest([found, descend(work, state)])
    if inside.optimality is not None:
        limited_by = inside.optimality.limited_by or "depth"
        work.optimality = Optimality(proven=False, bound_ms=0.0, gap_percent=100.0, limited_by=limited_by)
    return found


def _cheapest(states: Sequence[State]) -> State:
    """Return the cheapest state: a way that the budget ended may be at a dear step that would have paid later."""
    return min(states, key=lambda state: state.runtime_ms)


def carried_over(work: Workspace, state: State, short: Abridged, trajectory: Trajectory) -> tuple[State, int]:
    """Return the state after the rewrites of a trajectory of the short graph, repeated wherever they belong.

    `state` has the whole graph. Also returns how many repetitions did not fit, or came too late for the budget. What
    does not fit at first is tried again after the others.
    """
    carrying = _Carrying.begin(work, state, short, trajectory)
    left = [*carrying.first_time()]
    before = None
    while left and len(left) != before and not work.is_spent:
        before, left = len(left), [again for again in left if not carrying.repeated(*again)]
    return carrying.state, len(left)


class _Rewrite(NamedTuple):
    """A rewrite of the short graph: its match, what it added, and what it put in the place of what."""

    match: Match
    added: tuple[int, ...]
    substitution: Mapping[Ref, Ref]


@dataclass
class _Carrying:
    """Rewrites on their way into the whole graph; `now` says what took the place of a value of it."""

    work: Workspace
    short: Abridged
    trajectory: Trajectory
    rewriter: Rewriter
    state: State
    images: list[dict[Ref, Ref]]
    now: dict[Ref, Ref] = field(default_factory=dict)

    @classmethod
    def begin(cls, work: Workspace, state: State, short: Abridged, trajectory: Trajectory) -> _Carrying:
        rules = some_rules(work.rewriter, [step.rule for step in trajectory.steps])
        rewriter = rewriter_of(work.rewriter.matching, rules)
        return cls(work, short, trajectory, rewriter, state, list(map(dict, short.images)))

    def first_time(self) -> Iterator[tuple[_Rewrite, int]]:
        """Repeat each rewrite at each copy that it concerns, and yield it with those at which it does not fit."""
        every = range(len(self.images))
        copies_of = {i: every if i in self.short.second else every[-1:] for i in self.short.second | self.short.behind}
        graphs = replay(self.short.graph, self.trajectory, self.rewriter)
        for number, ((graph, _), step) in enumerate(zip(pairwise(graphs), self.trajectory.steps, strict=True), start=1):
            match = recorded_match(graph, self.rewriter, step, number)
            added, substitution = self.rewriter.edit(graph, match)
            rewrite = _Rewrite(match, tuple(added), substitution)
            copies = copies_of.get(match.roots[0].node, every[:1])
            copies_of |= dict.fromkeys(added, copies)
            for image in self.images:
                for old, new in substitution.items():
                    if old in image:
                        image.setdefault(new, image[old])
            for copy in copies:
                if not self.repeated(rewrite, copy):
                    yield rewrite, copy

    def repeated(self, rewrite: _Rewrite, copy: int) -> bool:
        """Repeat a rewrite at one copy; return False if it does not fit there, or the budget is spent."""
        place = None if self.work.is_spent else self._place(rewrite.match, self.images[copy])
        if place is None:
            return False
        location, match = place
        graph = self.state.graph
        added, substitution = self.rewriter.edit(graph, match)
        before, self.state = self.state, self.work.arrived(self.state, location, self.rewriter.apply(graph, match))
        self.state.leave_behind(before)
        for old, new in substitution.items():
            self.now[old] = new
            self.now.pop(new, None)
        if len(added) == len(rewrite.added):
            for here, there in zip(rewrite.added, added, strict=True):
                outputs = range(len(added[there].types))
                self.images[copy] |= {Ref(here, index): Ref(there, index) for index in outputs}
        return True

    def _place(self, wanted: Match, image: Mapping[Ref, Ref]) -> tuple[Location, Match] | None:
        """Return the match that replaces the same values of the same values, constants aside, with its location."""
        roots = [self._value(image, ref) for ref in wanted.roots]
        bound = {name: self._value(image, ref) for name, ref in wanted.bindings.items()}
        nodes, rule = self.state.graph.nodes, self.rewriter.rules.index(wanted.rule)
        for number, match in enumerate(self.rewriter.matches(self.state.graph)[rule]):
            if list(match.roots) == roots:
                if all(ref == bound[name] for name, ref in match.bindings.items() if not nodes[ref.node].constant):
                    return Location(self.work.rewriter.rules.index(wanted.rule), number), match
        return None

    def _value(self, image: Mapping[Ref, Ref], ref: Ref) -> Ref | None:
        """Return what a value of the short graph is now at a copy; None if that is not known."""
        value = image.get(ref)
        while value in self.now:
            value = self.now[value]
        return value
