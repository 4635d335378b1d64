"""Of applications that differ in constants alone, and give the same, the first stays."""

import numpy as np
from support.strategies import source, weight

from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.redundant import filter_redundant
from rlflow.ir import Header, Node, Ref, make_graph
from rlflow.ops import registry


def test_of_products_with_two_constants_one_is_redundant_once_they_are_equal() -> None:
    """Sums with two inputs are not, and equal products of other operands are not."""
    nodes: list[Node] = [source((2, 2), "x"), source((2, 2), "y")]
    nodes += [weight(np.full((2, 2), value, np.float32)) for value in (1, 2)]
    for operands in ((0, 2), (0, 3), (1, 3), (0, 1)):
        typed = [(Ref(i), nodes[i].types[0], nodes[i].constant) for i in operands]
        nodes.append(registry.apply("MatMul", {}, typed))
    outputs = [Ref(i) for i in range(4, 8)]
    graph = make_graph(dict(enumerate(nodes)), [0, 1], outputs, list("abcd"), Header(17))
    egraph = ModelEGraph.from_graph(graph)
    products = [egraph.class_of[ref] for ref in outputs]
    size = len(egraph)
    filter_redundant(egraph, egraph.rebuild())
    assert not egraph.filtered
    for product in products[1:]:
        egraph.unite(products[0], product)
    filter_redundant(egraph, egraph.rebuild())
    assert egraph.filtered == {products[1]: products[0]}
    assert list(egraph.members(products[0])) == [products[0], products[2], products[3]]
    assert len(egraph) == size - 1
    assert [egraph.standing(product) for product in products] == [products[0], products[0], *products[2:]]
