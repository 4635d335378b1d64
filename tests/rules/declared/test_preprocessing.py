"""Models that normalise their own inputs: after the rules, their first operation reads the input as it is."""

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from rlflow.equivalence.compare import compare
from rlflow.ir import Graph
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.rules.declared import linear, preprocessing
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.matching.rewriter import Rewriter

RULES = [*rules_of(preprocessing), *(rule for rule in rules_of(linear) if rule.name == "divide-to-multiply")]
RNG = np.random.default_rng(0)
IMAGE = {"scale": (), "mean": (3, 1, 1), "deviation": (1, 3, 1, 1), "f": (4, 3, 2, 2), "b": (4,)}
TABLE = {"mean": (1, 5), "deviation": (5,), "w": (5, 4), "t": (4, 5), "c": (4,)}
PIXELS = "a = Div(x, scale) m = Sub(a, mean) n = Div(m, deviation)"
COLUMNS = "m = Sub(x, mean) n = Div(m, deviation)"


def model(kind: dict[str, tuple[int, ...]], body: str, shape: tuple[int, ...]) -> onnx.ModelProto:
    """A model whose `body` makes y of x and of the drawn weights of a kind that it names."""
    made = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 18]> '
        f"agraph (float[{','.join(map(str, shape))}] x) => (float[{','.join('abcd'[: len(shape)])}] y) {{ {body} }}"
    )
    drawn = {name: RNG.uniform(0.5, 2.0, size).astype(np.float32) for name, size in kind.items() if name in body}
    made.graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in drawn.items())
    return made


def rewritten(graph: Graph) -> Graph:
    """The graph once no rule matches any more."""
    rewriter = Rewriter(RULES)
    for _ in range(20):
        match = next((first for first, *_ in filter(None, rewriter.matches(graph))), None)
        if match is None:
            return graph
        graph = rewriter.apply(graph, match)
    raise AssertionError("the rules go round in circles")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (model(IMAGE, f"{PIXELS} y = Conv(n, f, b)", (2, 3, 8, 8)), {"Conv": 1}),
        (model(IMAGE, f"{PIXELS} y = Conv <strides: ints = [2, 2]> (n, f)", (2, 3, 8, 8)), {"Conv": 1}),
        (
            model(IMAGE, f"{PIXELS} y = Conv <pads: ints = [1, 1, 1, 1]> (n, f, b)", (2, 3, 8, 8)),
            {"Mul": 1, "Sub": 1, "Conv": 1},  # zeros of a padding have no mean
        ),
        (model(TABLE, f"{COLUMNS} p = MatMul(n, w) y = Add(p, c)", (7, 5)), {"MatMul": 1, "Sub": 1, "Add": 1}),
        (model(TABLE, f"{COLUMNS} y = Gemm(n, w, c)", (7, 5)), {"Gemm": 1}),
        (model(TABLE, f"{COLUMNS} y = Gemm <transB: int = 1> (n, t, c)", (7, 5)), {"Gemm": 1}),
    ],
    ids=["image", "image without bias", "padded image", "product", "gemm", "transposed gemm"],
)
def test_inputs_are_read_as_they_are(before: onnx.ModelProto, after: dict[str, int]) -> None:
    graph = rewritten(from_onnx(before))
    left = Counter(graph.nodes[i].op for i in graph.order if not graph.nodes[i].constant)
    assert {op: count for op, count in left.items() if op not in ("Input", "Constant")} == after
    assert compare(before, to_onnx(graph)).equivalent
