"""Rules as graphs, compared by networkx: an oracle for rule ids that shares no code with them.

An id is a hash of a rule whose names were replaced in the order of their occurrence. Here a rule becomes a graph in
which names are nodes without a label, and two rules say the same if their graphs are isomorphic. So no two rules of the
library may be isomorphic, and a rule under other names must be.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any

import networkx as nx
import pytest
from networkx.algorithms.isomorphism import categorical_multiedge_match, categorical_node_match

from rlflow.rules import library
from rlflow.rules.pattern import Apply, Term, Variable, freeze
from rlflow.rules.rule import Rule, VariableSpec, with_short_names

OF_A_VARIABLE = ("dim", "shape", "rank", "elements", "float", "value", "bounded")
"""Functions of conditions whose first argument is the name of a variable."""


class RuleGraph(nx.MultiDiGraph):
    """Terms, expressions and names as nodes with a `label`, edges to their parts with a `role`."""

    @classmethod
    def of(cls, rule: Rule) -> "RuleGraph":
        graph = cls()
        graph.rule = rule
        graph.add_node("rule", label=("rule", rule.opset))
        for role, side in (("source", rule.source), ("target", rule.target)):
            for position, term in enumerate(side):
                graph.refer("rule", graph.term(term), role, position, output_of(term))
        for role, conditions in (("where", rule.where), ("worth", rule.profitable_if)):
            for condition in conditions:  # their order means nothing
                graph.refer("rule", graph.expression(freeze(condition)), role)
        return graph

    def refer(self, reader: Hashable, part: Hashable, *role: Hashable) -> None:
        self.add_edge(reader, part, role=role)

    def term(self, term: Term) -> Hashable:
        """The node of a term; equal terms are one."""
        if isinstance(term, Variable):
            return self.variable(term.name)
        node = term.node
        if node not in self:
            self.add_node(node, label=("operator", node.op))
            for position, argument in enumerate(node.arguments):
                self.refer(node, self.term(argument), "argument", position, output_of(argument))
            for name, value in node.attributes:
                self.refer(node, self.expression(value), "attribute", name)
        return node

    def variable(self, name: str) -> Hashable:
        node = ("variable", name)
        if node not in self:
            spec = self.rule.spec(name)
            template = None if spec.shape is None else tuple(d for d in spec.shape if isinstance(d, int))
            self.add_node(node, label=("variable", template, spec.constant, spec.literal))
            for axis, dimension in enumerate(spec.shape or ()):
                if isinstance(dimension, str):
                    self.refer(node, self.named("dimension", dimension), axis, dimension.startswith("..."))
        return node

    def named(self, kind: str, name: str) -> Hashable:
        self.add_node((kind, name), label=kind)
        return kind, name

    def expression(self, value: Any) -> Hashable:
        """The node of a condition or of an attribute, each occurrence a node of its own but for names."""
        if isinstance(value, str) and value.startswith("?"):
            return self.named("attribute variable", value)
        node = ("expression", len(self))
        if not isinstance(value, tuple):
            self.add_node(node, label=("literal", type(value).__name__, value))
            return node
        head = value[0] if value and isinstance(value[0], str) else "list"
        self.add_node(node, label=("call", head, len(value)))
        for position, part in enumerate(value):
            names_a_variable = position == 1 and head in OF_A_VARIABLE
            self.refer(node, self.variable(part) if names_a_variable else self.expression(part), position)
        return node


def output_of(term: Term) -> int:
    return term.output if isinstance(term, Apply) else 0


def isomorphic(a: RuleGraph, b: RuleGraph) -> bool:
    nodes, edges = categorical_node_match("label", None), categorical_multiedge_match("role", None)
    return nx.is_isomorphic(a, b, node_match=nodes, edge_match=edges)


def pairs(rules: Iterable[Rule]) -> list[tuple[Rule, Rule]]:
    """Those that are isomorphic; only rules with the same labels can be, and only they are compared."""
    found, known = [], defaultdict(list)
    for rule in rules:
        graph = RuleGraph.of(rule)
        alike = known[tuple(sorted(repr(label) for _, label in graph.nodes(data="label")))]
        found += [(other.rule, rule) for other in alike if isomorphic(other, graph)]
        alike.append(graph)
    return found


@pytest.fixture(scope="module")
def rules() -> tuple[Rule, ...]:
    return library.load().rules


def test_no_two_rules_of_the_library_say_the_same(rules) -> None:
    assert [(a.name, b.name) for a, b in pairs(rules)] == []


@pytest.mark.slow
def test_other_names_make_no_other_rule(rules) -> None:
    """Not vacuous the other way round: a rule that is renamed is found to be the same, and has the same id."""
    declared = [rule for rule in rules if rule.origin == "declared"][::8]
    changed = [(a, b) for a, b in ((rule, with_short_names(rule)) for rule in declared) if a.source != b.source]
    assert len(changed) > 20, "declared rules have names of their own"
    assert all(a.id == b.id and isomorphic(RuleGraph.of(a), RuleGraph.of(b)) for a, b in changed)


def test_each_part_of_a_rule_tells_it_apart(rules) -> None:
    """Operands swapped, a side repeated, a condition or a demand dropped: ids and graphs both notice."""
    rule = next(r for r in rules if r.name == "merge-2-linears")
    (first, second), (left, right) = rule.source, rule.target
    swapped = Apply(first.op, first.attributes, first.arguments[::-1])
    dropped = {name: replace(spec, constant=False) for name, spec in rule.variables.items()}
    others = [
        replace(rule, source=(swapped, second)),
        replace(rule, target=(right, left)),
        replace(rule, opset=21),
        replace(rule, variables=dropped),
        replace(rule, variables=rule.variables | {"x": VariableSpec()}),
        replace(rule, where=(["==", ["dim", "x", -1], 4],)),
        replace(rule, where=(["==", ["dim", "x", -1], 8],)),
        replace(rule, where=(["==", ["dim", "w0", -1], 4],)),
        replace(rule, profitable_if=(["==", ["dim", "x", -1], 4],)),
    ]
    assert pairs([rule, *others]) == []
    assert len({r.id for r in (rule, *others)}) == len(others) + 1
