"""Constructors come from the registry and check what they are given."""

import json
from collections.abc import Callable

import pytest

from rlflow.errors import RuleError
from rlflow.ops.registry import OPERATORS
from rlflow.rules import pattern
from rlflow.rules.dsl import OperatorConstructor, attribute, microsoft, numbers, operators, split, tensor
from rlflow.rules.dsl.operators import KIND_OF, Add, Clip, Concat, Conv, Relu, Slice, Softmax, Split, Transpose
from rlflow.rules.dsl.tensors import as_tensor
from rlflow.rules.dsl.values import lifted
from rlflow.rules.library import Library

X, Y = tensor("x"), tensor("y")
P, S = attribute("p", "ints"), attribute("s", "float")


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_has_a_constructor_that_knows_its_defaults(name: str) -> None:
    domain, _, kind = name.rpartition(".")
    made = getattr(microsoft if domain else operators, kind)
    assert made == OperatorConstructor(name)
    assert set(OPERATORS[name].defaults) <= made.takes
    for attribute_name, value in OPERATORS[name].defaults.items():
        assert made._value(attribute_name, value).kind == KIND_OF.get(attribute_name, lifted(value).kind)


def test_all_that_the_library_writes_can_be_written(library: Library) -> None:
    """Every application of the 716 rules, enumerated ones included, passes the constructors' checks."""
    nodes = {
        node
        for rule in library.rules
        for node in pattern.operators(*rule.source, *rule.target)
        if node.op != "Constant"
    }
    for node in nodes:
        names = {name for name, _ in node.attributes}
        made = OperatorConstructor(node.op)
        assert names <= made.takes, node
        assert set(made.requires) <= names, node
    assert len(nodes) > 500


@pytest.mark.parametrize(
    ("term", "notation"),
    [
        (Relu(X), ["Relu", "x"]),
        (Transpose(X, perm=P), ["Transpose", {"perm": "?p"}, "x"]),
        (Softmax(X, axis=-1), ["Softmax", "x"]),
        (Add(X, 0.5), ["Add", "x", ["Constant", {"value_float": 0.5}]]),
        (Add(X, S), ["Add", "x", ["Constant", {"value_float": "?s"}]]),
        (numbers([1.0, 2.0]), ["Constant", {"value_floats": [1.0, 2.0]}]),
        (Split(X, axis=0, split=P)[1], ["@", 1, ["Split", {"split": "?p"}, "x"]]),
        (split(X, 0, 1, X.dim(0) - 1)[0], ["@", 0, ["Split", {"split": ["list", 1, ["+", ["dim", "x", 0], -1]]}, "x"]]),
        (microsoft.QuickGelu(X, alpha=1.0), ["com.microsoft.QuickGelu", {"alpha": 1.0}, "x"]),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, list) else "",
)
def test_a_term_is_its_notation(term: object, notation: list[object]) -> None:
    written = as_tensor(term).term  # type: ignore[arg-type]
    assert pattern.to_json(written) == notation
    assert pattern.parse(notation) == written


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (lambda: operators.Sofmax, "no operator Sofmax: did you mean Softmax?"),
        (lambda: microsoft.Relu, "no operator com.microsoft.Relu"),
        (lambda: Relu(X, Y), "Relu takes 1 operands, not 2"),
        (lambda: Add(X), "Add takes 2 operands, not 1"),
        (lambda: Conv(X), "Conv takes 2 to 3 operands, not 1"),
        (lambda: Transpose(X, prm=[1, 0]), "Transpose has no attribute 'prm': its attributes are perm"),
        (lambda: Relu(X, axis=1), "its attributes are none"),
        (lambda: Transpose(X), "Transpose needs the attribute 'perm'"),
        (lambda: Transpose(X, perm=1), "'perm' is of the type 'ints', and 1 of 'int'"),
        (lambda: Softmax(X, axis=P), "'axis' is of the type 'int'"),
        (lambda: Clip(X, min=0, max=1), "'max' is of the type 'float'|'min' is of the type 'float'"),
        (lambda: Slice(X, axes=[0], starts=[0], ends=[1]), "needs the attribute 'steps'"),
        (lambda: Add(X, 1), "expected a tensor or a float"),
        (lambda: X[0], "only an operator has several outputs"),
        (lambda: Relu(X).dim(0), "may use the dimensions of what it names"),
        (lambda: list(Concat(X, Y, axis=0)), "take each by its number"),
    ],
)
def test_a_mistake_is_told_where_it_is_made(mistake: Callable[[], object], told: str) -> None:
    with pytest.raises(RuleError, match=told):
        mistake()
