"""A refusal says why, where, and what would exclude it."""

from rlflow.ir.tensor_type import TensorType
from rlflow.rules.plan import Instance
from rlflow.rules.verification.refutation import Refutation

INSTANCE = Instance({"x": TensorType("float32", (2, "3"))}, {"?k": -1}, {})


def test_it_names_shapes_attributes_and_remedies() -> None:
    told = str(Refutation("the sides differ", INSTANCE, (["<=", 1, ["dim", "x", -1]], ["bounded", "x"])))
    assert told == (
        "the sides differ at shapes {'x': [2, '3']}, attributes {'?k': -1} (excluded by 1 <= dim(x, -1) or bounded(x))"
    )


def test_without_an_instance_the_reason_is_all() -> None:
    assert str(Refutation("it is never typed", None)) == "it is never typed"
