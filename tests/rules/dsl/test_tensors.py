"""Tensors that a rule names have types that it may speak of; numbers stand for stored scalars."""

import pytest

from rlflow.errors import RuleError
from rlflow.rules import pattern
from rlflow.rules.dsl import attribute, numbers, tensor
from rlflow.rules.dsl.operators import Relu, Split
from rlflow.rules.dsl.tensors import as_tensor

X = tensor("x")


def test_a_number_is_the_constant_that_stands_for_it() -> None:
    assert pattern.to_json(as_tensor(0.5).term) == ["Constant", {"value_float": 0.5}]
    assert pattern.to_json(as_tensor(attribute("e", "float")).term) == ["Constant", {"value_float": "?e"}]
    assert pattern.to_json(numbers([0.5, 1.0]).term) == ["Constant", {"value_floats": [0.5, 1.0]}]
    assert as_tensor(X) is X


@pytest.mark.parametrize("operand", [1, "x", [1.0], attribute("k", "int")])
def test_other_values_are_no_operands(operand: object) -> None:
    with pytest.raises(RuleError, match="no operand"):
        as_tensor(operand)  # type: ignore[arg-type]


def test_only_a_named_tensor_has_a_type_at_hand() -> None:
    assert X.index.json == X.number.json == ["value", "x"]
    assert (X.index.kind, X.number.kind) == ("int", "float")
    for asked in (lambda: Relu(X).rank, lambda: Relu(X).shape, lambda: Relu(X).number):
        with pytest.raises(RuleError, match=r"the type of Relu\(x\) is not at hand"):
            asked()


def test_outputs_are_taken_by_number() -> None:
    parts = Split(X, axis=0, split=[1, 2])
    assert pattern.show(parts[1].term) == "Split[split=[1, 2]](x).1"
    assert pattern.operators(parts[0].term, parts[1].term) == {parts.term}
