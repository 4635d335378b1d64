"""An e-graph: many expressions at once, with those that are known to be equal in one class (Willsey et al., POPL 2021).

An *application* is an operator on classes of values. Each of its outputs is an *e-node*, a member of a class:

    y = Relu(Split(x)[1])      application 1: Split on class 0, e-nodes 1 and 2 in classes 1 and 2
                               application 3: Relu on class 2, e-node 3 in class 3

E-nodes are numbered in the order of insertion and keep their numbers; an application is called by its first e-node, and
a class by the first of its e-nodes. Attributes, types, payload and names of an e-node stay in its `ir.Node`, whose own
operands mean nothing here. Opaque nodes and inputs are applications like any other, but two of them are never the same:
an opaque node may draw random numbers.

    egraph.unite(one, other)                    # an equality that a rule gives
    egraph.rebuild()                            # and those that follow by congruence

What is known of the value of a class is its *fact*. An `Analysis` makes the facts of an application from those of its
operands, and merges them where classes become one, as in egg.

Invariants, after `rebuild`: congruent applications (the same node over the same classes) are one, under the lowest of
their numbers; the fact of a class holds what the facts of all its e-nodes say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from rlflow.egraph.union_find import UnionFind
from rlflow.errors import RuleError
from rlflow.ir.node import INPUT, WEIGHT, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry

ENodeId = int
ClassId = int
Fact = TypeVar("Fact")


class ENode(NamedTuple):
    """One output of an application; `children` are the classes of the operands that are not left out, in order."""

    node: Node
    output: int
    children: tuple[ClassId, ...]


class Target(NamedTuple):
    """A rule's target, typed for one place, operands first.

    An operand of a node, and an output, is a `Ref` that counts the rule's variables first and then these nodes.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[Ref, ...]


class Analysis(Protocol[Fact]):
    """The facts about values that an e-graph keeps for its classes."""

    def make(self, node: Node, operands: Sequence[Fact]) -> tuple[Node, Sequence[Fact]]:
        """Return the node as it is over operands with these facts, and the fact of each of its outputs."""

    def merge(self, one: Fact, other: Fact) -> Fact:
        """Return the fact of a value of which both are true: `one` itself if the other adds nothing to it.

        `RuleError` if no value has both.
        """


