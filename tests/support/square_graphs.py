"""Graphs built by hand, and random ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlflow.ir import INPUT, WEIGHT, Graph, Header, Node, Ref, TensorType, make_graph

SQUARE = TensorType("float32", (4, 4))
UNARY = ("Relu", "Tanh", "Neg")
BINARY = ("Add", "Mul", "MatMul", "Sub")


@dataclass(frozen=True)
class Values:
    """A weight's values, known by a name."""

    digest: str

    def array(self) -> np.ndarray:
        return np.full((4, 4), len(self.digest), np.float32)


def node(op: str, *inputs: int | Ref | None, name: str = "", outputs: int = 1, **attributes: object) -> Node:
    refs = tuple(Ref(i) if isinstance(i, int) else i for i in inputs)
    names = tuple(f"{name}{k or ''}" for k in range(outputs))
    return Node(op, refs, attributes, (SQUARE,) * outputs, names)  # type: ignore[arg-type]


def source(name: str = "x") -> Node:
    return Node(INPUT, (), {}, (SQUARE,), (name,))


def weight(digest: str = "w", kind: TensorType = SQUARE) -> Node:
    return Node(WEIGHT, (), {}, (kind,), (digest,), True, Values(digest))


def graph_of(nodes: Sequence[Node], *outputs: int | Ref, opset: int = 17) -> Graph:
    """Nodes are numbered as they stand; the Input nodes among them are the graph's inputs."""
    refs = [Ref(o) if isinstance(o, int) else o for o in outputs]
    inputs = [i for i, n in enumerate(nodes) if n.op == INPUT]
    names = [f"y{k}" for k in range(len(refs))]
    return make_graph(dict(enumerate(nodes)), inputs, refs, names, Header(opset))


def random_graph(seed: int, size: int = 20) -> Graph:
    """A random expression of 4 x 4 matrices over two inputs and two weights, with sharing, constant parts and a Split
    node of two results.
    """
    rng = np.random.default_rng(seed)
    nodes = [source("x"), source("z"), weight("w"), weight("ww")]
    for place in range(size):
        known = [Ref(i, k) for i, n in enumerate(nodes) for k in range(len(n.types))]
        a, b = (known[k] for k in rng.integers(0, len(known), 2))
        constant = nodes[a.node].constant and nodes[b.node].constant
        if rng.random() < 0.3:
            made, constant = node(str(rng.choice(UNARY)), a, name=f"n{place}"), nodes[a.node].constant
        elif rng.random() < 0.1:
            made, constant = node("Pair", a, name=f"n{place}_", outputs=2, axis=int(rng.integers(2))), False
            constant = nodes[a.node].constant
        else:
            made = node(str(rng.choice(BINARY)), a, b, name=f"n{place}")
        nodes.append(Node(made.op, made.inputs, made.attributes, made.types, made.names, bool(constant)))
    return graph_of(nodes, Ref(len(nodes) - 1), Ref(len(nodes) - 2), Ref(0))


def renumbered(graph: Graph, seed: int) -> Graph:
    """The same graph with other node numbers, other names, inserted in another order."""
    rng = np.random.default_rng(seed)
    new = dict(zip(graph.nodes, (int(v) for v in rng.permutation(len(graph.nodes)) + 100), strict=True))

    def moved(ref: Ref | None) -> Ref | None:
        return None if ref is None else Ref(new[ref.node], ref.index)

    nodes = {
        new[i]: n.with_inputs(tuple(map(moved, n.inputs))).with_names(tuple(f"{t}'" for t in n.names))
        for i, n in graph.nodes.items()
    }
    shuffled = {i: nodes[i] for i in rng.permutation(list(nodes)).tolist()}
    outputs = [r for r in map(moved, graph.outputs) if r is not None]
    return make_graph(shuffled, [new[i] for i in graph.inputs], outputs, graph.output_names, graph.header)
