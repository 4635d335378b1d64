"""Matching: complete, private, in an order of its own, and the same whether done at once or step by step."""

from itertools import chain

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from immutables import Map
from support.rewrites import graph_of
from support.strategies import graphs, source
from support.walks import REWRITER, add, leaf, other, walk

from rlflow.ir import Graph, Node, Ref, structural_hash
from rlflow.rules.library import Library
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter


def by_position(graph: Graph, rewriter: Rewriter) -> list[list[tuple[int, ...]]]:
    """The matches as places in the topological order: what an agent's location means. Roots come in the rule's order;
    the nodes inside have none."""

    def places(match: Match) -> tuple[int, ...]:
        roots = len({ref.node for ref in match.roots})
        place = [graph.positions()[node] for node in match.nodes]
        return (*place[:roots], *sorted(place[roots:]))

    return [[places(match) for match in found] for found in rewriter.matches(graph)]


@settings(max_examples=15)
@given(graph=graphs(), seed=st.integers(0, 2**32 - 1))
def test_order_of_matches_depends_on_neither_names_nor_history(graph: Graph, seed: int) -> None:
    """Nor does what they lead to: an action means the same wherever the graph comes from."""
    rng = np.random.default_rng(seed)
    end = walk(graph, REWRITER, rng, 4)
    same, anew = rebuilt(end, rng), other(REWRITER)
    assert by_position(end, REWRITER) == by_position(same, anew)
    for ours, theirs in zip(chain(*REWRITER.matches(end)), chain(*anew.matches(same)), strict=True):
        assert structural_hash(REWRITER.apply(end, ours)) == structural_hash(anew.apply(same, theirs))


def test_which_of_two_nodes_alike_is_read_depends_on_neither_names_nor_history(library: Library) -> None:
    """Relu(Transpose(x)) as Transpose(Relu(x)) reads one of two Relus of x, each of which something else reads."""

    def build(nodes: list[Node]) -> list[Ref]:
        x = leaf(nodes, source((3, 4), "x"))
        relus = [add(nodes, "Relu", x) for _ in range(2)]
        told_apart = [add(nodes, op, relu) for op, relu in zip(("Sigmoid", "Tanh"), relus, strict=True)]
        return [*told_apart, add(nodes, "Relu", add(nodes, "Transpose", x, perm=(1, 0)))]

    graph = graph_of(build)
    rewriter = Rewriter([library.get("relu-before-transpose")])
    hashes = set()
    for seed in range(8):
        same = rebuilt(graph, np.random.default_rng(seed))
        assert structural_hash(same) == structural_hash(graph)
        (match,) = rewriter.matches(same)[0]
        rewritten = rewriter.apply(same, match)
        assert len(rewritten.order) == len(graph.order) - 1, "a Relu that was there is read"
        hashes.add(structural_hash(rewritten))
    assert len(hashes) == 1


def rebuilt(graph: Graph, rng: np.random.Generator) -> Graph:
    """The same graph with other node numbers and other names."""
    old = list(graph.nodes)
    numbers = dict(zip(old, (int(i) for i in rng.permutation(3 * len(old))[: len(old)]), strict=True))

    def moved(ref: Ref | None) -> Ref | None:
        return None if ref is None else Ref(numbers[ref.node], ref.index)

    nodes = {}
    for identifier in rng.permutation(old):
        node = graph.nodes[int(identifier)]
        named = tuple(f"renamed_{numbers[int(identifier)]}_{i}" for i in range(len(node.names)))
        nodes[numbers[int(identifier)]] = node.with_inputs(tuple(map(moved, node.inputs))).with_names(named)
    return Graph(
        nodes=Map(nodes),
        inputs=tuple(numbers[i] for i in graph.inputs),
        outputs=tuple(Ref(numbers[r.node], r.index) for r in graph.outputs),
        output_names=graph.output_names,
        consumers=Map(
            {
                numbers[i]: tuple(numbers[int(c)] for c in rng.permutation(readers)) if readers else ()
                for i, readers in graph.consumers.items()
            }
        ),
        header=graph.header,
        next_id=3 * len(old),
    )


def test_two_orders_of_independent_rewrites_give_one_graph_and_one_order(bert: Graph, library: Library) -> None:
    rewriter = Rewriter([library.get("bias-add-to-sum")])
    first, *_, last = rewriter.matches(bert)[0]
    ends = []
    for one, later in ((first, last), (last, first)):
        child = rewriter.apply(bert, one)
        then = next(m for m in rewriter.matches(child)[0] if m.roots == later.roots)
        ends.append(rewriter.apply(child, then))
    assert structural_hash(ends[0]) == structural_hash(ends[1])
    assert by_position(ends[0], rewriter) == by_position(ends[1], rewriter)


@settings(max_examples=20)
@given(graph=graphs(), seed=st.integers(0, 2**32 - 1))
def test_rules_that_match_are_listed_as_among_all_rules(graph: Graph, seed: int) -> None:
    """Also after rewrites, which may take a rule its last match."""
    end = walk(graph, REWRITER, np.random.default_rng(seed), 2)
    matches = REWRITER.matches(end)
    assert list(matches.found()) == [(rule, found) for rule, found in enumerate(matches) if found]
