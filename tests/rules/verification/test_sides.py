"""Many cases of a rule as one graph: each side of each case computes there what it computes by itself."""

import numpy as np

from rlflow.ir import TensorType, validate
from rlflow.ops.domain import FloatDomain
from rlflow.ops.reference import evaluate
from rlflow.rules.pattern import parse
from rlflow.rules.plan import Instance, plan_of, run_plan
from rlflow.rules.verification.sides import Sides, as_graph

SOURCE, TARGET = parse(["Mul", ["Add", "x", "y"], "z"]), parse(["Add", ["Mul", "x", "z"], ["Mul", "y", "z"]])


def _sides(*shape: int) -> Sides:
    instance = Instance({name: TensorType("float32", shape) for name in "xyz"}, {}, {})
    return Sides(instance, plan_of((SOURCE,), instance), plan_of((TARGET,), instance))


def test_outputs_are_those_of_each_side_of_each_case_in_order() -> None:
    """Inputs and shapes differ from case to case, so that no output could stand for another."""
    cases = [_sides(2, 3), _sides(4), _sides()]
    graph = as_graph(cases)
    validate(graph)
    rng = np.random.default_rng(0)
    operands = [
        [rng.standard_normal(kind.shape).astype(np.float32) for kind in c.instance.types.values()] for c in cases
    ]
    feeds = {f"{name}_{i}": value for i, case in enumerate(operands) for name, value in zip("xyz", case, strict=True)}
    found = list(evaluate(graph, feeds).values())
    wanted = [
        value
        for case, given in zip(cases, operands, strict=True)
        for side in (case.source, case.target)
        for value in run_plan(side, given, FloatDomain())
    ]
    assert len(found) == len(wanted) == 6
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_the_opset_is_as_new_as_the_operators_need() -> None:
    instance = Instance({"x": TensorType("float32", (2,))}, {}, {})
    gelu = plan_of((parse(["Gelu", "x"]),), instance)
    assert as_graph([_sides(1)]).header.opset == 21
    assert as_graph([Sides(instance, gelu, gelu)]).header.opset >= 20
