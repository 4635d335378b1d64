"""A solution of an e-graph as rewrites, one after another, of the graph that the e-graph began with.

An e-graph knows what is equal, and by which uses of rules. Every value of a graph on the way is one of its e-nodes. In

    y = Gather(MatMul(x, w))       whose class has also     y' = MatMul(x', w),  x' = Gather(x)

the value y becomes the chosen e-node y' by a use of a rule that leads from one to the other. Where a use starts from
other forms of the operands than the graph has, these become what it needs first, and so on. Readers come before their
operands, so that what a reader needs of an operand is still there when its turn comes; where that was the wrong order,
what could not be made is made first in another attempt. Of a value that costs nothing, the goal is the input or the
constant that it is equal to: T(T(x)) becomes x.

One thing no rule does: equal applications are one in an e-graph, but two in a graph that computes the same value twice.
They become one as soon as a rewrite makes either of them anew, and stay two where nothing does. The solution then costs
less than what was realised, which is told.

Invariants: every step goes through the rewriter, so that whatever comes out is a right trajectory, and what could not
be reached is told. Nothing is drawn at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rlflow.egraph.annotated_graph import AnnotatedGraph, Step
from rlflow.egraph.derivations import Derivations
from rlflow.egraph.egraph import ClassId, ENodeId
from rlflow.egraph.model_egraph import ModelEGraph, Use
from rlflow.egraph.rebuilding import given_form
from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT, Ref
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location
from rlflow.rules.matching.sharing import SharingRewriter


@dataclass(frozen=True)
class Realisation:
    """The steps that were taken, each with the graph after it.

    `missing` are chosen applications to which no rewrites were found, although the graph has a value of their class: an
    extraction may forbid them and choose again. `superfluous` are values that `last` computes for nothing, whatever is
    chosen: an input or a constant is equal to them, or another value that is computed.
    """

    steps: tuple[Step, ...]
    last: Graph
    missing: tuple[ENodeId, ...]
    superfluous: tuple[Ref, ...] = ()


_ATTEMPTS = 6
_TURNS = 4
"""How often a class gets its turn in one attempt: other values may need it in another form in between."""

_MAX_DEPTH = 6
"""How deep needs of needs go."""

_MAX_TRIES = 400
"""Uses that are tried in one turn."""


def _never() -> bool:
    return False


def realise(
    start: Graph,
    egraph: ModelEGraph,
    chosen: Mapping[ClassId, ENodeId],
    rewriter: SharingRewriter,
    is_over: Callable[[], bool] = _never,
) -> Realisation:
    """Rewrite `start`, with which the e-graph began, until each value is the chosen application of its class.

    When `is_over` says that the time is, what has not been made yet is missing.
    """
    forms = {c: given_form(egraph, c) for c in egraph.classes()}
    given = {c: form for c, form in forms.items() if form is not None}
    made = {egraph.find(c): _output_in(egraph, application, c) for c, application in chosen.items()}
    wanted = given | made
    derivations = Derivations(egraph, wanted)
    first: tuple[ClassId, ...] = ()
    best: tuple[AnnotatedGraph, tuple[ClassId, ...]] | None = None
    for _ in range(_ATTEMPTS):
        place, dead_ends = _Attempt(egraph, derivations, wanted, rewriter, is_over, first).run(
            AnnotatedGraph.begin(start, egraph)
        )
        failed = tuple(dict.fromkeys(map(egraph.find, dead_ends)))
        if best is None or len(failed) < len(best[1]):
            best = place, failed
        if not failed or is_over():
            break
        first = tuple(dict.fromkeys((*failed, *first)))
        derivations.avoid(dead_ends)
    assert best is not None
    place, failed = best
    missing = tuple(egraph.application(made[member]) for member in failed if member in made)
    return Realisation(place.steps, place.graph, missing, tuple(_superfluous(place, given)))


def _superfluous(place: AnnotatedGraph, given: Collection[ClassId]) -> Iterator[Ref]:
    """Yield the values that are computed although they are given, or for a second time."""
    seen: set[ClassId] = set()
    for value in place.values():
        current, node = place.class_of(value), place.graph.nodes[value.node]
        if not node.constant and node.op != INPUT and (current in given or current in seen):
            yield value
        seen.add(current)


def _output_in(egraph: ModelEGraph, application: ENodeId, member: ClassId) -> ENodeId:
    """Return the output of an application that is in this class."""
    outputs = egraph.outputs_of(egraph.application(application))
    return next(number for number in outputs if egraph.find(number) == egraph.find(member))


_Busy = frozenset[tuple[ENodeId, ENodeId]]
"""What is being turned into what, so that no need waits for itself."""


@dataclass
class _Attempt:
    """One attempt; values of the classes `first` have their turn before all others."""

    egraph: ModelEGraph
    derivations: Derivations
    wanted: Mapping[ClassId, ENodeId]
    rewriter: SharingRewriter
    is_over: Callable[[], bool]
    first: Sequence[ClassId]
    tries: int = 0
    turns: Counter[ClassId] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._rules = {rule.id: number for number, rule in enumerate(self.rewriter.rules)}

    def run(self, place: AnnotatedGraph) -> tuple[AnnotatedGraph, tuple[ENodeId, ...]]:
        """Return the last graph, and the e-nodes that values of it are but should not be."""
        failed: dict[ClassId, None] = {}
        while not self.is_over() and (value := self._next(place, failed)) is not None:
            member = place.class_of(value)
            self.tries = 0
            self.turns[member] += 1
            after = self._become(place, value, self.wanted[member], _MAX_DEPTH, frozenset())
            if after is None or self.turns[member] > _TURNS:
                failed[member] = None
            place = after or place
        return place, tuple(dict.fromkeys(map(place.member, self._open(place))))

    def _next(self, place: AnnotatedGraph, failed: Mapping[ClassId, None]) -> Ref | None:
        """Return the value whose turn it is."""
        values = [value for value in self._open(place) if place.class_of(value) not in failed]
        return next((v for v in values if place.class_of(v) in self.first), values[0] if values else None)

    def _open(self, place: AnnotatedGraph) -> Iterator[Ref]:
        """Yield the values that are not what is wanted, readers before operands."""
        for value in place.values():
            wanted = self.wanted.get(place.class_of(value))
            if wanted is not None and not self._is(place.member(value), wanted):
                yield value

    def _is(self, member: ENodeId, wanted: ENodeId) -> bool:
        """Tell if an e-node is the wanted one of its class; of a constant class, any constant is."""
        return member == wanted or self.egraph.node(member).node.constant

    def _become(
        self, place: AnnotatedGraph, value: Ref, wanted: ENodeId, depth: int, busy: _Busy
    ) -> AnnotatedGraph | None:
        """Turn a value into the wanted e-node of its class; None if no uses lead there."""
        value = place.value(value)
        current = place.member(value)
        if self._is(current, wanted):
            return place
        lengths = self.derivations.lengths(wanted)
        if current not in lengths or (current, wanted) in busy or not depth:
            return None
        waiting = busy | {(current, wanted)}
        for use in self._onwards(current, lengths):
            if self.tries >= _MAX_TRIES or self.is_over():
                return None
            after = self._used(place, value, use, depth - 1, waiting)
            # The use may have led to an operand further up, which may be the same e-node once more.
            after = after and self._become(after, value, wanted, depth, busy)
            if after is not None:
                return after
        return None

    def _onwards(self, current: ENodeId, lengths: Mapping[ENodeId, int]) -> list[Use]:
        """Return the uses that bring an e-node nearer to the one that `lengths` lead to, the best first."""
        nearer: list[tuple[int, int, int, int, Use]] = []
        for use in self.derivations.uses(current):
            ends = self.derivations.ends(use, current)
            length = min(0 if end is None else lengths.get(end, lengths[current]) for end in ends)
            if length < lengths[current]:
                length += self.derivations.detour(use)
                nearer.append((length, len(use.roots), len(use.source), len(nearer), use))
        return [use for *_, use in sorted(nearer, key=lambda entry: entry[:-1])]

    def _used(self, place: AnnotatedGraph, value: Ref, use: Use, depth: int, busy: _Busy) -> AnnotatedGraph | None:
        """Use a rule at a value, once its operands and the other roots are what it needs; None if that cannot be."""
        self.tries += 1
        roots = [value]
        for number in dict.fromkeys(map(self.egraph.find_node, use.roots)):
            if number != place.member(value):
                other = self._somewhere(place, number)
                after = other and self._become(place, other, number, depth, busy)
                if other is None or after is None:
                    return None
                place = after
                roots.append(other)

        inner = [self.egraph.application(number) for number in use.source]
        for prepare in (self._with_inner, self._with_one_value_each):
            for root in roots:
                after = prepare(place, root, inner, depth, busy)
                if after is None:
                    return None
                place = after
            found = self._match(place, [place.value(root) for root in roots], use)
            if found is not None:
                return place.taken(self.rewriter, *found, use.made)
        return None

    def _somewhere(self, place: AnnotatedGraph, number: ENodeId) -> Ref | None:
        """Return a value of the class of an e-node, one that is this e-node if there is any."""
        there = [value for value in place.values() if place.class_of(value) == self.egraph.find(number)]
        return min(there, key=lambda value: place.member(value) != number, default=None)

    def _with_inner(
        self, place: AnnotatedGraph, value: Ref, inner: Sequence[ENodeId], depth: int, busy: _Busy
    ) -> AnnotatedGraph | None:
        """Turn the operands of a value, and theirs, into those of the applications `inner` that are of their class."""
        value = place.value(value)
        # What is read may be of the same class as its reader, as x is in x + 0.
        inner = [application for application in inner if application != place.applications[value.node]]
        for operand in map(place.value, place.operands(value)):
            outputs = (number for application in inner for number in self.egraph.outputs_of(application))
            wanted = [number for number in outputs if self.egraph.find(number) == place.class_of(operand)]
            if wanted and place.runs(operand):
                current = place.member(operand)
                after = self._become(place, operand, current if current in wanted else wanted[0], depth, busy)
                after = after and self._with_inner(after, operand, inner, depth, busy)
                if after is None:
                    return None
                place = after
        return place

    def _with_one_value_each(
        self, place: AnnotatedGraph, value: Ref, inner: Sequence[ENodeId], depth: int, busy: _Busy
    ) -> AnnotatedGraph | None:
        """Make one of several values of a class that are read inside: a variable stands for one value."""
        firsts: dict[ClassId, Ref] = {}
        for operand in self._inside(place, place.value(value), inner):
            one = firsts.setdefault(place.class_of(operand), operand)
            after = self._one(place, one, operand, depth, busy)
            if after is None:
                return None
            place = after
        return place

    def _inside(self, place: AnnotatedGraph, value: Ref, inner: Sequence[ENodeId]) -> list[Ref]:
        """Return the operands of a value and of those of its operands that are applications of `inner`."""
        operands = place.operands(value)
        deeper = (ref for ref in operands if place.applications[ref.node] in inner)
        return [*operands, *(ref for operand in deeper for ref in self._inside(place, operand, inner))]

    def _one(self, place: AnnotatedGraph, one: Ref, other: Ref, depth: int, busy: _Busy) -> AnnotatedGraph | None:
        """Turn two values of a class into one, operands included; None if that cannot be."""
        one, other = place.value(one), place.value(other)
        if one == other:
            return place
        after = self._become(place, other, place.member(one), depth, busy)
        after = after or self._become(place, one, place.member(other), depth, busy)
        if after is None:
            return None
        operands = [after.operands(after.value(ref)) for ref in (one, other)]
        if [after.class_of(ref) for ref in operands[0]] != [after.class_of(ref) for ref in operands[1]]:
            return None
        for first, second in zip(*operands, strict=True):
            after = self._one(after, first, second, depth, busy)
            if after is None:
                return None
        return after

    def _match(self, place: AnnotatedGraph, roots: Sequence[Ref], use: Use) -> tuple[Location, Match] | None:
        """Return the match that is a use at these roots, with its location; None if the rewriter does not find it."""
        rule = self._rules.get(use.rule.id)
        if rule is None:
            return None
        for number, match in enumerate(self.rewriter.matches(place.graph)[rule]):
            if set(roots) == set(match.roots):
                bound = ((ref, use.variables[name]) for name, ref in match.bindings.items() if place.runs(ref))
                if all(place.class_of(ref) == self.egraph.find(member) for ref, member in bound):
                    return Location(rule, number), match
        return None
