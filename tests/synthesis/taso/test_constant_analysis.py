"""Constant analysis and lemmas derive what was verified, and nothing else."""

import pytest

from rlflow.ir.tensor_type import TensorType
from rlflow.rules.pattern import parse
from rlflow.synthesis.prune import KnownRules
from rlflow.synthesis.taso.constant_analysis import ConstantAnalysis
from rlflow.synthesis.taso.equation_instances import Constant

SQUARE, PLAIN = TensorType("float32", (3, 3)), TensorType("float32", (2, 3))
TYPES = {"a": PLAIN, "b": SQUARE, "I": SQUARE, "x": TensorType("float32", (2, 3, 1, 1))}


def follows(left, right) -> bool:
    facts = ConstantAnalysis({"I": Constant("Imatmul", SQUARE)}, seed=0)
    return KnownRules().explain_all([(parse(left), parse(right))], TYPES, [facts])


def pooled(kernel: int, *strides: int):
    """The mean of what is in reach, as many zeros around that the image keeps its size at strides of one."""
    pads = [kernel // 2] * 4
    return [
        "AveragePool",
        {"kernel_shape": [kernel] * 2, "strides": list(strides), "pads": pads, "count_include_pad": 1},
        "x",
    ]


TURNED = ["Transpose", {"perm": [1, 0]}, "I"]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (["MatMul", "a", "I"], "a"),
        (["MatMul", "I", "b"], ["MatMul", "b", "I"]),
        (TURNED, "I"),
        (["MatMul", "a", ["Relu", TURNED]], "a"),
        (["Relu", ["Mul", "I", "b"]], ["Mul", "I", ["Relu", "b"]]),
        (pooled(3, 1, 1), pooled(3, 2, 2)),  # of a single point
    ],
)
def test_what_the_field_shows_follows(left, right):
    assert follows(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (["Mul", "b", "I"], "b"),
        (["Add", "I", "I"], "I"),
        (["MatMul", "b", "I"], "I"),
        (["Mul", "I", "b"], ["Mul", "I", ["Relu", "b"]]),
        (pooled(1, 1, 1), pooled(3, 1, 1)),
        # true, but of two operators and no constant: for rules to say
        (["Transpose", {"perm": [1, 0]}, ["Transpose", {"perm": [1, 0]}, "a"]], "a"),
        # true, but of two tensors
        (["MatMul", ["MatMul", "a", "b"], "b"], ["MatMul", "a", ["MatMul", "b", "b"]]),
    ],
)
def test_what_is_false_or_no_fact_does_not(left, right):
    assert not follows(left, right)
