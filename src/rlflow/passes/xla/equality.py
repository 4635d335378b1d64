"""Two programs run on the same drawn inputs, and what their outputs differ in beyond rounding.

The tolerance is that of `rlflow.equivalence`, taken from the original alone: 16 epsilons of its coarsest float type
times the square root of one and the longest chain of operations that sum. Both programs are compiled as usual.
"""

from __future__ import annotations

import math

import numpy as np

from rlflow.equivalence.difference import differences
from rlflow.equivalence.tolerance import TOLERANCE_EPSILONS
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.passes.xla.compiler import compiled, on_device, run
from rlflow.passes.xla.program_inputs import draw_program_inputs

_EPSILONS = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
_SUMMING = frozenset(
    {"dot", "convolution", "reduce", "reduce-window", "select-and-scatter", "scatter", "while", "call", "conditional"}
    | {"batch-norm-training", "batch-norm-grad", "batch-norm-inference"}
)


def difference(graph: Graph, original: bytes, program: bytes, seed: int) -> str:
    """Return in what the outputs of `program` differ from those of `original`, which `graph` is of, or ""."""
    inputs = on_device(draw_program_inputs(graph, seed))
    expected, actual = run(compiled(original), inputs), run(compiled(program), inputs)
    if len(expected) != len(actual):
        return f"the program has {len(actual)} outputs, should have {len(expected)}"
    pairs = differences(_named(expected), _named(actual), tolerance(graph))
    return "; ".join(each.problem for each in pairs if each.problem)


def tolerance(graph: Graph) -> float:
    """Return the largest error that rounding explains, relative to an output's largest value."""
    epsilons = [
        _EPSILONS[tensor_type.dtype]
        for node in graph.nodes.values()
        for tensor_type in node.types
        if tensor_type is not None and tensor_type.dtype in _EPSILONS
    ]
    return TOLERANCE_EPSILONS * max(epsilons, default=0.0) * math.sqrt(1 + _summing_depth(graph))


def _summing_depth(graph: Graph) -> int:
    depth: dict[int, int] = {}
    for identifier in graph.order:
        node = graph.nodes[identifier]
        before = max((depth.get(source, 0) for source in node.sources), default=0)
        depth[identifier] = before + (node.op in _SUMMING)
    return max(depth.values(), default=0)


def _named(outputs: list[np.ndarray]) -> dict[str, np.ndarray]:
    return {str(index): _readable(output) for index, output in enumerate(outputs)}


def _readable(output: np.ndarray) -> np.ndarray:
    """Widen the types that numpy does not count among floats."""
    if output.dtype.kind == "c":
        raise InputError("outputs of complex numbers cannot be compared")
    return output.astype(np.float32) if output.dtype.name == "bfloat16" else output
