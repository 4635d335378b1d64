"""Tiny graphs whose best form is known, each beside that form: same interface, function and drawn weights.

A search or an agent can be tested against the truth: `build("tiny_scale")` has a Mul, a MatMul and a Div, and
`optimum("tiny_scale")` is the one MatMul into whose weight both scales fold.

The invariant: a model and its optimum compute the same from the same inputs, up to rounding, since both draw their
weights from the same seed under the same names.
"""

from functools import reduce
from itertools import pairwise
from math import sqrt

import numpy as np
from onnx import ModelProto

from rlflow.zoo.builder import GraphBuilder, lengths, normal

_SCALE_BEFORE = 0.3


def tiny_chain(
    *, rows: int = 32, width: int = 64, inner: int = 256, length: int = 4, seed: int = 0, opset: int = 17
) -> ModelProto:
    """A chain of MatMuls by `length` constant weights, in turn width x inner and inner x width.

    Input x (rows, width), output y. Weights that are folded at load time cost nothing at run time. The best form is
    one MatMul, unless inner is below half of width and the length even: then folding everything makes the graph slower,
    and the best form is two MatMuls that go through the narrow width once.
    """
    b, x = _start("tiny_chain", (rows, width), seed, opset)
    widths = _chain_widths(width, inner, length)
    for weight in _chain_weights(b, widths):
        x = b.node("MatMul", x, weight, scope="chain")
    b.output("y", x, (rows, widths[-1]))
    return b.finish()


def tiny_chain_optimum(
    *, rows: int = 32, width: int = 64, inner: int = 256, length: int = 4, seed: int = 0, opset: int = 17
) -> ModelProto:
    """The best form of tiny_chain: the fewest multiplications and, among such forms, the fewest MatMuls."""
    b, x = _start("tiny_chain", (rows, width), seed, opset)
    widths = _chain_widths(width, inner, length)
    cuts = _best_cuts(widths)
    for index, (begin, end) in enumerate(pairwise(cuts)):
        factors = [_chain_values(b, widths, i) for i in range(begin, end)]
        x = b.node("MatMul", x, b.initialiser(f"chain/folded_{index}", _product(factors)), scope="chain")
    b.output("y", x, (rows, widths[-1]))
    return b.finish()


def tiny_merge(*, rows: int = 8, width: int = 64, branches: int = 3, seed: int = 0, opset: int = 17) -> ModelProto:
    """MatMuls that share an input, as query, key and value do; the best form is one MatMul and one Split.

    Input x (rows, width), outputs y_0, y_1, ... (rows, width). Two launches are the least, since no single operator has
    these outputs; x is then read once.
    """
    b, x = _start("tiny_merge", (rows, width), seed, opset)
    for branch in range(branches):
        weight = b.initialiser(_branch(branch), _branch_values(b, width, branch))
        b.output(f"y_{branch}", b.node("MatMul", x, weight, scope="merge"), (rows, width))
    return b.finish()


def tiny_merge_optimum(
    *, rows: int = 8, width: int = 64, branches: int = 3, seed: int = 0, opset: int = 17
) -> ModelProto:
    """The best form of tiny_merge: one MatMul by the concatenated weights, and one Split."""
    b, x = _start("tiny_merge", (rows, width), seed, opset)
    joined = np.concatenate([_branch_values(b, width, branch) for branch in range(branches)], axis=1)
    y = b.node("MatMul", x, b.initialiser("merge/joined", joined), scope="merge")
    sizes = b.constant("branch_widths", lengths(*[width] * branches))
    parts = b.multi_output_node("Split", y, sizes, scope="merge", outputs=branches, axis=1)
    for branch, part in enumerate(parts):
        b.output(f"y_{branch}", part, (rows, width))
    return b.finish()


def tiny_transpose(
    *, batch: int = 4, rows: int = 16, columns: int = 32, pairs: int = 2, seed: int = 0, opset: int = 17
) -> ModelProto:
    """Transposes and reshapes that undo each other, `pairs` times, then a MatMul, which alone is the best form.

    Input x (batch, rows, columns), output y (batch, rows, columns).
    """
    b, x = _start("tiny_transpose", (batch, rows, columns), seed, opset)
    flat = b.constant("flat", lengths(batch, rows * columns))
    full = b.constant("full", lengths(batch, rows, columns))
    for _ in range(pairs):
        for _ in range(2):
            x = b.node("Transpose", x, scope="transpose", perm=(0, 2, 1))
        for shape in (flat, full):
            x = b.node("Reshape", x, shape, scope="transpose")
    return _finish_with_projection(b, x, (batch, rows, columns))


