"""The shipped rules on small graphs, and random walks by them."""

from dataclasses import replace
from functools import cache

import numpy as np

from rlflow.ir import Graph, Node, Ref, structural_hash, validate
from rlflow.ops import registry
from rlflow.rules.library import load
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from support.strategies import weight

LIBRARY = load()
REWRITER, SHARING = Rewriter(LIBRARY.rules), SharingRewriter(LIBRARY.rules)
"""All rules, compiled once for all tests of a process: a second of work each."""


def add(nodes: list[Node], op: str, *operands: Ref, **attributes: object) -> Ref:
    kinds = [(r, nodes[r.node].types[r.index], nodes[r.node].constant) for r in operands]
    nodes.append(registry.apply(op, attributes, kinds))  # type: ignore[arg-type]
    return Ref(len(nodes) - 1)


def leaf(nodes: list[Node], node: Node) -> Ref:
    nodes.append(node)
    return Ref(len(nodes) - 1)


def random_weight(nodes: list[Node], *shape: int) -> Ref:
    rng = np.random.default_rng(len(nodes))
    return leaf(nodes, weight(rng.standard_normal(shape).astype(np.float32), f"w{len(nodes)}"))


def identity(match: Match) -> tuple[object, ...]:
    return (match.rule.id, match.roots, tuple(sorted(match.bindings.items())), match.nodes)


@cache
def other(rewriter: Rewriter) -> Rewriter:
    """One of the same kind by the same rules, which has seen no walk; to compile it takes a second."""
    return type(rewriter)(rewriter.rules)


def walk(graph: Graph, rewriter: Rewriter, rng: np.random.Generator, steps: int) -> Graph:
    """A random trajectory; after each step the matches must be those of the graph matched anew."""
    for _ in range(steps):
        found = [m for group in rewriter.matches(graph) for m in group]
        if not found:
            break
        graph = rewriter.apply(graph, found[int(rng.integers(len(found)))])
        validate(graph)
        anew = replace(graph, edit=None)
        assert (graph.order, structural_hash(graph)) == (anew.order, structural_hash(anew))
        matches = rewriter.matches(graph)
        assert matches.counts == tuple(map(len, matches))
        incremental = [[identity(m) for m in group] for group in matches]
        assert incremental == [[identity(m) for m in group] for group in other(rewriter).matches(anew)]
    return graph
