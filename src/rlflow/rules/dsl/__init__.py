"""The language of declared rules.

    from rlflow.rules.dsl import Rewrite, Tensor, rule
    from rlflow.rules.dsl.operators import Relu

    @rule("relu-once")
    def relu_once(x: Tensor) -> Rewrite:
        "A second Relu changes nothing."
        return Rewrite(Relu(Relu(x)), Relu(x))

A rule is a function of tensors and attributes that returns two sides: `declarations` says how it is read, `parameters`
and `domains` what its parameters may be, `operators` what its sides are made of, and `values` which conditions there
are. Everything is checked when the file is imported. docs/rules.md teaches the language by examples.
"""

from rlflow.rules.dsl.declarations import Declaration, Rewrite, declarations, false_control, law, laws, rule, rules
from rlflow.rules.dsl.domains import (
    CONSTANT,
    LITERAL,
    Attribute,
    Attributes,
    AxisOf,
    Choice,
    GroupsOf,
    Integers,
    Partition,
    PermutationOf,
    Shape,
    ShapeOf,
    Sizes,
    Together,
    Uniform,
    attribute,
    tensor,
)
from rlflow.rules.dsl.operators import OperatorConstructor, split
from rlflow.rules.dsl.tensors import Operand, Tensor, numbers
from rlflow.rules.dsl.values import Condition, Number, Value, ints, is_even, join, reads_some, total

__all__ = [
    "CONSTANT",
    "LITERAL",
    "Attribute",
    "Attributes",
    "AxisOf",
    "Choice",
    "Condition",
    "Declaration",
    "GroupsOf",
    "Integers",
    "Number",
    "Operand",
    "OperatorConstructor",
    "Partition",
    "PermutationOf",
    "Rewrite",
    "Shape",
    "ShapeOf",
    "Sizes",
    "Tensor",
    "Together",
    "Uniform",
    "Value",
    "attribute",
    "declarations",
    "false_control",
    "ints",
    "is_even",
    "join",
    "law",
    "laws",
    "numbers",
    "reads_some",
    "rule",
    "rules",
    "split",
    "tensor",
    "total",
]
