"""V sees operators and both directions of every edge, and merging look-alike nodes changes nothing."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.token_env import TokenEnv

from rlflow.representation.graph_arrays import GraphArrays
from rlflow.world_model.graph_level.graph_encoder import GraphBatch, GraphEncoder, quotient

ROUNDS = 3


def encoder() -> GraphEncoder:
    torch.manual_seed(0)
    return GraphEncoder(vocabulary_size=20, num_features=2, width=16, layers=ROUNDS, latent=5).eval()


def plain(graphs: list[GraphArrays]) -> GraphBatch:
    """Every node stands for itself alone."""
    sizes = [graph.num_nodes for graph in graphs]
    starts = np.cumsum(sizes) - sizes
    edges = torch.from_numpy(np.concatenate([graph.edges + start for graph, start in zip(graphs, starts, strict=True)]))
    return GraphBatch(
        op=torch.from_numpy(np.concatenate([graph.op for graph in graphs])),
        features=torch.from_numpy(np.concatenate([graph.features for graph in graphs])),
        incoming=edges.T.flip(0),
        outgoing=edges.T,
        graph=torch.repeat_interleave(torch.arange(len(graphs)), torch.tensor(sizes)),
        node=torch.arange(sum(sizes)),
        count=torch.ones(sum(sizes)),
        num_graphs=len(graphs),
    )


@st.composite
def graphs(draw: st.DrawFn) -> GraphArrays:
    """Random directed graphs with few operators, so that many nodes look alike; parallel edges included."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nodes = draw(st.integers(1, 12))
    edges = rng.integers(0, nodes, (draw(st.integers(0, 15)), 2))
    op = rng.integers(1, 3, nodes)
    return GraphArrays(op, np.stack([op, op * 0.0], axis=1).astype(np.float32), edges)


@settings(max_examples=40)
@given(st.lists(graphs(), min_size=1, max_size=4))
def test_the_quotient_is_exact(batch: list[GraphArrays]) -> None:
    """Sums run in another order, hence float32's tolerance."""
    model = encoder()
    torch.testing.assert_close(model.pool(quotient(batch, ROUNDS)), model.pool(plain(batch)), rtol=1e-4, atol=1e-5)


def test_the_quotient_saves_most_of_the_work_on_repeated_layers() -> None:
    env = TokenEnv(layers=12)
    env.reset()
    batch = quotient([env.arrays()] * 10, ROUNDS)
    assert len(batch.op) < 10 * env.arrays().num_nodes / 20
    assert batch.count.sum() == 10 * env.arrays().num_nodes


@settings(max_examples=20)
@given(graphs(), st.integers(0, 2**32 - 1))
def test_the_order_of_the_nodes_does_not_matter(graph: GraphArrays, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(graph.num_nodes)
    place = np.argsort(order)
    other = GraphArrays(graph.op[order], graph.features[order], place[graph.edges])
    z = encoder().encode([graph, other])
    torch.testing.assert_close(z[0], z[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("edges", [[[0, 1]], [[1, 0]], [[0, 0]], [[0, 1], [0, 1]]])
def test_every_edge_counts_also_those_of_node_zero(edges: list[list[int]]) -> None:
    """A prototype turned the edges of node 0 into self-loops."""
    op, features = np.array([1, 2]), np.zeros((2, 2), dtype=np.float32)
    none = GraphArrays(op, features, np.zeros((0, 2), dtype=np.int64))
    z = encoder().encode([none, GraphArrays(op, features, np.array(edges))])
    assert not torch.allclose(z[0], z[1], atol=1e-4)


def test_the_operator_is_an_embedding_and_no_scalar() -> None:
    """With a scalar, the effect of operator 3 would be fixed by those of 1 and 2: z would lie on a line."""
    features, edges = np.zeros((1, 2), dtype=np.float32), np.zeros((0, 2), dtype=np.int64)
    z = encoder().encode([GraphArrays(np.array([op]), features, edges) for op in (1, 2, 3)])
    first, second = z[1] - z[0], z[2] - z[1]
    assert torch.cosine_similarity(first, second, dim=0) < 0.9


def test_standardisation_over_the_graphs_is_exact() -> None:
    env, rng = TokenEnv(layers=2), np.random.default_rng(0)
    env.reset()
    visited = []
    for _ in range(40):
        rule = rng.choice(np.flatnonzero(env.counts()))
        env.step(int(rule), 0)
        visited.append(env.arrays())
    model = encoder()
    model.set_scale(visited)
    model.standardise_over(visited)
    z = model.encode(visited)
    torch.testing.assert_close(z.mean(dim=0), torch.zeros(5), atol=1e-3, rtol=0)
    torch.testing.assert_close(z.var(dim=0, correction=0), torch.ones(5), atol=1e-3, rtol=0)
