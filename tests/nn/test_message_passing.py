"""Messages follow the edges, in both directions, whatever the order of the nodes."""

import torch

from rlflow.nn.message_passing import MessagePassing, scatter_sum


def block() -> MessagePassing:
    torch.manual_seed(0)
    return MessagePassing(8)


def test_scatter_sum_adds_repeated_rows() -> None:
    total = scatter_sum(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([2, 0, 2]), 3)
    assert total.tolist() == [[2.0], [0.0], [5.0]]


def test_permuting_the_nodes_permutes_the_result() -> None:
    nodes, edges = torch.randn(5, 8), torch.tensor([[1, 2, 3, 3], [0, 0, 1, 4]])
    order = torch.randperm(5)
    place = torch.argsort(order)
    plain = block()(nodes, edges, edges.flip(0))
    permuted = block()(nodes[order], place[edges], place[edges].flip(0))
    torch.testing.assert_close(permuted, plain[order])


def test_a_message_reaches_both_ends_of_an_edge_and_nobody_else() -> None:
    """Edge 0 -> 1 (node 0 included: a prototype lost its edges); node 2 stands alone."""
    nodes, incoming = torch.randn(3, 8), torch.tensor([[1], [0]])
    none = torch.zeros(2, 0, dtype=torch.int64)
    layer = block()
    alone, joined = layer(nodes, none, none), layer(nodes, incoming, incoming.flip(0))
    assert not torch.allclose(alone[0], joined[0])
    assert not torch.allclose(alone[1], joined[1])
    torch.testing.assert_close(alone[2], joined[2])


def test_the_direction_of_an_edge_matters() -> None:
    nodes, edge = torch.randn(2, 8), torch.tensor([[1], [0]])
    layer = block()
    assert not torch.allclose(layer(nodes, edge, edge.flip(0)), layer(nodes, edge.flip(0), edge))
