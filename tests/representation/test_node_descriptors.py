"""Descriptors of nodes: numbered alike if they are alike, with prices that sum to those of the parts."""

from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.prices import drawn_prices
from support.strategies import graphs
from support.walks import REWRITER

from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.preview import preview, runs
from rlflow.representation.features import todays_vocabulary
from rlflow.representation.node_descriptors import GraphDescriptors, NodeDescriptors
from rlflow.representation.price_profile import PriceProfile


@given(graphs(), st.sampled_from(["as_written", "deployed"]))
def test_prices_of_faces_sum_to_those_of_their_parts(graph, setting):
    model = drawn_prices(setting)
    profile, known = PriceProfile.of(graph, model), NodeDescriptors(todays_vocabulary(), model)
    descriptors = GraphDescriptors(known, graph, profile)
    for part in model.parts(graph):
        looked = [descriptors.of(node) for node in part.nodes]
        assert {nodes for _, nodes in looked} == {part.nodes}
        told = fsum(known.numbered[number].price for number, _ in looked)
        assert told * profile.median_ms == pytest.approx(part.ms, rel=1e-5)


@given(graphs())
def test_equal_numbers_are_equal_faces(graph):
    model = AnalyticCost()
    known = NodeDescriptors(todays_vocabulary(), model)
    descriptors = GraphDescriptors(known, graph, PriceProfile.of(graph, model))
    for identifier in graph.order:
        descriptor = known.numbered[descriptors.of(identifier)[0]]
        assert todays_vocabulary().operators[descriptor.op] == graph.nodes[identifier].op
    assert len(set(known.numbered)) == len(known.numbered)
    known.forget()
    assert not known.numbered
    again = GraphDescriptors(known, graph, PriceProfile.of(graph, model))
    assert sorted({again.of(i)[0] for i in graph.order}) == list(range(len(known.numbered)))


@given(graphs())
def test_an_added_node_has_the_face_that_it_will_have_where_prices_are_what_is_estimated(graph):
    """At a machine that pays for launches alone every estimate is right."""
    model = drawn_prices("as_written")
    model.region_ms = lambda graph, region: 0.5
    profile = PriceProfile(launch_ms=0.5, ms_per_gflop=0.0, ms_per_gbyte=0.0, median_ms=0.5)
    known = NodeDescriptors(todays_vocabulary(), model)
    for match in [match for matches in REWRITER.matches(graph) for match in matches][:10]:
        edit, after = preview(graph, *REWRITER.edit(graph, match)), REWRITER.apply(graph, match)
        before, then = GraphDescriptors(known, graph, profile), GraphDescriptors(known, after, profile)
        for identifier, node in edit.added.items():
            if runs(node) and identifier in after.nodes:
                assert before.of_added(identifier, edit) == then.of(identifier)[0]
