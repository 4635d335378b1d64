"""Constant expressions count by what they compute, however long the chain."""

from support.square_graphs import SQUARE, graph_of, node, source, weight

from rlflow.ir import Graph, Node, Ref, structural_hash


def test_constant_expressions_count_by_what_they_compute() -> None:
    def folded(op: str, digest: str) -> Graph:
        constant = Node(op, (Ref(1),), {}, (SQUARE,), ("c",), True)
        return graph_of([source(), weight(digest), constant, node("Add", 0, 2)], 3)

    hashes = {structural_hash(folded(op, digest)) for op in ("Neg", "Relu") for digest in ("w", "v")}
    assert len(hashes) == 4


def test_long_chains_of_constants_and_of_nodes() -> None:
    """Deeper than Python's recursion limit."""

    def chain(innermost: str) -> Graph:
        nodes = [source(), weight(), Node(innermost, (Ref(1),), {}, (SQUARE,), ("",), True)]
        nodes += [Node("Neg", (Ref(2 + k),), {}, (SQUARE,), ("",), True) for k in range(3000)]
        nodes.append(node("Add", 0, len(nodes) - 1))
        nodes += [node("Relu", len(nodes) - 1 + k) for k in range(3000)]
        return graph_of(nodes, len(nodes) - 1)

    assert len(chain("Neg").order) == 3001
    assert structural_hash(chain("Neg")) != structural_hash(chain("Relu"))
