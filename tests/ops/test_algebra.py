"""What operators ask of elements, and rules on elements of every type for which they say that they hold.

Elements are drawn byte by byte: whole numbers over all their range, so that sums and products wrap around, and floats
with NaN and infinities among them. Both sides of a rule must then agree to the byte: they move the same elements, or
compute with whole numbers, which do not round.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from random import Random

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlflow.errors import TypeInferenceError
from rlflow.ir.tensor_type import FLOAT_DTYPES
from rlflow.onnx_io.element_type import element_type
from rlflow.onnx_io.standalone import standalone_model
from rlflow.ops.algebra import ELEMENT_TYPES, QUANTISED, Algebra
from rlflow.ops.domain import Domain, FloatDomain
from rlflow.ops.registry import OPERATORS
from rlflow.ops.schema import Operator
from rlflow.rules import pattern
from rlflow.rules.library import load
from rlflow.rules.plan import plan_of, run_plan
from rlflow.rules.rule import Rule, rule_from_json
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.sides import Sides, as_graph
from rlflow.runtime.session import open_session, run

LIBRARY = load().rules
CERTIFIED = ELEMENT_TYPES[Algebra.NUMBERS]
EVERY_TYPE = sorted(ELEMENT_TYPES[Algebra.NOTHING])
SEEDS = st.integers(0, 2**32 - 1)
_DRAWS = 1000
"""Of some rules the target is typed at few instances."""


def element_types_to_compare(rule: Rule) -> frozenset[str]:
    """Those in which both sides give the same bytes: sums and products of floats are left to the certificate."""
    only_moves = rule.element_types == ELEMENT_TYPES[Algebra.NOTHING]
    return rule.element_types if only_moves else rule.element_types - CERTIFIED


EXACT = [rule for rule in LIBRARY if element_types_to_compare(rule)]


def test_rules_say_for_which_elements_they_hold() -> None:
    """In closed form, after the three laws in the docstring of `ops/algebra.py`."""
    turned = rule_from_json("t", "test", [["Transpose", {"perm": [1, 0]}, ["Transpose", {"perm": [1, 0]}, "x"]]], ["x"])
    factors = rule_from_json("m", "test", [["Mul", "a", ["Mul", "b", "c"]]], [["Mul", "b", ["Mul", "a", "c"]]])
    quotient = rule_from_json("d", "test", [["Div", ["Mul", "a", "b"], "c"]], [["Mul", "a", ["Div", "b", "c"]]])
    moved = ["DequantizeLinear", {"scale": "?s"}, ["Transpose", {"perm": [1, 0]}, "x"]]
    trip = rule_from_json("q", "test", [["QuantizeLinear", {"scale": "?s", "to": "?t"}, moved]], [moved[-1]])
    assert (trip.quantised, trip.element_types) == ({"x"}, {"int8", "uint8"})
    assert quotient.element_types == {"float32", "float64"}
    assert factors.element_types == quotient.element_types | {"int32", "int64"}
    assert turned.element_types == factors.element_types | {
        *("bool", "float16", "bfloat16", "int8", "int16", "uint8", "uint16", "uint32", "uint64")
    }


class _Recorder(FloatDomain):
    """Notes which operations of the algebra an operator is written in; moving elements is none."""

    OPERATIONS = frozenset(name for name in vars(Domain) if not name.startswith("_")) - {"structural"}

    def __init__(self) -> None:
        self.used: set[str] = set()

    def __getattribute__(self, name: str) -> object:
        if name in _Recorder.OPERATIONS:
            object.__getattribute__(self, "used").add(name)
        return object.__getattribute__(self, name)


@cache
def operations() -> Mapping[str, set[str]]:
    """What each operator used of the algebra, on one drawn instance of each rule of the library."""
    used: dict[str, set[str]] = defaultdict(set)
    rng = np.random.default_rng(0)
    for rule in LIBRARY:
        case = _drawn_sides(rule, seed=0)
        ordinary = {name: rng.uniform(1, 2, case.instance.shape(name)) for name in case.instance.types}
        operands = [_given(case, name, value.astype(np.float32)) for name, value in ordinary.items()]
        for side in (case.source, case.target):
            values = [(operand,) for operand in operands]
            for step in side.steps:
                domain = _Recorder()
                arguments = [values[ref.node][ref.index] for ref in step.inputs]
                values.append(OPERATORS[step.op].evaluate(domain, step.attributes, arguments))
                used[step.op] |= domain.used
    return used


def _writes_whole_numbers(operator: Operator) -> bool:
    """Whether ONNX has the operator for int32 and int64 in each version that the library reads."""
    return all({"int32", "int64"} <= _admitted(schema) for schema in _versions(operator))


def _versions(operator: Operator) -> list[onnx.defs.OpSchema]:
    key = operator.domain, operator.op_type
    named = [s for s in onnx.defs.get_all_schemas_with_history() if (s.domain, s.name) == key]
    first = max((s.since_version for s in named if s.since_version <= operator.since), default=0)
    return [schema for schema in named if schema.since_version >= first]


def _admitted(schema: onnx.defs.OpSchema) -> set[str]:
    """The element types of the first operand, of those that an algebra names."""
    (allowed,) = (c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == schema.inputs[0].type_str)
    codes = {name: onnx.TensorProto.DataType.Name(element_type(name)).lower() for name in EVERY_TYPE}
    return {name for name, code in codes.items() if f"tensor({code})" in allowed}


_OF_RINGS = frozenset({"constant", "add", "subtract", "multiply", "negate"})


def least_algebra(operator: Operator) -> Algebra:
    """The least that the operator's meaning asks, from what it is written in. One that reads nothing, and a conversion,
    have results of an element type of their own.
    """
    used = operations()[operator.name]
    if not operator.arity[1] or operator.traits.converts:
        return Algebra.NUMBERS
    if used <= {"constant"}:  # what Pad writes beside the elements
        return Algebra.NOTHING
    if used <= _OF_RINGS and not operator.domain and _writes_whole_numbers(operator):
        return Algebra.RING
    return Algebra.NUMBERS


def test_operators_declare_the_least_that_they_ask() -> None:
    """Not vacuous: every operator but Cast, whose roundings no rule speaks of, occurs in the library."""
    assert {name for name in OPERATORS if name not in operations()} == {"Cast"}
    found = {name: least_algebra(operator) for name, operator in OPERATORS.items() if name != "Cast"}
    assert found == {name: operator.algebra for name, operator in OPERATORS.items() if name != "Cast"}
    assert OPERATORS["Cast"].algebra is Algebra.NUMBERS
    assert {*found.values()} == {*Algebra}


def test_onnx_writes_what_rules_write_for_every_element() -> None:
    """In each version, though bfloat16 came with opset 13. Pad is read of floats alone."""
    moving = [rule for rule in LIBRARY if rule.element_types == ELEMENT_TYPES[Algebra.NOTHING]]
    written = {node.op for rule in moving for node in pattern.operators(*rule.target)}
    assert len(written) >= 8
    for name in written - {"Pad"}:
        for schema in _versions(OPERATORS[name]):
            missing = {*EVERY_TYPE} - _admitted(schema)
            assert missing <= ({"bfloat16"} if schema.since_version < 13 else set()), schema


def _drawn_sides(rule: Rule, seed: int, quantised: Collection[str] = QUANTISED) -> Sides:
    """At the first drawn instance at which the target is typed as the source is, and nothing is empty; and quantised
    numbers, if the rule has any, are of one of these types.
    """
    sampler, random = Sampler(rule), Random(seed)
    cases = (sampler.sides(sampler.draw(random)) for _ in range(_DRAWS))
    return next(
        case
        for case in cases
        if case is not None
        and _has_elements(case)
        and all(case.instance.types[name].dtype in quantised for name in rule.quantised)
    )


def _has_elements(case: Sides) -> bool:
    steps = (*case.source.steps, *case.target.steps)
    return all(t.elements for step in steps for t in step.types)


def sides_of(rule: Rule, dtype: str, seed: int) -> Sides | None:
    """A drawn instance in this element type; None where an operator is not read of such elements."""
    if rule.quantised and dtype not in QUANTISED:
        return None
    drawn = _drawn_sides(rule, seed, (dtype,)).instance
    types = {n: t if n in rule.indices else t._replace(dtype=dtype) for n, t in drawn.types.items()}
    instance = replace(drawn, types=types)
    try:
        return Sides(instance, plan_of(rule.source, instance), plan_of(rule.target, instance))
    except TypeInferenceError:
        return None


def values_of(case: Sides, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The variables' values by name: what the instance gives, and else any bytes."""
    types, shape = case.instance.types, case.instance.shape
    return {name: _given(case, name, _any_bytes(t.dtype, shape(name), rng)) for name, t in types.items()}