class EGraph(Generic[Fact]):
    """An e-graph whose classes have facts of one analysis.

    `unite` leaves congruence for later; `rebuild` catches up. `filtered` has the applications that do not count any
    more and are members of no class, each with the one that stands in for it, if any.
    """

    def __init__(self, analysis: Analysis[Fact]) -> None:
        self.filtered: dict[ENodeId, ENodeId | None] = {}
        self._analysis = analysis
        # By e-node; the outputs of one application share their node, their first e-node and their children.
        self._nodes: list[Node] = []
        self._firsts: list[ENodeId] = []
        self._children: list[tuple[ClassId, ...]] = []
        self._aliases = UnionFind()
        # By class, under its name.
        self._classes = UnionFind()
        self._facts: list[Fact] = []
        self._members: list[list[ENodeId]] = []
        self._readers: list[list[ENodeId]] = []
        self._known: dict[tuple[int, tuple[ClassId, ...]], ENodeId] = {}
        self._size = 0
        self._stale: list[ENodeId] = []
        self._touched: dict[ClassId, None] = {}

    def __len__(self) -> int:
        """Count the e-nodes that are members of classes, leaves included."""
        return self._size

    @property
    def next_number(self) -> ENodeId:
        """The number of the next e-node."""
        return len(self._nodes)

    def find(self, member: ClassId) -> ClassId:
        """Return the class that this one has become part of; an e-node's number stands for the class of that e-node."""
        return self._classes.find(member)

    def find_node(self, number: ENodeId) -> ENodeId:
        """Return the e-node that this one has become by congruence."""
        first = self._firsts[number]
        return self._aliases.find(first) + number - first

    def application(self, number: ENodeId) -> ENodeId:
        """Return the application whose output the e-node is, called by its first e-node."""
        return self._aliases.find(self._firsts[number])

    def outputs_of(self, application: ENodeId) -> range:
        """Return the e-nodes that are outputs of an application."""
        return range(application, application + len(self._nodes[application].types))

    def node(self, number: ENodeId) -> ENode:
        """Return what an e-node is, over the classes as they are now."""
        first = self.application(number)
        return ENode(self._nodes[first], number - self._firsts[number], self.children(first))

    def children(self, application: ENodeId) -> tuple[ClassId, ...]:
        """Return the classes that an application reads, operand by operand."""
        return tuple(map(self._classes.find, self._children[application]))

    def classes(self) -> list[ClassId]:
        """Return all classes that have a member, in the order of their numbers."""
        return [name for name, members in enumerate(self._members) if members]

    def applications(self, since: ENodeId = 0) -> Iterator[ENodeId]:
        """Yield all applications that count, from this number on, in ascending order."""
        for number, first in enumerate(self._firsts[since:], start=since):
            if number == first == self._aliases.find(first) and number not in self.filtered:
                yield number

    def members(self, member: ClassId) -> Sequence[ENodeId]:
        """Return the e-nodes of a class, in the order of their numbers."""
        return self._members[self.find(member)]

    def readers(self, member: ClassId) -> Iterable[ENodeId]:
        """Return the applications that read a class, each once and in the order of their numbers."""
        return sorted({self._aliases.find(reader) for reader in self._readers[self.find(member)]})

    def fact(self, member: ClassId) -> Fact:
        """Return what is known of the value of a class."""
        return self._facts[self._classes.find(member)]

    def insert(self, node: Node, operands: Sequence[ClassId]) -> ENodeId:
        """Return the application of a node to these classes, a new one unless it is known."""
        children = tuple(map(self._classes.find, operands))
        key = _key(node, children)
        known = None if key is None else self._known.get(key)
        if known is not None:
            return self._aliases.find(known)
        first = self._append(node, children)
        if key is not None:
            self._known[key] = first
        return first

    def place(self, target: Target, variables: Sequence[ClassId]) -> tuple[list[ENodeId], list[ClassId]]:
        """Insert a target over these classes; return its applications and the classes of its outputs."""
        # Numbers of classes and of applications, of which classes and e-nodes of further outputs follow.
        placed = list(variables)
        for node in target.nodes:
            operands = [placed[ref.node] + ref.index for ref in node.inputs if ref is not None]
            placed.append(self.insert(node, operands))
        outputs = [self.find(placed[ref.node] + ref.index) for ref in target.outputs]
        return placed[len(variables) :], outputs

    def known(self, node: Node, operands: Sequence[ClassId]) -> ENodeId | None:
        """Return the application of a node to these classes, None if there is none or it is congruent to no other."""
        key = _key(node, tuple(map(self._classes.find, operands)))
        first = None if key is None else self._known.get(key)
        return None if first is None else self._aliases.find(first)

    def unite(self, one: ClassId, other: ClassId) -> bool:
        """Make two classes one, return True if they were not; `RuleError` if their facts contradict each other."""
        one, other = sorted((self.find(one), self.find(other)))
        if one == other:
            return False
        before, merged = self._facts[one], self._analysis.merge(self._facts[one], self._facts[other])
        # What reads the class that keeps its name is known under the right key, but may follow from the new fact.
        self._stale += self._readers[other] + (self._readers[one] if merged is not before else [])
        self._classes.join(one, other)
        self._facts[one] = merged
        self._members[one] = sorted(self._members[one] + self._members[other])
        self._readers[one] += self._readers[other]
        self._members[other], self._readers[other] = [], []
        self._touched[one] = None
        return True

    def rebuild(self) -> tuple[ClassId, ...]:
        """Close the e-graph under congruence, and return the classes that have changed since the last time.

        A class has changed if it has got a new member or a new fact.
        """
        while self._stale:
            stale, self._stale = self._stale, []
            for application in dict.fromkeys(stale):
                self._refresh(self._aliases.find(application))
        touched = sorted({self.find(member) for member in self._touched})
        self._touched.clear()
        return tuple(touched)

    def filter(self, application: ENodeId, instead: ENodeId | None = None) -> None:
        """Take the outputs of an application out of their classes for good, without forgetting that it is known.

        `instead` is an application of a lower number that gives the same values at the same price.
        """
        self.filtered[application] = instead
        self._withdraw(application)

    def standing(self, application: ENodeId) -> ENodeId | None:
        """Return the application itself if it counts, or what stands in for it; None if nothing does."""
        standing: ENodeId | None = self.application(application)
        while standing is not None and standing in self.filtered:
            instead = self.filtered[standing]
            standing = None if instead is None else self.application(instead)
        return standing

    def _append(self, node: Node, children: tuple[ClassId, ...]) -> ENodeId:
        """Add an application, each output in a class of its own."""
        first = len(self._nodes)
        node, facts = self._analysis.make(node, [self._facts[child] for child in children])
        outputs = range(first, first + len(facts))
        self._nodes += [node] * len(facts)
        self._firsts += [first] * len(facts)
        self._children += [children] * len(facts)
        self._aliases.extend(len(facts))
        self._classes.extend(len(facts))
        self._facts += facts
        self._members += [[number] for number in outputs]
        self._readers += [[] for _ in outputs]
        self._touched |= dict.fromkeys(outputs)
        for child in dict.fromkeys(children):
            self._readers[child].append(first)
        self._size += len(facts)
        return first

    def _refresh(self, application: ENodeId) -> None:
        """Bring an application up to date whose operands have become part of other classes, or have new facts."""
        children = self._children[application] = self.children(application)
        node, facts = self._analysis.make(self._nodes[application], [self._facts[child] for child in children])
        for number, fact in zip(self.outputs_of(application), facts, strict=True):
            self._nodes[number] = node
            self._learn(self.find(number), fact)
        key = _key(node, children)
        if key is not None:
            # Keys with names that classes have lost may stay: nobody asks for them.
            same = self._aliases.find(self._known.setdefault(key, application))
            if same != application:
                self._merge(*sorted((same, application)))

    def _learn(self, name: ClassId, fact: Fact) -> None:
        """Add to the fact of a class; what reads the class may follow from that."""
        before = self._facts[name]
        merged = self._analysis.merge(before, fact)
        if merged is not before:
            self._facts[name] = merged
            self._stale += self._readers[name]
            self._touched[name] = None

    def _merge(self, kept: ENodeId, gone: ENodeId) -> None:
        """Let one of two congruent applications stand for both."""
        self._aliases.join(kept, gone)
        for one, other in zip(self.outputs_of(kept), self.outputs_of(gone), strict=True):
            self.unite(one, other)
        self._withdraw(gone)
        if gone in self.filtered and self.filtered[gone] is None:
            self.filter(kept)

    def _withdraw(self, application: ENodeId) -> None:
        """Take the outputs of an application out of their classes, where they still are members."""
        for number in self.outputs_of(application):
            members = self._members[self.find(number)]
            if number in members:
                members.remove(number)
                self._size -= 1


def check_equal_types(one: TensorType | None, other: TensorType | None) -> None:
    """Raise `RuleError` if values of these types cannot be equal."""
    if one != other:
        raise RuleError(f"values of types {one} and {other} cannot be equal")


def _key(node: Node, children: tuple[ClassId, ...]) -> tuple[int, tuple[ClassId, ...]] | None:
    """Return what congruent applications have in common; None for one that is congruent to no other."""
    if node.op == INPUT or node.is_opaque:
        return None
    is_commutative = node.op != WEIGHT and registry.OPERATORS[node.op].commutative
    return node.signature, tuple(sorted(children)) if is_commutative else children
