"""The tree finds what a walk of one source after the other finds, and looks at shared beginnings once."""

from collections import Counter
from collections.abc import Iterator, Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from support.rewrites import applied, graph_of, read
from support.strategies import graphs

from rlflow.ir import Graph, Node, Ref
from rlflow.rules.library import load
from rlflow.rules.matching.discrimination_tree import DiscriminationTree, outline
from rlflow.rules.matching.variants import Variant, compile_variants
from rlflow.rules.pattern import Apply, Term, Variable, variables
from rlflow.rules.rule import Rule, rule_from_json

LIBRARY = load()


def tree_of(variants: list[Variant]) -> DiscriminationTree:
    return DiscriminationTree((variant, outline(variant)) for variant in variants)


def has_numbers(term: Term) -> bool:
    return isinstance(term, Apply) and (not variables(term) or any(map(has_numbers, term.arguments)))


def plain_variants() -> list[Variant]:
    """Of rules with one root and without numbers, which the walk below leaves out (test_fused_rules.py)."""
    all_variants = (variant for rule in LIBRARY.rules for variant in compile_variants(rule))
    return [v for v in all_variants if len(v.roots) == 1 and not has_numbers(v.source[0])]


PLAIN = plain_variants()
TREE = tree_of(PLAIN)


def unify(term: Term, ref: Ref | None, graph: Graph, bound: Mapping[object, object]) -> Mapping[object, object] | None:
    """What the textbook says, without a tree: the bindings with those of this term at this value."""
    if ref is None:
        return None
    if isinstance(term, Variable):
        return _with(bound, term.name, ref)
    node = graph.nodes[ref.node]
    if (node.op, ref.index) != (term.op, term.output) or node.is_opaque or len(node.inputs) != len(term.arguments):
        return None
    known: Mapping[object, object] | None = _with(bound, term.node, ref.node)
    for name, wanted in term.attributes:
        present = node.attributes.get(name)
        is_variable = isinstance(wanted, str) and wanted.startswith("?")
        if known is None or present is None or not (is_variable or wanted == present):
            return None
        known = _with(known, wanted, present) if is_variable else known
    for argument, operand in zip(term.arguments, node.inputs, strict=True):
        known = unify(argument, operand, graph, known) if known is not None else None
    return known


def _with(bound: Mapping[object, object], name: object, value: object) -> Mapping[object, object] | None:
    return {**bound, name: value} if bound.get(name, value) == value else None


def naive(graph: Graph, root: int) -> Iterator[tuple[int, tuple[object, ...]]]:
    for number, variant in enumerate(PLAIN):
        bound = unify(variant.roots[0], Ref(root), graph, {})
        if bound is not None:
            yield number, tuple(bound[name] for name in variant.variables)


@settings(max_examples=60)
@given(graph=graphs(max_nodes=20), depth=st.integers(-1, 3))
def test_the_tree_finds_what_unification_finds(graph: Graph, depth: int) -> None:
    for root in graph.order:
        found = [(o.variant, o.values) for o in TREE.occurrences(graph, root, deeper_than=depth)]
        expected = [(number, values) for number, values in naive(graph, root) if PLAIN[number].depth > depth]
        assert found == expected


def test_the_comparison_is_not_vacuous(bert: Graph) -> None:
    """Most of the library is compared, and on a model sources of every depth occur."""
    assert len(PLAIN) > 500
    found = Counter(PLAIN[number].depth for root in bert.order for number, _ in naive(bert, root))
    assert min(found[1], found[2]) > 10
    assert found[3] > 0


def chains(length: int) -> list[Rule]:
    """Relu(...Relu(x)...) => Relu(x) for lengths up to this."""
    source: object = ["Relu", "x"]
    rules = []
    for _ in range(length):
        source = ["Relu", source]
        rules.append(rule_from_json("chain", "test", [source], [["Relu", "x"]]))
    return rules


def test_what_sources_have_in_common_is_looked_at_once() -> None:
    """Eight sources of up to nine operators, each the beginning of the next, ask for no more nodes than the longest."""
    looked_at: Counter[int] = Counter()

    class Watched(dict[int, Node]):
        def __getitem__(self, identifier: int) -> Node:
            looked_at[identifier] += 1
            return super().__getitem__(identifier)

    def body(nodes: list[Node]) -> list[Ref]:
        value = read(nodes, "x", 2, 3)
        for _ in range(9):
            value = applied(nodes, "Relu", value)
        return [value]

    graph = graph_of(body)
    root = graph.order[-1]
    object.__setattr__(graph, "nodes", Watched(graph.nodes))

    def looks(rules: list[Rule]) -> int:
        looked_at.clear()
        tree = tree_of([variant for rule in rules for variant in compile_variants(rule)])
        assert len(tree.occurrences(graph, root)) == len(rules)
        return looked_at.total()

    assert looks(chains(8)) == looks(chains(8)[-1:])
