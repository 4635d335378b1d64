"""The features of a node by itself are the same whether a graph has it or a rewrite would add it."""

import pytest
from hypothesis import given
from support.strategies import graphs

from rlflow.errors import InputError
from rlflow.ir.node import Ref
from rlflow.ops import registry
from rlflow.representation.features import FEATURES, Featuriser, todays_vocabulary
from rlflow.representation.own_features import OWN_FEATURES, Operand, OwnFeatures, columns, operands_of


@given(graphs())
def test_rows_are_those_of_the_graphs_arrays(graph):
    arrays, own = Featuriser().arrays(graph), OwnFeatures(todays_vocabulary())
    for place, identifier in enumerate(graph.order, len(graph.inputs)):
        node = graph.nodes[identifier]
        op, *row = own.row(node, operands_of(node, graph.nodes.__getitem__))
        assert op == arrays.op[place]
        assert row == pytest.approx(arrays.features[place, : len(OWN_FEATURES)].tolist(), rel=1e-6)


@given(graphs())
def test_a_node_that_is_made_anew_has_the_same_row(graph):
    own = OwnFeatures(todays_vocabulary())
    for identifier in graph.order:
        node = graph.nodes[identifier]
        operands = operands_of(node, graph.nodes.__getitem__)
        given_as = [(Ref(90 + i), *operand) for i, operand in enumerate(operands)]
        assert own.row(registry.apply(node.op, node.attributes, given_as), operands) == own.row(node, operands)


@given(graphs())
def test_operands_are_types_and_whether_they_are_constant(graph):
    for identifier in graph.order:
        node = graph.nodes[identifier]
        wanted = [Operand(graph.type_of(ref), graph.nodes[ref.node].constant) for ref in node.inputs]
        assert list(operands_of(node, graph.nodes.__getitem__)) == wanted


def test_columns_follow_the_vocabulary():
    vocabulary = todays_vocabulary()
    assert columns(vocabulary, FEATURES) == list(range(len(FEATURES)))
    assert columns(vocabulary, FEATURES[::-1]) == list(range(len(FEATURES)))[::-1]
    with pytest.raises(InputError, match="consumers, is_output, which this version"):
        columns(vocabulary, OWN_FEATURES)
