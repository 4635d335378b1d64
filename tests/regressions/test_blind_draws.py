"""Pairs of models that agree on 1 to 4, or on standard normal numbers, and differ elsewhere; and pairs that are equal.

After apache/tvm#20281 and #19533, onnx/onnx#6003 and the many reports of tools that turned ReLU6 into ReLU. The name of
each pair says what must be drawn to tell it apart.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from support.small_models import build_model

from rlflow.equivalence.compare import compare

BOOL, FLOAT, HALF, INT8, INT32, INT64, UINT8 = (
    getattr(TensorProto, name) for name in "BOOL FLOAT FLOAT16 INT8 INT32 INT64 UINT8".split()
)
node = helper.make_node
SAME = [node("Identity", ["x"], ["y"])]


def one(kind: str, *others: str, **attributes: object) -> list[NodeProto]:
    return [node(kind, ["x", *others], ["y"], **attributes)]


def where(question: NodeProto, *branches: str) -> list[NodeProto]:
    return [question, node("Where", ["g", *branches], ["y"])]


def branches(then: str, otherwise: str) -> list[NodeProto]:
    bodies = [
        helper.make_graph([node(kind, ["x"], ["b"])], kind, [], [helper.make_tensor_value_info("b", FLOAT, None)])
        for kind in (then, otherwise)
    ]
    return [node("If", ["z"], ["y"], then_branch=bodies[0], else_branch=bodies[1])]


@dataclass(frozen=True)
class Pair:
    left: list[NodeProto]
    right: list[NodeProto]
    element: int = FLOAT
    output: int = 0
    shape: tuple[int, ...] = (64,)
    more: tuple[tuple[str, int, list[int]], ...] = ()
    stored: dict[str, object] = field(default_factory=dict)
    draws: int = 3

    def models(self) -> tuple[ModelProto, ModelProto]:
        stored = {name: np.asarray(value) for name, value in self.stored.items()}
        inputs = [("x", self.element, list(self.shape)), *self.more]
        outputs = [("y", self.output or self.element, None)]
        left, right = (build_model(nodes, inputs, outputs, stored, opset=18) for nodes in (self.left, self.right))
        return left, right


number = np.float32
PAIRS = {
    # The four of the report.
    "negative int64": Pair(one("Abs"), SAME, INT64),
    "negative int8": Pair(one("Relu"), SAME, INT8),
    "beyond a bound": Pair(one("Clip", "a", "b"), one("Relu"), stored={"a": number(0), "b": number(6)}),
    "beyond a threshold": Pair(
        where(node("Greater", ["x", "a"], ["g"]), "b", "x"), SAME, stored={"a": number(10), "b": number(0)}
    ),
    # Edges of integers.
    "upper edge of uint8": Pair(one("Min", "a"), SAME, UINT8, stored={"a": np.uint8(254)}),
    "lower edge of int32": Pair(
        [node("Abs", ["x"], ["m"]), node("Max", ["m", "a"], ["y"])], one("Abs"), INT32, stored={"a": np.int32(0)}
    ),
    "more than 32 bits": Pair(
        [node("Cast", ["x"], ["m"], to=INT32), node("Cast", ["m"], ["y"], to=INT64)], SAME, INT64
    ),
    "high bits": Pair(one("BitwiseAnd", "a"), SAME, INT32, stored={"a": np.int32(2**20 - 1)}),
    "sign of a remainder": Pair(one("Mod", "a"), one("Mod", "a", fmod=1), INT64, stored={"a": np.int64(7)}),
    "sign of a divisor": Pair(one("Mod", "z"), one("Mod", "z", fmod=1), INT64, more=(("z", INT64, [64]),)),
    "one number of all": Pair(
        where(node("Equal", ["x", "a"], ["g"]), "b", "x"), SAME, INT64, stored={"a": np.int64(42), "b": np.int64(0)}
    ),
    "a constant on small integers": Pair(
        [node("Greater", ["x", "a"], ["g"]), node("Cast", ["g"], ["y"], to=INT64)],
        one("Mul", "b"),
        INT64,
        stored={"a": np.int64(10**6), "b": np.int64(0)},
    ),
    # Truths and branches.
    "truths": Pair(one("And", "z"), one("Or", "z"), BOOL, more=(("z", BOOL, [64]),)),
    "then": Pair(branches("Abs", "Relu"), branches("Identity", "Relu"), more=(("z", BOOL, []),)),
    "otherwise": Pair(branches("Relu", "Abs"), branches("Relu", "Identity"), more=(("z", BOOL, []),)),
    # Bounds and thresholds by nature, by attribute, behind other operators.
    "hard sigmoid": Pair(
        one("HardSigmoid"),
        [node("Mul", ["x", "a"], ["m"]), node("Add", ["m", "b"], ["y"])],
        stored={"a": number(0.2), "b": number(0.5)},
    ),
    "hard swish": Pair(
        one("HardSwish"),
        [node("Div", ["x", "a"], ["m"]), node("Add", ["m", "b"], ["n"]), node("Mul", ["x", "n"], ["y"])],
        stored={"a": number(6), "b": number(0.5)},
    ),
    "a thresholded one": Pair(one("ThresholdedRelu", alpha=50.0), one("Mul", "a"), stored={"a": number(0)}),
    "a slight slope": Pair(one("LeakyRelu", alpha=1e-4), one("Relu")),
    "saturation": Pair(
        [node("QuantizeLinear", ["x", "a", "b"], ["q"]), node("DequantizeLinear", ["q", "a", "b"], ["y"])],
        [node("Div", ["x", "a"], ["m"]), node("Round", ["m"], ["n"]), node("Mul", ["n", "a"], ["y"])],
        stored={"a": number(0.5), "b": np.int8(3)},
    ),
    "overflow of a narrow type": Pair(
        [node("Cast", ["x"], ["m"], to=HALF), node("Cast", ["m"], ["y"], to=FLOAT)], SAME
    ),
    "behind a scale": Pair(
        [node("Mul", ["x", "c"], ["m"]), node("Clip", ["m", "a", "b"], ["y"])],
        one("Mul", "c"),
        stored={"a": number(-5), "b": number(5), "c": number(1e-3)},
    ),
    "behind a product": Pair(
        [node("MatMul", ["x", "w"], ["m"]), node("Clip", ["m", "a", "b"], ["y"])],
        [node("MatMul", ["x", "w"], ["m"]), node("Relu", ["m"], ["y"])],
        shape=(4, 16),
        stored={"a": number(0), "b": number(20), "w": np.eye(16, dtype=np.float32) / 2},
    ),
    "one bound for each element": Pair(one("Min", "a"), SAME, stored={"a": np.linspace(8, 20, 64, dtype=np.float32)}),
    "a constant node": Pair([node("Constant", [], ["c"], value_float=12.0), *one("Min", "c")], SAME),
    # On the threshold, and between two whole numbers.
    "equality": Pair(one("Greater", "a"), one("GreaterOrEqual", "a"), output=BOOL, stored={"a": number(2.7)}),
    "the sign of zero": Pair(
        one("Sign"),
        where(node("GreaterOrEqual", ["x", "a"], ["g"]), "b", "c"),
        stored={"a": number(0), "b": number(1), "c": number(-1)},
    ),
    "half to even": Pair(
        one("Round"), [node("Add", ["x", "a"], ["m"]), node("Floor", ["m"], ["y"])], stored={"a": number(0.5)}
    ),
}
EXCEPTIONAL = {
    "nan replaced": Pair(where(node("IsNaN", ["x"], ["g"]), "a", "x"), SAME, stored={"a": number(0)}),
    "nan compared": Pair(where(node("Greater", ["x", "a"], ["g"]), "x", "a"), one("Relu"), stored={"a": number(0)}),
    "nan negated": Pair(
        [node("Less", ["x", "a"], ["g"]), node("Not", ["g"], ["y"])],
        one("GreaterOrEqual", "a"),
        output=BOOL,
        stored={"a": number(0)},
    ),
    "infinity replaced": Pair(where(node("IsInf", ["x"], ["g"]), "a", "x"), SAME, stored={"a": number(0)}),
    "the lowest float": Pair(one("Max", "a"), SAME, stored={"a": np.finfo(np.float32).min}),
    "nan through a sum": Pair(
        [node("MatMul", ["x", "w"], ["m"]), node("IsNaN", ["m"], ["g"]), node("Where", ["g", "a", "m"], ["y"])],
        [node("MatMul", ["x", "w"], ["y"])],
        shape=(4, 16),
        stored={"a": number(0), "w": np.eye(16, dtype=np.float32)},
    ),
}
EQUAL = {
    "relu twice": Pair([node("Relu", ["x"], ["m"]), node("Relu", ["m"], ["y"])], one("Relu")),
    "bounds in another order": Pair(
        [node("Min", ["x", "b"], ["m"]), node("Max", ["m", "a"], ["y"])],
        one("Clip", "a", "b"),
        stored={"a": number(0), "b": number(6)},
    ),
    "sums in another order": Pair(
        [node("Add", ["x", "z"], ["m"]), node("Add", ["m", "a"], ["n"]), node("Clip", ["n", "a", "b"], ["y"])],
        [node("Add", ["z", "a"], ["m"]), node("Add", ["x", "m"], ["n"]), node("Clip", ["n", "a", "b"], ["y"])],
        more=(("z", FLOAT, [64]),),
        stored={"a": number(0.1), "b": number(10)},
    ),
    "a scale on either side of a threshold": Pair(
        [node("Mul", ["x", "c"], ["m"]), node("Greater", ["m", "a"], ["g"]), node("Where", ["g", "b", "x"], ["y"])],
        [node("Greater", ["x", "d"], ["g"]), node("Where", ["g", "b", "x"], ["y"])],
        stored={"a": number(3), "b": number(0), "c": number(0.3), "d": number(10)},
    ),
    "whole numbers around their edges": Pair(
        [node("Add", ["x", "a"], ["m"]), node("Sub", ["m", "a"], ["y"])], SAME, INT32, stored={"a": np.int32(2**30)}
    ),
    "products in another order": Pair(
        [node("MatMul", ["x", "w"], ["m"]), node("MatMul", ["m", "w"], ["n"]), node("Clip", ["n", "a", "b"], ["y"])],
        [node("MatMul", ["w", "w"], ["m"]), node("MatMul", ["x", "m"], ["n"]), node("Clip", ["n", "a", "b"], ["y"])],
        shape=(4, 16),
        stored={
            "a": number(-5),
            "b": number(5),
            "w": np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32),
        },
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_models_that_differ_are_told_apart(name: str) -> None:
    """By finite inputs, and of every seed: not vacuous, since each model equals itself on the same ones."""
    left, right = PAIRS[name].models()
    for seed in range(4):
        assert not compare(left, right, seed=seed).equivalent
        assert compare(left, left, seed=seed).equivalent


@pytest.mark.parametrize("name", EXCEPTIONAL)
def test_models_that_differ_in_what_is_no_finite_number_are_told_apart(name: str) -> None:
    """And only by such inputs, which is why they are drawn."""
    left, right = EXCEPTIONAL[name].models()
    assert compare(left, right).equivalent
    for seed in range(4):
        assert not compare(left, right, seed=seed, exceptional=True).equivalent
        assert compare(left, left, seed=seed, exceptional=True).equivalent


@pytest.mark.parametrize("name", EQUAL)
def test_models_that_are_equal_stay_so(name: str) -> None:
    """Where rounding decides on which side of a bound a number falls, none is drawn so near to it."""
    left, right = EQUAL[name].models()
    for seed in range(20):
        report = compare(left, right, seed=seed, exceptional=True)
        assert report.equivalent, report.summary
        assert report.non_vacuous_draws
