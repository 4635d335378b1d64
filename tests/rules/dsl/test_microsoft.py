"""Operators of com.microsoft have constructors of their own, apart from those of ONNX with the same name."""

import pytest

from rlflow.errors import RuleError
from rlflow.rules import pattern
from rlflow.rules.dsl import microsoft, operators, tensor


def test_two_operators_of_one_name_are_told_apart() -> None:
    x = tensor("x")
    assert pattern.to_json(microsoft.Gelu(x).term) == ["com.microsoft.Gelu", "x"]
    assert pattern.to_json(operators.Gelu(x).term) == ["Gelu", "x"]


def test_what_the_domain_lacks_is_refused() -> None:
    with pytest.raises(
        RuleError, match=r"no operator com\.microsoft\.FusedMatMull: did you mean com\.microsoft\.FusedMatMul"
    ):
        _ = microsoft.FusedMatMull
