"""The sharing rewriter: it finds more, computes nothing twice, and changes no result."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.rewrites import assert_same_outputs, graph_of
from support.strategies import graphs, source, weight
from support.walks import LIBRARY, REWRITER, SHARING, add, identity, leaf, walk

from rlflow.errors import InputError
from rlflow.ir import Graph, Node, Ref, structural_hash, validate
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter, rewriter_of


def relu_of_a_shared_transpose(nodes: list[Node]) -> list[Ref]:
    x = leaf(nodes, source((3, 4), "x"))
    turned = add(nodes, "Transpose", x, perm=(1, 0))
    return [add(nodes, "Relu", turned), add(nodes, "Tanh", turned)]


def test_a_value_inside_may_have_other_readers() -> None:
    """The plain rewriter finds nothing in this graph, so that the match is due to sharing alone."""
    graph = graph_of(relu_of_a_shared_transpose)
    rules = [LIBRARY.get("relu-before-transpose")]
    assert not any(Rewriter(rules).matches(graph))
    rewriter = SharingRewriter(rules)
    ((match,),) = rewriter.matches(graph)
    child = rewriter.apply(graph, match)
    assert sorted(child.nodes[i].op for i in child.order) == ["Relu", "Tanh", "Transpose", "Transpose"]
    assert_same_outputs(graph, child, np.random.default_rng(0))


def two_towers(nodes: list[Node]) -> list[Ref]:
    """2 + Transpose(Relu(x)) and Relu(Transpose(x)) + 2, each with its own 2 and an output behind it."""
    x = leaf(nodes, source((3, 4), "x"))
    twos = [leaf(nodes, weight(np.array(2.0, np.float32))) for _ in range(2)]
    turned = add(nodes, "Transpose", add(nodes, "Relu", x), perm=(1, 0))
    first = add(nodes, "Add", twos[0], turned)
    second = add(nodes, "Add", add(nodes, "Relu", add(nodes, "Transpose", x, perm=(1, 0))), twos[1])
    return [add(nodes, "Tanh", first), add(nodes, "Tanh", second)]


def test_what_becomes_the_same_is_merged_up_to_the_outputs() -> None:
    """Constants of one value count as one, and so do the orders of a sum; the plain rewriter keeps both towers."""
    graph = graph_of(two_towers)
    rewriter = SharingRewriter([LIBRARY.get("relu-before-transpose")])
    ((match,),) = rewriter.matches(graph)
    child = rewriter.apply(graph, match)
    validate(child)
    assert [child.nodes[i].op for i in child.order] == ["Relu", "Transpose", "Add", "Tanh"]
    assert child.outputs[0] == child.outputs[1]
    assert child.edit is not None
    assert child.edit.parent() is graph
    assert set(child.edit.change.removed) == set(graph.nodes) - set(child.nodes)
    assert_same_outputs(graph, child, np.random.default_rng(0))
    apart = Rewriter(rewriter.rules)
    assert len(apart.apply(graph, apart.matches(graph)[0][0]).order) == 6


@settings(max_examples=40)
@given(graph=graphs(), seed=st.integers(0, 2**32 - 1))
def test_every_plain_match_is_a_sharing_match_and_all_preserve_meaning(graph: Graph, seed: int) -> None:
    plain = {identity(match) for found in REWRITER.matches(graph) for match in found}
    found = [match for matches in SHARING.matches(graph) for match in matches]
    assert plain <= set(map(identity, found))
    assume(found)
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        assert_same_outputs(graph, SHARING.apply(graph, found[int(rng.integers(len(found)))]), rng)


@settings(max_examples=8)
@given(graph=graphs(), seed=st.integers(0, 2**32 - 1))
def test_incremental_matching_is_matching(graph: Graph, seed: int) -> None:
    """The table of matches, updated along a walk in which nodes merge, is the table made anew after every step."""
    rng = np.random.default_rng(seed)
    assume(any(SHARING.matches(graph)))
    with np.errstate(all="ignore"):
        assert_same_outputs(graph, walk(graph, SHARING, rng, 6), rng)


def test_the_same_rewrite_gives_the_same_graph() -> None:
    graph, again = graph_of(two_towers), graph_of(two_towers)
    others = SharingRewriter(LIBRARY.rules)
    for ours, theirs in zip(SHARING.matches(graph), others.matches(again), strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            hashes = (structural_hash(SHARING.apply(graph, mine)), structural_hash(others.apply(again, other)))
            assert hashes[0] == hashes[1]


def test_a_rewriter_is_made_by_its_name() -> None:
    assert type(rewriter_of("private", ())) is Rewriter
    assert type(rewriter_of("sharing", ())) is SharingRewriter
    with pytest.raises(InputError, match=r"'public'.*private, sharing"):
        rewriter_of("public", ())
