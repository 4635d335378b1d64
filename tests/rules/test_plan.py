"""A rule's side in order: operands first, common parts once, typed, and run on any operands."""

import numpy as np
import pytest

from rlflow.errors import TypeInferenceError
from rlflow.ir import Attributes, Ref, TensorType
from rlflow.ops.domain import FloatDomain
from rlflow.rules.expression import Unproven
from rlflow.rules.pattern import parse
from rlflow.rules.plan import Instance, layout, output_type, plan_of, plan_or_none, run_plan

X = TensorType("float32", (2, 3))


def _instance(attributes: Attributes | None = None) -> Instance:
    return Instance({"x": X, "y": X}, attributes or {}, {})


def test_common_parts_are_one_step_operands_first() -> None:
    term = parse(["Add", ["Relu", "x"], ["Mul", ["Relu", "x"], "y"]])
    plan = plan_of((term, parse(["Relu", "x"])), _instance())
    assert [step.op for step in plan.steps] == ["Relu", "Mul", "Add"]
    assert plan.steps[1].inputs == (Ref(2), Ref(1))
    assert plan.outputs == (Ref(4), Ref(2))
    assert plan.types == (X, X)


def test_outputs_of_one_operator_are_one_step() -> None:
    split = ["Split", {"axis": -1, "split": [1, 2]}, "x"]
    plan = plan_of(tuple(parse(["@", i, split]) for i in (0, 1)), _instance())
    assert len(plan.steps) == 1
    assert [kind.shape for kind in plan.types] == [(2, 1), (2, 2)]
    with pytest.raises(TypeInferenceError, match="has no output 2"):
        output_type([plan.steps[0].types], Ref(0, 2))


def test_attributes_are_computed_for_the_instance() -> None:
    term = parse(["Transpose", {"perm": "?p"}, "x"])
    plan = plan_of((term,), _instance({"?p": (1, 0)}))
    assert plan.steps[0].attributes["perm"] == (1, 0)
    assert plan.types == (TensorType("float32", (3, 2)),)


def test_what_is_not_well_typed_has_no_plan() -> None:
    term = parse(["MatMul", "x", "y"])
    with pytest.raises(TypeInferenceError):
        plan_of((term,), _instance())
    assert plan_or_none(layout((term,), ("x", "y")), _instance()) is None
    unbound = parse(["Transpose", {"perm": "?p"}, "x"])
    with pytest.raises((Unproven, KeyError)):
        plan_of((unbound,), _instance())


def test_running_a_plan_is_computing_its_terms() -> None:
    plan = plan_of((parse(["Sub", ["Relu", "x"], "y"]), parse(["Relu", "x"])), _instance())
    x, y = np.random.default_rng(0).standard_normal((2, 2, 3)).astype(np.float32)
    difference, relu = run_plan(plan, [x, y], FloatDomain())
    assert np.array_equal(relu, np.maximum(x, 0))
    assert np.array_equal(difference, np.maximum(x, 0) - y)


def test_an_instance_gives_literals_and_indices_in_the_shape_of_their_variable() -> None:
    instance = Instance({"x": X, "i": X}, {}, {"x": 0.5}, {"i": np.zeros((2, 3))})
    given = instance.given("x")
    assert given is not None
    assert given.tolist() == [[0.5] * 3] * 2
    assert instance.given("i") is instance.indices["i"]
    assert Instance({"x": X}, {}, {}).given("x") is None
    assert instance.key == (X, X)
