"""Results that must be equal bit for bit: those that the same kernels compute, or that all kernels round alike.

ONNX Runtime computes what a model computes; numpy computes the constant expressions that an export folds. IEEE 754
fixes the bits of a sum of two numbers, and moving data rounds nothing; but a sum of many numbers depends on its order,
which each library chooses by the processor.
"""

from rlflow.ir import Graph
from rlflow.ir.node import WEIGHT

_MOVES_DATA = frozenset(
    "Concat Expand Flatten Gather Identity Pad Reshape Slice Split Squeeze Transpose Unsqueeze".split()
)
_ROUNDS_ONCE = frozenset("Abs Add Clip Div Max Min Mul Neg Relu Sqrt Sub Where".split())


def only_exact_arithmetic_is_folded(graph: Graph) -> bool:
    """Whether the constants that an export of the graph evaluates have the same bits on every processor."""
    folded = {node.op for node in graph.nodes.values() if node.constant and node.op != WEIGHT}
    return folded <= _MOVES_DATA | _ROUNDS_ONCE
