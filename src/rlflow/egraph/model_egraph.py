"""The e-graph of a whole model: all graphs at once that rules have shown to be equal to it, and by which uses of them.

An *application* is an operator on classes of values. Each of its outputs is an *e-node*, a member of a class:

    y = Relu(Split(x)[1])      application 1: Split on class 0, e-nodes 1 and 2 in classes 1 and 2
                               application 3: Relu on class 2, e-node 3 in class 3

E-nodes are numbered in the order of insertion and keep their numbers; an application is called by its first e-node, and
a class by the first of its e-nodes. Whatever else a node says (attributes, types, payload, names) stays in its
`ir.Node`, whose own operands mean nothing here. A node that no rule looks into (opaque) is an application as any
other, with the values that its subgraphs capture among its operands; what it computes may be drawn at random, so two of
them are never the same.

Invariants, after `rebuild`: congruent applications are one, under the lowest of their numbers; all e-nodes of a class
have one type; a class is constant if any member is, and has the number that any member has. By following in each
constant class the e-node that `constant_form` names, one comes to stored weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlflow.egraph.union_find import UnionFind
from rlflow.errors import RuleError
from rlflow.ir.depth_first import depth_first
from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT, LEAVES, WEIGHT, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.ops.domain import FloatDomain
from rlflow.rules.rule import Rule

ENodeId = int
ClassId = int


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


class Use(NamedTuple):
    """One use of a rule.

    `source` are the applications that those of the rule's source matched, each once and in the order in which a walk
    down from its outputs meets them; `roots` the e-nodes of its outputs. `made` are the applications of the target, new
    or there before, operands first; `outputs` the classes of its outputs, which were united with those of the roots.
    """

    rule: Rule
    source: tuple[ENodeId, ...]
    roots: tuple[ENodeId, ...]
    variables: Mapping[str, ClassId]
    made: tuple[ENodeId, ...]
    outputs: tuple[ClassId, ...]


class _Classes(UnionFind):
    """Classes of e-nodes, with what is known of each under its name."""

    def __init__(self) -> None:
        super().__init__()
        self.types: list[TensorType | None] = []
        self.members: list[list[ENodeId]] = []
        self.readers: list[list[ENodeId]] = []
        self.numbers: list[float | None] = []
        self.depths: list[int | None] = []

    def new(self, tensor_type: TensorType | None, depth: int | None, number: float | None) -> ClassId:
        """Make the class of the next e-node."""
        name = self.extend()
        self.types.append(tensor_type)
        self.members.append([name])
        self.readers.append([])
        self.numbers.append(number)
        self.depths.append(depth)
        return name

    def unite(self, one: ClassId, other: ClassId) -> None:
        """Make two classes one, given their names in ascending order."""
        self.join(one, other)
        self.members[one] = sorted(self.members[one] + self.members[other])
        self.readers[one] += self.readers[other]
        self.numbers[one] = self.numbers[other] if self.numbers[one] is None else self.numbers[one]
        depths = [depth for depth in (self.depths[one], self.depths[other]) if depth is not None]
        self.depths[one] = min(depths, default=None)
        self.members[other], self.readers[other] = [], []


class ModelEGraph:
    """An e-graph that begins with the values of a model; `class_of` has their e-nodes, which stand for their classes.

    `unite` leaves congruence for later; `rebuild` catches up. `uses` has every use of a rule that brought anything new,
    in the order of time; `idle_uses` has the others, which are ways from one e-node to another all the same.
    `filtered` has the applications that do not count any more and are members of no class, each with the one that
    stands in for it, if any.
    """

    def __init__(self) -> None:
        self.class_of: dict[Ref, ClassId] = {}
        self.uses: list[Use] = []
        self.idle_uses: list[Use] = []
        self.filtered: dict[ENodeId, ENodeId | None] = {}
        self._outputs: tuple[ClassId, ...] = ()
        self._classes = _Classes()
        self._aliases = UnionFind()
        self._nodes: list[Node] = []
        self._firsts: list[ENodeId] = []
        self._children: list[tuple[ClassId, ...]] = []
        self._depths: list[int | None] = []
        self._known: dict[tuple[int, tuple[ClassId, ...]], ENodeId] = {}
        self._size = 0
        self._stale: list[ENodeId] = []
        self._touched: dict[ClassId, None] = {}

    @classmethod
    def from_graph(cls, graph: Graph) -> ModelEGraph:
        """Make an e-graph of all values of a graph; weights of the same content become one."""
        egraph = cls()
        for identifier in graph.inputs:
            egraph._take(graph, identifier)
        roots = [ref.node for ref in graph.outputs]
        for identifier in depth_first(roots, lambda i: graph.nodes[i].sources, graph.next_id).nodes:
            if Ref(identifier) not in egraph.class_of:
                egraph._take(graph, identifier)
        egraph._outputs = tuple(egraph.class_of[ref] for ref in graph.outputs)
        return egraph

    def __len__(self) -> int:
        """Count the e-nodes that are members of classes, leaves included."""
        return self._size

    @property
    def next_number(self) -> ENodeId:
        """The number of the next e-node."""
        return len(self._nodes)

    @property
    def outputs(self) -> tuple[ClassId, ...]:
        """The classes of the model's outputs."""
        return tuple(map(self.find, self._outputs))

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
        return [name for name, members in enumerate(self._classes.members) if members]

    def applications(self, since: ENodeId = 0) -> Iterator[ENodeId]:
        """Yield all applications that count, from this number on, in ascending order."""
        for number, first in enumerate(self._firsts[since:], start=since):
            if number == first == self._aliases.find(first) and number not in self.filtered:
                yield number

    def members(self, member: ClassId) -> Sequence[ENodeId]:
        """Return the e-nodes of a class, in the order of their numbers."""
        return self._classes.members[self.find(member)]

    def readers(self, member: ClassId) -> Iterable[ENodeId]:
        """Return the applications that read a class, each once and in the order of their numbers."""
        return sorted({self._aliases.find(reader) for reader in self._classes.readers[self.find(member)]})

    def type_of(self, member: ClassId) -> TensorType | None:
        return self._classes.types[self.find(member)]

    def is_constant(self, member: ClassId) -> bool:
        """Return True if the value is known when the model is loaded."""
        return self._classes.depths[self.find(member)] is not None

    def constant_depth(self, member: ClassId) -> int:
        """Return how many applications deep a constant is at the least; 0 for a stored one. -1 if it is none."""
        depth = self._classes.depths[self.find(member)]
        return -1 if depth is None else depth

    def constant_form(self, member: ClassId) -> ENodeId:
        """Return the e-node of a constant class that is the least deep, the first of several."""
        constants = [number for number in self.members(member) if self._nodes[number].constant]
        return min(constants, key=self._depth_of)

    def number(self, member: ClassId) -> float | None:
        """Return the value of a constant of one element, None if it is none or is not known."""
        return self._classes.numbers[self.find(member)]

    def stored_number(self, member: ClassId) -> float | None:
        """Return the number of a class that has a stored weight of one element, None for others."""
        is_stored = any(self._nodes[number].op == WEIGHT for number in self.members(member))
        return self.number(member) if is_stored else None

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

    def known(self, node: Node, operands: Sequence[ClassId]) -> ENodeId | None:
        """Return the application of a node to these classes, None if there is none or it is congruent to no other."""
        key = _key(node, tuple(map(self._classes.find, operands)))
        first = None if key is None else self._known.get(key)
        return None if first is None else self._aliases.find(first)

    def use(
        self,
        rule: Rule,
        source: Sequence[ENodeId],
        roots: Sequence[ENodeId],
        variables: Mapping[str, ClassId],
        target: Target,
    ) -> Use | None:
        """Add a rule's target and unite its outputs with the roots; None if all that was known before."""
        size = len(self._nodes)
        # Numbers of applications and of classes, of which e-nodes and classes of further outputs follow.
        placed = list(variables.values())
        for node in target.nodes:
            operands = [self.find(placed[ref.node] + ref.index) for ref in node.inputs if ref is not None]
            placed.append(self.insert(node, operands))
        outputs = tuple(self.find(placed[ref.node] + ref.index) for ref in target.outputs)
        united = [self.unite(root, output) for root, output in zip(roots, outputs, strict=True)]
        made = tuple(placed[len(variables) :])
        use = Use(rule, tuple(source), tuple(roots), dict(variables), made, outputs)
        if not any(united) and len(self._nodes) == size:
            self.idle_uses.append(use)
            return None
        self.uses.append(use)
        return use

    def unite(self, one: ClassId, other: ClassId) -> bool:
        """Make two classes one, return True if they were not; `RuleError` if their types differ."""
        one, other = sorted((self.find(one), self.find(other)))
        if one == other:
            return False
        types = self._classes.types
        if types[one] != types[other]:
            raise RuleError(f"values of types {types[one]} and {types[other]} cannot be equal")
        # What reads the class that keeps its name is known under the right key, but may become constant.
        becomes_constant = self.is_constant(one) != self.is_constant(other)
        self._stale += self._classes.readers[other] + (self._classes.readers[one] if becomes_constant else [])
        self._classes.unite(one, other)
        self._touched[one] = None
        return True

    def rebuild(self) -> tuple[ClassId, ...]:
        """Close the e-graph under congruence, and return the classes that have changed since the last time.

        A class has changed if it has got a new member or has become constant.
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

    def _take(self, graph: Graph, identifier: int) -> None:
        """Add a node of a graph whose operands have been added."""
        node = graph.nodes[identifier]
        first = self.insert(node, [self.class_of[ref] for ref in node.inputs if ref is not None])
        self.class_of |= {Ref(identifier, place): first + place for place in range(len(node.types))}

    def _append(self, node: Node, children: tuple[ClassId, ...]) -> ENodeId:
        """Add an application, each output in a class of its own."""
        first = len(self._nodes)
        depth = self._depth(children) if node.constant else None
        number = self._computed(node, children)
        for tensor_type in node.types:
            self._aliases.extend()
            self._nodes.append(node)
            self._firsts.append(first)
            self._children.append(children)
            self._depths.append(depth)
            self._touched[self._classes.new(tensor_type, depth, number)] = None
        for child in dict.fromkeys(children):
            self._classes.readers[child].append(first)
        self._size += len(node.types)
        return first

    def _refresh(self, application: ENodeId) -> None:
        """Bring an application up to date whose operands have become part of other classes, or constant."""
        node, children = self._nodes[application], self.children(application)
        self._children[application] = children
        is_computed = node.op not in LEAVES and not node.is_opaque and len(children) > 0
        if is_computed and not node.constant and all(map(self.is_constant, children)):
            self._make_constant(application, children)
        key = _key(node, children)
        if key is not None:
            # Keys with names that classes have lost may stay: nobody asks for them.
            same = self._aliases.find(self._known.setdefault(key, application))
            if same != application:
                self._merge(*sorted((same, application)))

    def _make_constant(self, application: ENodeId, children: tuple[ClassId, ...]) -> None:
        node = replace(self._nodes[application], constant=True)
        depth, number = self._depth(children), self._computed(node, children)
        classes = self._classes
        for place in self.outputs_of(application):
            self._nodes[place], self._depths[place] = node, depth
            name = self.find(place)
            before = classes.depths[name]
            classes.depths[name] = depth if before is None else min(depth, before)
            classes.numbers[name] = number if classes.numbers[name] is None else classes.numbers[name]
            if before is None:
                self._stale += classes.readers[name]
                self._touched[name] = None

    def _merge(self, kept: ENodeId, gone: ENodeId) -> None:
        """Let one of two congruent applications stand for both."""
        self._aliases.join(kept, gone)
        for one, other in zip(self.outputs_of(kept), self.outputs_of(gone), strict=True):
            depths = [depth for depth in (self._depths[one], self._depths[other]) if depth is not None]
            self._depths[one] = min(depths, default=None)
            self.unite(one, other)
        self._withdraw(gone)
        if gone in self.filtered and self.filtered[gone] is None:
            self.filter(kept)

    def _withdraw(self, application: ENodeId) -> None:
        """Take the outputs of an application out of their classes, where they still are members."""
        for number in self.outputs_of(application):
            members = self._classes.members[self.find(number)]
            if number in members:
                members.remove(number)
                self._size -= 1

    def _depth(self, children: Sequence[ClassId]) -> int:
        """Return the depth of a constant application of these classes."""
        return 1 + max(map(self.constant_depth, children), default=-1)

    def _depth_of(self, number: ENodeId) -> int:
        depth = self._depths[number]
        assert depth is not None
        return depth

    def _computed(self, node: Node, children: Sequence[ClassId]) -> float | None:
        """Return the number that a constant node gives, if it is one and those that it reads are numbers, too."""
        if not node.constant or len(node.types) > 1 or not _is_number(node.types[0]):
            return None
        if node.op == WEIGHT:
            return node.payload.array().item()  # type: ignore[union-attr, no-any-return]
        operands = [_filled(self.type_of(child), self.number(child)) for child in children]
        if node.is_opaque or any(operand is None for operand in operands):
            return None
        try:
            with np.errstate(all="ignore"):
                (value,) = registry.OPERATORS[node.op].evaluate(FloatDomain(), node.attributes, operands)
        except (IndexError, TypeError):
            return None
        return value.item()


def _key(node: Node, children: tuple[ClassId, ...]) -> tuple[int, tuple[ClassId, ...]] | None:
    """Return what congruent applications have in common; None for one that is congruent to no other."""
    if node.op == INPUT or node.is_opaque:
        return None
    is_commutative = node.op != WEIGHT and registry.OPERATORS[node.op].commutative
    return node.signature, tuple(sorted(children)) if is_commutative else children


_NUMERIC = frozenset({"float32", "float64", "int32", "int64"})
"""Element types that rules speak of (rules/matching/replacement.py)."""


def _is_number(tensor_type: TensorType | None) -> bool:
    if tensor_type is None or tensor_type.dtype not in _NUMERIC:
        return False
    return tensor_type.is_static and tensor_type.elements == 1


def _filled(tensor_type: TensorType | None, number: float | None) -> np.ndarray | None:
    """Return a tensor of one element from its number, None if there is no number."""
    if number is None or tensor_type is None or tensor_type.shape is None:
        return None
    return np.full([d for d in tensor_type.shape if isinstance(d, int)], number, tensor_type.dtype)
