"""Terms of data movement, and the rules that a generator makes of one equality of them."""

from dataclasses import replace
from typing import Any

from rlflow.ir.tensor_type import TensorType
from rlflow.rules.verification.verify import VerificationConfig
from rlflow.synthesis.families import MOVEMENT, Family
from rlflow.synthesis.generate import GenerationReport, GeneratorConfig, generate

CONFIG = VerificationConfig()


def some(*operators: str) -> Family:
    """The family with these operators alone, over its tensors of rank 3."""
    chosen = tuple(choice for choice in MOVEMENT.operators if choice.op in operators)
    leaves = tuple(leaf for leaf in MOVEMENT.leaves if leaf.name in "abi")
    return replace(MOVEMENT, name="-".join(operators).lower(), leaves=leaves, operators=chosen)


def found(*operators: str) -> GenerationReport:
    return generate(GeneratorConfig(some(*operators), max_operators=2))


def cut(axis: int, start: int, end: int, x: Any, step: int = 1) -> Any:
    return ["Slice", {"axes": [axis], "starts": [start], "ends": [end], "steps": [step]}, x]


SHAPES = {name: TensorType("float32", (4, 4, 4)) for name in "ab"}
