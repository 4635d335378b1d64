"""Attention on graphs: closed forms, and that it reaches one step far and no further."""

import torch
from torch import Tensor

from rlflow.nn.graph_attention import EdgeAndNodeUpdate, GraphAttention, neighbour_softmax

MESSAGES = torch.tensor([[0, 1], [1, 2], [0, 2], [2, 3]])
"""0 -> 1 -> 2 -> 3 and 0 -> 2; node 0 hears nobody."""
EACH = torch.arange(4)
"""Every message has a kind of its own."""


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_the_softmax_is_that_of_each_neighbourhood() -> None:
    """Beside torch's own, node by node; node 2 hears two and itself, node 0 itself alone."""
    scores, own, hearer = 30 * drawn(4, 3), 30 * drawn(4, 3, seed=1), MESSAGES[:, 1]
    weight, own_weight = neighbour_softmax(scores, own, hearer)
    for node in range(4):
        expected = torch.softmax(torch.cat([own[node : node + 1], scores[hearer == node]]), dim=0)
        torch.testing.assert_close(own_weight[node], expected[0])
        torch.testing.assert_close(weight[hearer == node], expected[1:])


def test_one_head_is_the_formula_of_the_paper() -> None:
    """With edges that say nothing and identities around it: h + silu(sum_j alpha_ij h_j)."""
    layer = GraphAttention(3, heads=1)
    with torch.no_grad():
        for linear in (layer.value, layer.update):
            linear.weight.copy_(torch.eye(3))
            linear.bias.zero_()
    nodes, kinds = drawn(4, 3), torch.zeros(1, 3)
    h = torch.nn.functional.layer_norm(nodes, (3,))
    sends, hears = h @ layer.sends.weight[0], h @ layer.hears.weight[0]
    heard = [torch.tensor([i, *MESSAGES[MESSAGES[:, 1] == i, 0].tolist()]) for i in range(4)]
    alpha = [torch.softmax(torch.nn.functional.leaky_relu(sends[j] + hears[i], 0.2), 0) for i, j in enumerate(heard)]
    expected = torch.stack([weights @ h[j] for weights, j in zip(alpha, heard, strict=True)])
    torch.testing.assert_close(
        layer(nodes, kinds, torch.zeros(4).long(), MESSAGES), nodes + torch.nn.functional.silu(expected)
    )


def test_a_layer_reaches_those_who_hear_and_nobody_else() -> None:
    layer, nodes, edges = GraphAttention(8, heads=2), drawn(4, 8), drawn(4, 8, seed=1)
    moved = nodes.clone()
    moved[1] += drawn(8, seed=2)  # not a constant, which the norm would take away
    same = (layer(nodes, edges, EACH, MESSAGES) == layer(moved, edges, EACH, MESSAGES)).all(dim=1)
    assert same.tolist() == [True, False, False, True]
    other = edges.clone()
    other[3] += drawn(8, seed=2)
    same = (layer(nodes, edges, EACH, MESSAGES) == layer(nodes, other, EACH, MESSAGES)).all(dim=1)
    assert same.tolist() == [True, True, True, False]


def test_every_parameter_learns_and_gradients_are_those_of_differences() -> None:
    update, layer = EdgeAndNodeUpdate(5, 3, 8).double(), GraphAttention(8, heads=4).double()
    nodes, edges = drawn(4, 5).double().requires_grad_(), drawn(4, 3, seed=1).double().requires_grad_()

    def read(nodes: Tensor, edges: Tensor) -> Tensor:
        wide, along = update(nodes, edges, EACH, MESSAGES[:, 1])
        return layer(wide, along, EACH, MESSAGES)

    assert torch.autograd.gradcheck(read, (nodes, edges))
    read(nodes, edges).square().sum().backward()
    for module in (update, layer):
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())


def test_nodes_hear_the_sum_of_their_edges() -> None:
    """Two equal edges are not one."""
    update = EdgeAndNodeUpdate(5, 3, 8)
    nodes, edge = drawn(2, 5), drawn(1, 3, seed=1)
    once, _ = update(nodes, edge, torch.tensor([0]), torch.tensor([1]))
    twice, along = update(nodes, edge, torch.tensor([0, 0]), torch.tensor([1, 1]))
    torch.testing.assert_close(once[0], twice[0])
    assert not torch.allclose(once[1], twice[1])
    assert along.shape == (1, 8)


def test_a_graph_without_edges_is_read() -> None:
    nodes, none = drawn(3, 8), torch.zeros(0, 2, dtype=torch.int64)
    assert torch.isfinite(GraphAttention(8, heads=2)(nodes, torch.zeros(0, 8), none[:, 0], none)).all()
