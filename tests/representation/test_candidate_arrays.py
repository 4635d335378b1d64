"""Arrays of a graph with its candidates: each of them can be read out of what they share."""

from collections import Counter

import numpy as np
import pytest
from support.token_worlds import small_graph
from support.walks import REWRITER

from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.representation.candidate_arrays import (
    EDGE_FEATURES,
    CandidateArrays,
    CandidateWriter,
    near_change,
    todays_candidate_vocabulary,
)
from rlflow.representation.features import Featuriser
from rlflow.representation.vocabulary import Vocabulary


def some_candidates(graph: Graph, every: int = 7) -> list[Graph]:
    matches = [match for of_rule in REWRITER.matches(graph) for match in of_rule]
    return [REWRITER.apply(graph, match) for match in matches[::every]]


def looks(writer: CandidateWriter, arrays: CandidateArrays, number: int) -> Counter[bytes]:
    """How often each row stands for a node of candidate `number`, 0 the current graph."""
    rows = writer.node_rows()[arrays.look]
    found = Counter(row.tobytes() for row in rows[arrays.owner == 0])
    if number:
        replaced = arrays.replaced[arrays.replaced[:, 0] == number, 1]
        found -= Counter(row.tobytes() for row in rows[replaced])
        found += Counter(row.tobytes() for row in rows[arrays.owner == number])
    return found


def test_nodes_are_those_of_the_featuriser() -> None:
    """Of the current graph in their order, and of each candidate as a collection, put together from what is shared."""
    graph, writer, featuriser = small_graph(), CandidateWriter(reach=2), Featuriser()
    candidates = some_candidates(graph)
    arrays = writer.arrays(graph, candidates)
    assert arrays.candidates == len(candidates) > 5
    for number, one in enumerate([graph, *candidates]):
        known = featuriser.arrays(one)
        expected = np.concatenate([known.op[:, None].astype(np.float32), known.features], axis=1)
        assert looks(writer, arrays, number) == Counter(row.tobytes() for row in expected)
    current = writer.node_rows()[arrays.look[arrays.owner == 0]]
    np.testing.assert_array_equal(current[:, 1:], featuriser.arrays(graph).features)


def test_messages_are_the_edges_in_both_directions() -> None:
    graph, writer = small_graph(), CandidateWriter()
    arrays = writer.arrays(graph, [])
    edges = Counter(map(tuple, Featuriser().arrays(graph).edges.tolist()))
    assert Counter(map(tuple, arrays.messages[~arrays.backward].tolist())) == edges
    assert Counter(map(tuple, arrays.messages[arrays.backward][:, ::-1].tolist())) == edges


def test_nobody_hears_from_a_copy_but_copies_of_the_same_candidate() -> None:
    graph, writer = small_graph(), CandidateWriter(reach=1)
    arrays = writer.arrays(graph, some_candidates(graph))
    sender, hearer = arrays.owner[arrays.messages[:, 0]], arrays.owner[arrays.messages[:, 1]]
    assert ((sender == hearer) | (sender == 0)).all()
    assert ((sender == 0) & (hearer > 0)).any(), "the border hears from the current graph"
    assert (np.diff(arrays.owner) >= 0).all()


def test_what_is_shared_is_written_once() -> None:
    """A longer reach copies more, and a reach of the whole graph copies all of it."""
    graph = small_graph()
    candidates = some_candidates(graph)
    sizes = [CandidateWriter(reach=reach).arrays(graph, candidates).nbytes for reach in (1, 3, 1000)]
    assert sizes[0] < sizes[1] < sizes[2]
    whole = CandidateWriter(reach=1000).arrays(graph, candidates)
    assert (whole.owner == 1).sum() == len(candidates[0].inputs) + len(candidates[0].order)


def test_edges_tell_the_operand_and_the_shape() -> None:
    graph, writer = small_graph(), CandidateWriter()
    reader = graph.order[-1]
    row = writer.edge_rows  # numbered as they are asked for
    for source, edge in writer.edges(graph, reader).items():
        slot = next(place for place, ref in enumerate(graph.nodes[reader].inputs) if ref and ref.node == source)
        told = dict(zip(EDGE_FEATURES, row()[edge].tolist(), strict=True))
        assert told["operand"] == slot / 4
        last = graph.nodes[source].types[0].shape[-1]
        assert told["log2_dimension_0_from_last"] == pytest.approx(np.log2(1 + last) / 16)


def test_it_refuses_strangers() -> None:
    graph = small_graph()
    child = some_candidates(graph, every=50)[0]
    grandchild = some_candidates(child, every=50)[0]
    with pytest.raises(InputError, match="one rewrite"):
        near_change(graph, grandchild, 2)
    with pytest.raises(InputError, match="reach"):
        CandidateWriter(reach=0)
    known = todays_candidate_vocabulary()
    with pytest.raises(InputError, match="shoe_size"):
        CandidateWriter(Vocabulary(known.operators, (*known.features, "shoe_size")))
