"""The memory that a run of a model touches: whether it fits into the caches decides how long its kernels take.

working_set_mb(graph)       # 602.0 for BERT-Base, of which the table of words is not read as a whole
"""

from __future__ import annotations

from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref
from rlflow.ops import registry

_DIGITS = 3
_SELECTING = registry.having(lambda traits: traits.selects)
"""Operators that read a part of a tensor."""
_VIEWS = registry.having(lambda traits: traits.view)


def working_set_mb(graph: Graph) -> float:
    """Return megabytes of constants, without those of which nodes only select a part, and of all results.

    The model's own inputs and values of symbolic sizes do not count.
    """
    touched: set[Ref] = set()
    for identifier in graph.order:
        node = graph.nodes[identifier]
        if node.op not in _SELECTING:
            touched.update(ref for ref in node.inputs if ref is not None and graph.nodes[ref.node].constant)
        if node.op not in _VIEWS:
            touched.update(Ref(identifier, index) for index in range(len(node.types)))
    kinds = [graph.type_of(ref) for ref in touched]
    return round(sum(kind.nbytes for kind in kinds if kind is not None and kind.is_static) / 1e6, _DIGITS)
