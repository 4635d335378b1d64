"""Constants before and behind weights: after the rules, a model computes with its weights alone."""

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from rlflow.equivalence.compare import compare
from rlflow.ir import Graph
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.rules.declared import constants, linear, preprocessing
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.matching.rewriter import Rewriter

RULES = [*rules_of(preprocessing, constants), *(rule for rule in rules_of(linear) if rule.name == "divide-to-multiply")]
RNG = np.random.default_rng(0)
WEIGHTS = {
    "image": {"scale": (), "mean": (3, 1, 1), "deviation": (1, 3, 1, 1), "f": (4, 3, 2, 2), "b": (4,)},
    "rows": {"mean": (1, 5), "deviation": (5,), "w": (5, 4), "t": (4, 5), "c": (4,), "s": (1, 4), "a": (4,)}
    | {"low": (5, 2), "rank": (2, 4), "shift": (4,), "v": (4,), "g": (5,), "h": (5,)},
}
SHAPES = {"image": (2, 3, 8, 8), "rows": (7, 5), "batch": (2, 7, 5)}
PIXELS = "p = Div(x, scale) q = Sub(p, mean) n = Div(q, deviation)"
COLUMNS = "q = Sub(x, mean) n = Div(q, deviation)"
GEMM = "z = Gemm(x, w, c)"
TURNED = "z = Gemm <transB: int = 1> (x, t, c)"
BATCH = "y = BatchNormalization(z, a, shift, c, v)"
LORA = "l = MatMul(x, low) r = MatMul(l, rank) y = Add(z, r)"
BODIES: dict[tuple[str, str], dict[str, int]] = {
    ("image", f"{PIXELS} y = Conv(n, f, b)"): {"Conv": 1},
    ("image", f"{PIXELS} y = Conv <strides: ints = [2, 2]> (n, f)"): {"Conv": 1},
    # the zeros of a padding have no mean
    ("image", f"{PIXELS} y = Conv <pads: ints = [1, 1, 1, 1]> (n, f, b)"): {"Mul": 1, "Sub": 1, "Conv": 1},
    ("batch", f"{COLUMNS} m = MatMul(n, w) y = Add(m, c)"): {"MatMul": 1, "Sub": 1, "Add": 1},
    ("rows", f"{COLUMNS} y = Gemm(n, w, c)"): {"Gemm": 1},
    ("rows", f"{COLUMNS} y = Gemm <transB: int = 1> (n, t, c)"): {"Gemm": 1},
    ("batch", "m = MatMul(x, w) y = Mul(m, s)"): {"MatMul": 1},
    ("batch", "m = MatMul(x, w) z = Add(m, c) y = Mul(z, a)"): {"MatMul": 1, "Add": 1},
    ("rows", f"{GEMM} o = Mul(z, s) y = Add(o, a)"): {"Gemm": 1},
    ("rows", f"{TURNED} o = Mul(z, s) y = Add(o, a)"): {"Gemm": 1},
    ("rows", f"{GEMM} {BATCH}"): {"Gemm": 1},
    ("rows", f"{TURNED} {BATCH}"): {"Gemm": 1},
    ("rows", f"z = MatMul(x, w) {BATCH}"): {"MatMul": 1, "Add": 1},
    ("batch", f"z = MatMul(x, w) {LORA}"): {"MatMul": 1},
    ("batch", f"m = MatMul(x, w) z = Add(m, c) {LORA}"): {"MatMul": 1, "Add": 1},
    ("rows", f"{GEMM} {LORA}"): {"Gemm": 1},
    ("rows", f"{TURNED} {LORA}"): {"Gemm": 1},
    ("batch", "z = LayerNormalization(x, g, h) o = Mul(z, deviation) y = Add(o, g)"): {"LayerNormalization": 1},
    ("batch", "o = Mul(x, g) p = Add(o, h) q = Mul(p, deviation) y = Add(q, g)"): {"Mul": 1, "Add": 2},
}
"""Inputs and what is made of them, with what is left to do."""


def model(kind: str, body: str) -> onnx.ModelProto:
    """A model whose `body` makes y of x and of the drawn weights that it names."""
    shape = SHAPES[kind]
    made = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 18]> agraph (float[{",".join(map(str, shape))}] x)'
        f" => (float[{','.join('abcd'[: len(shape)])}] y) {{ {body} }}"
    )
    read = {name for node in made.graph.node for name in node.input}
    weights = WEIGHTS["image" if kind == "image" else "rows"]
    drawn = {name: RNG.uniform(0.5, 2.0, size).astype(np.float32) for name, size in weights.items() if name in read}
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


@pytest.mark.parametrize(("kind", "body"), BODIES)
def test_constants_are_in_the_weights(kind: str, body: str) -> None:
    before = model(kind, body)
    graph = rewritten(from_onnx(before))
    left = Counter(graph.nodes[i].op for i in graph.order if not graph.nodes[i].constant)
    assert {op: count for op, count in left.items() if op != "Input"} == BODIES[kind, body]
    assert compare(before, to_onnx(graph)).equivalent