def _given(case: Sides, name: str, otherwise: np.ndarray) -> np.ndarray:
    value = case.instance.given(name)
    return otherwise if value is None else value


def _any_bytes(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    values = rng.integers(0, 256, (*shape, kind.itemsize), np.uint8).view(kind).reshape(shape)
    # ONNX Runtime pads float16 in float32, on the way to which a signalling NaN becomes a quiet one.
    return np.where(np.isnan(values), np.float16(np.nan), values) if dtype == "float16" else values


def outcome(case: Sides, values: Mapping[str, np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What the source and the target give by the reference."""
    with np.errstate(all="ignore"):
        source, target = (run_plan(side, list(values.values()), FloatDomain()) for side in (case.source, case.target))
    return source, target


def agree(one: Iterable[np.ndarray], other: Iterable[np.ndarray]) -> bool:
    return all(
        (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()) for a, b in zip(one, other, strict=True)
    )


@settings(max_examples=300)
@given(rule=st.sampled_from(EXACT), data=st.data(), seed=SEEDS)
def test_both_sides_agree_to_the_byte(rule: Rule, data: st.DataObject, seed: int) -> None:
    dtype = data.draw(st.sampled_from(sorted(element_types_to_compare(rule))))
    case = sides_of(rule, dtype, seed)
    if case is None:
        assert dtype not in FLOAT_DTYPES
        assert any(node.op == "Pad" for node in pattern.operators(*rule.source))
        return
    assert case.instance.types[next(iter({*case.instance.types} - rule.indices))].dtype == dtype
    assert agree(*outcome(case, values_of(case, np.random.default_rng(seed))))


@pytest.mark.parametrize("dtype", [name for name in EVERY_TYPE if name != "bfloat16"])  # which Python cannot feed it
def test_onnx_runtime_agrees_about_every_rule(dtype: str) -> None:
    """Which has the kernels: all rules that hold for the type run, at one instance each, in one model."""
    rules = [rule for rule in EXACT if dtype in element_types_to_compare(rule)]
    cases = [case for rule in rules if (case := sides_of(rule, dtype, seed=1)) is not None]
    assert len(cases) >= 60
    rng = np.random.default_rng(0)
    values = [values_of(case, rng) for case in cases]
    feeds = {f"{name}_{number}": value for number, each in enumerate(values) for name, value in each.items()}
    outputs = iter(run(open_session(standalone_model(as_graph(cases)), "as_written"), feeds).values())
    for case, each in zip(cases, values, strict=True):
        expected, _ = outcome(case, each)
        source, target = ([next(outputs) for _ in side.outputs] for side in (case.source, case.target))
        assert agree(expected, source), case.source
        assert agree(expected, target), case.target


def test_onnx_runtime_rounds_sums_of_integers() -> None:
    """For as long as it does, ReduceSum is not among the operators of a ring: it gives 2**53 for 2**53 + 1."""
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        sums (int64[1, 2] x) => (int64[1, 1] y) <int64[1] axis = {-1}> { y = ReduceSum(x, axis) }
    """)
    found = run(open_session(model, "as_written"), {"x": np.array([[2**53, 1]])})
    assert found["y"].item() == 2**53


def differing(rules: Iterable[Rule], dtype: str) -> Iterator[Rule]:
    """The rules that do not hold for elements of this type, whatever they say."""
    for rule in rules:
        case = sides_of(rule, dtype, seed=2)
        if case is not None and not agree(*outcome(case, values_of(case, np.random.default_rng(2)))):
            yield rule


def test_laws_of_numbers_are_false_for_others() -> None:
    """So that the comparisons above can fail: division leaves a rest, and products of halves round and overflow."""
    divided = [rule for rule in LIBRARY if "Div" in operators(rule) <= {"Add", "Sub", "Mul", "Div", "Neg"}]
    wrong = [*differing(divided, "int64")]
    assert len(wrong) >= 5
    assert all("int64" not in rule.element_types for rule in wrong)
    wrong = [*differing((rule for rule in EXACT if "float16" not in rule.element_types), "float16")]
    assert "Mul(a, Mul(b, c)) => Mul(b, Mul(a, c))" in {rule.equation() for rule in wrong}


def operators(rule: Rule) -> set[str]:
    return {node.op for node in pattern.operators(*rule.source, *rule.target)}


_WRONG = [("Div", Algebra.RING, "int64"), ("Mul", Algebra.NOTHING, "float16")]


@pytest.mark.parametrize(("name", "declared", "dtype"), _WRONG)
def test_a_wrong_declaration_is_caught(
    name: str, declared: Algebra, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the comparison of declarations with what operators are written in, and by that of both sides of rules."""
    monkeypatch.setitem(OPERATORS, name, replace(OPERATORS[name], algebra=declared))
    assert least_algebra(OPERATORS[name]) is not declared
    anew = [replace(rule) for rule in LIBRARY if operators(rule) <= {"Add", name}]  # which remember no types
    assert [*differing((rule for rule in anew if dtype in rule.element_types), dtype)]