def tiny_transpose_optimum(
    *, batch: int = 4, rows: int = 16, columns: int = 32, pairs: int = 2, seed: int = 0, opset: int = 17
) -> ModelProto:
    """The best form of tiny_transpose: its MatMul; a map that is no identity takes at least one launch."""
    del pairs
    b, x = _start("tiny_transpose", (batch, rows, columns), seed, opset)
    return _finish_with_projection(b, x, (batch, rows, columns))


def tiny_scale(*, rows: int = 32, width: int = 64, seed: int = 0, opset: int = 17) -> ModelProto:
    """A scalar Mul before a MatMul and a scalar Div after it; both fold into the weight: one MatMul is best.

    Input x (rows, width), output y (rows, width).
    """
    b, x = _start("tiny_scale", (rows, width), seed, opset)
    x = b.node("Mul", x, b.constant("scale_before", np.float32(_SCALE_BEFORE)), scope="scale")
    x = b.node("MatMul", x, b.initialiser("scale/weight", _scale_values(b, width)), scope="scale")
    x = b.node("Div", x, b.constant("sqrt_width", np.float32(sqrt(width))), scope="scale")
    b.output("y", x, (rows, width))
    return b.finish()


def tiny_scale_optimum(*, rows: int = 32, width: int = 64, seed: int = 0, opset: int = 17) -> ModelProto:
    """The best form of tiny_scale: both scales in the weight; a map that is no identity takes at least one launch."""
    b, x = _start("tiny_scale", (rows, width), seed, opset)
    folded = _scale_values(b, width).astype(np.float64) * _SCALE_BEFORE / sqrt(width)
    x = b.node("MatMul", x, b.initialiser("scale/folded", folded.astype(np.float32)), scope="scale")
    b.output("y", x, (rows, width))
    return b.finish()


def _start(name: str, shape: tuple[int, ...], seed: int, opset: int) -> tuple[GraphBuilder, str]:
    b = GraphBuilder(name, seed=seed, opset=opset)
    return b, b.input("x", shape)


def _chain_widths(width: int, inner: int, length: int) -> list[int]:
    return [inner if i % 2 else width for i in range(length + 1)]


def _chain_values(b: GraphBuilder, widths: list[int], index: int) -> np.ndarray:
    shape = widths[index], widths[index + 1]
    return normal(b.random(f"chain/weight_{index}"), shape, std=1 / sqrt(shape[0]))


def _chain_weights(b: GraphBuilder, widths: list[int]) -> list[str]:
    return [b.initialiser(f"chain/weight_{i}", _chain_values(b, widths, i)) for i in range(len(widths) - 1)]


def _product(factors: list[np.ndarray]) -> np.ndarray:
    """The product of all factors in float64, rounded once."""
    return reduce(np.matmul, [factor.astype(np.float64) for factor in factors]).astype(np.float32)


def _best_cuts(widths: list[int]) -> list[int]:
    """The cuts of the chain into folded weights: the shortest path over widths, by size, then by number of weights."""
    best: list[tuple[int, int, list[int]]] = [(0, 0, [0])]  # to each width: total size, number of weights, cuts
    for end in range(1, len(widths)):
        ways = [
            (size + widths[begin] * widths[end], number + 1, [*cuts, end])
            for begin, (size, number, cuts) in enumerate(best)
        ]
        best.append(min(ways))
    return best[-1][2]


def _branch(index: int) -> str:
    return f"merge/weight_{index}"


def _branch_values(b: GraphBuilder, width: int, index: int) -> np.ndarray:
    return normal(b.random(_branch(index)), (width, width), std=1 / sqrt(width))


def _scale_values(b: GraphBuilder, width: int) -> np.ndarray:
    return normal(b.random("scale/weight"), (width, width), std=1 / sqrt(width))


def _finish_with_projection(b: GraphBuilder, x: str, shape: tuple[int, int, int]) -> ModelProto:
    columns = shape[-1]
    weight = b.parameter("transpose/weight", (columns, columns), std=1 / sqrt(columns))
    b.output("y", b.node("MatMul", x, weight, scope="transpose"), shape)
    return b.finish()
