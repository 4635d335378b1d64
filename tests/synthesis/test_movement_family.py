"""The family of data movement: what is seen at one axis, slice or permutation becomes a rule of all, or none."""

from typing import Any

import numpy as np
import pytest
from support.movement import CONFIG, SHAPES, cut, found
from support.rewrites import assert_fires_on_a_model

from rlflow.rules import pattern
from rlflow.rules.pattern import parse
from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification.verify import Certificate, certified, verify
from rlflow.synthesis.attributes import is_tied
from rlflow.synthesis.enumeration import Leaf, OperatorChoice, enumerate_pairs
from rlflow.synthesis.families import MOVEMENT
from rlflow.synthesis.generate import GenerationReport, GeneratorConfig, generate
from rlflow.synthesis.prune import KnownRules
from rlflow.synthesis.two_outputs import of_both_parts


def equations(report: GenerationReport) -> set[str]:
    return {rule.equation() for rule in report.rules}


def join(axis: int, *parts: Any) -> Any:
    return ["Concat", {"axis": axis}, *parts]


@pytest.fixture(scope="module")
def turns() -> GenerationReport:
    return found("Transpose", "Concat")


SLICE = "Slice[axes={}, ends={}, starts={}, steps={}]"


def test_a_slice_passes_at_any_axis(slices: GenerationReport) -> None:
    """Every slice of one axis, of whatever direction, past functions and past joints of other axes."""
    one, other = SLICE.format("p0", "p1", "p2", "p3"), SLICE.format("p1", "p2", "p3", "p4")
    assert {
        f"{one}(Relu(a)) => Relu({one}(a))  if length(p0) == 1",
        f"Relu({one}(a)) => {one}(Relu(a))  if length(p0) == 1",
        f"{other}(Concat[axis=p0](a, b)) => Concat[axis=p0]({other}(a), {other}(b))"
        "  if length(p1) == 1 and p0 != get(p1, 0)",
    } <= equations(slices)


def test_slices_of_slices_have_computed_bounds(slices: GenerationReport) -> None:
    """Whichever of the two ends first; the start is always a sum."""
    nested = [
        rule
        for rule in slices.rules
        if [node.op for node in pattern.operators(*rule.source)] == ["Slice", "Slice"]
        and len(pattern.operators(*rule.target)) == 1
    ]
    bounds = {rule.equation().partition(" => ")[2].partition("(a)")[0] for rule in nested}
    start = "starts=list(get(p2, 0) + get(p4, 0)), steps=[1]]"
    assert bounds == {
        f"Slice[axes=p0, ends=list(get(p1, 0)), {start}",
        f"Slice[axes=p0, ends=list(get(p2, 0) + get(p3, 0)), {start}",
    }


def test_transposes_compose_and_carry_axes(turns: GenerationReport) -> None:
    moved = "Concat[axis=get(inverse(p1), p0) + -1 * length(p1)](Transpose[perm=p1](a), Transpose[perm=p1](b))"
    assert {
        "Transpose[perm=p1](Transpose[perm=p0](a)) => Transpose[perm=compose(p0, p1)](a)",
        "Transpose[perm=p1](Transpose[perm=p0](a)) => a  if is_identity(compose(p0, p1))",
        f"Transpose[perm=p1](Concat[axis=p0](a, b)) => {moved}",
    } <= equations(turns)


@pytest.fixture(scope="module")
def parts() -> GenerationReport:
    return found("Split", "Concat", "Relu")


def test_parts_of_a_joint_and_the_joint_of_parts(parts: GenerationReport) -> None:
    """What holds of both parts of a Split is one rule of both."""
    written = equations(parts)
    part = "Split[axis=p0, split=p1]"
    assert {
        f"{part}(Concat[axis=p0](a, b)) => a  if length(p1) == 2",
        f"{part}(Concat[axis=p0](a, b)).1 => b  if length(p1) == 2",
        f"Concat[axis=p0]({part}(a), {part}(a).1) => a  if length(p1) == 2",
        f"Relu({part}(a)); Relu({part}(a).1) => {part}(Relu(a)); {part}(Relu(a)).1  if length(p1) == 2",
    } <= written
    assert not any(e.startswith(f"Relu({part}(a)) =>") for e in written)


def test_rules_of_both_parts_fire_on_models(parts: GenerationReport) -> None:
    """Not vacuous: the second root is reached from the tensor that is split by the second output alone."""
    both = [rule for rule in parts.rules if len(rule.source) == 2 and rule.source[0].op in ("Relu", "Concat")]
    assert {rule.source[0].op for rule in both} == {"Relu", "Concat"}
    for rule in both:
        assert_fires_on_a_model(rule)


def test_what_is_gathered_passes_along_any_axis() -> None:
    report = found("Gather", "Relu", "Add")
    assert {
        "Gather[axis=p0](Relu(a), b) => Relu(Gather[axis=p0](a, b))",
        "Gather[axis=p0](Add(a, b), c) => Add(Gather[axis=p0](a, c), Gather[axis=p0](b, c))"
        "  if dim(a, p0) == dim(b, p0)",
        "Gather[axis=p1](Gather[axis=p0](a, b), c) => Gather[axis=p0](Gather[axis=p1](a, c), b)  if p0 != p1",
    } <= equations(report)
    (rule,) = [r for r in report.rules if r.equation().startswith("Gather[axis=p0](Relu(a), b) =>")]
    assert rule.spec("a").shape is None
    assert rule.spec("b").shape == ("...b",)


def test_a_reshape_has_any_shape_only_where_shapes_do_not_matter() -> None:
    """Add(a, b) of tensors that broadcast is another sum once both are reshaped: there it merges the axes it did."""
    report = found("Reshape", "Relu", "Add")
    assert "Reshape[shape=p0](Relu(a)) => Relu(Reshape[shape=p0](a))" in equations(report)
    sums = [r for r in report.rules if {"Reshape", "Add"} <= {n.op for n in pattern.operators(*r.source)}]
    assert sums
    for rule in sums:
        assert not rule.attributes
        assert all(spec.shape == ("a0", "a1", "a2") for spec in rule.variables.values())


@pytest.mark.parametrize(
    ("true", "false"),
    [
        (
            (cut(-1, 1, 3, join(-2, "a", "b")), join(-2, cut(-1, 1, 3, "a"), cut(-1, 1, 3, "b"))),
            (cut(-1, 2, 6, join(-1, "a", "b")), join(-1, cut(-1, 2, 6, "a"), cut(-1, 0, 2, "a"))),
        ),
        (
            (cut(-1, 0, 3, join(-1, "a", "b")), cut(-1, 0, 3, "a")),
            (cut(-1, 0, 3, join(-1, "a", "b")), cut(-1, 0, 3, "b")),
        ),
        (
            (cut(-1, 1, 3, cut(-1, 1, 4, "a")), cut(-1, 2, 4, "a")),
            (cut(-1, 1, 3, cut(-1, 1, 4, "a")), cut(-1, 1, 3, "a")),
        ),
        (
            (cut(-1, 0, 3, cut(-2, 1, 2, "a")), cut(-2, 1, 2, cut(-1, 0, 3, "a"))),
            (cut(-1, 3, -9, cut(-1, 0, 9, "a"), -1), cut(-1, 0, 9, "a")),
        ),
    ],
    ids=["joint", "first part", "nested", "two axes"],
)
def test_what_follows_and_what_does_not(
    slices: GenerationReport, true: tuple[Any, Any], false: tuple[Any, Any]
) -> None:
    """The sides of each false equality have one type, and its true counterpart follows from the same rules."""
    known = KnownRules()
    for rule in slices.rules:
        known.add(rule)
    assert known.explain(*map(parse, true), SHAPES)
    assert not known.explain(*map(parse, false), SHAPES)


def test_two_outputs_of_one_operator_count_once() -> None:
    """Counted by hand for x of 4 elements, S = Split into 2 and 2, and joints C: S0(x), S1(x), C(x, x); then S0 and S1
    of S0(x) and S1(x) have nothing to part, of C(x, x) neither; C of x and each of the three in either order, and of
    what shares its last operator: C(S0, S0), C(S0, S1), C(S1, S0), C(S1, S1), C(C, C).
    """
    family = [
        *(OperatorChoice("Split", 1, {"axis": 0, "split": (2, 2)}, output=output) for output in (0, 1)),
        OperatorChoice("Concat", 2, {"axis": 0}),
    ]
    found = enumerate_pairs([Leaf("x", ("n",))], family, {"n": 4}, 2, 8, np.random.default_rng(0))
    assert found.enumerated == 3 + 6 + 5
    whole = [pair.other for pair in found.pairs if pattern.show(pair.first) == "x"]
    assert [pattern.show(term) for term in whole] == [
        "Concat[axis=0](Split[split=[2, 2]](x), Split[split=[2, 2]](x).1)"
    ]


def test_outputs_without_elements_prove_nothing() -> None:
    """A slice of nothing is like any other; at three of four instances the source is one."""
    nothing = cut(-1, 2, 1, "x")
    source = ["Slice", {"axes": [-1], "starts": [0], "ends": "?e", "steps": [1]}, "x"]
    kinds = {"?e": ["choice", [0], [0], [0], [1]]}
    rule = rule_from_json("empty", "test", [source], [nothing], {"x": {"shape": ["m", "n"]}}, attributes=kinds)
    outcome = verify(rule, CONFIG)
    assert not isinstance(outcome, Certificate)
    assert "at only 0 of" in outcome.reason


def test_parts_that_differ_are_no_rule_of_both() -> None:
    """Of a joint of two, the first part is the first operand, and the second one is not."""
    split = {"axis": "?k", "split": "?s"}
    kinds = {"?k": ["axis", "x"], "?s": ["sizes", "?k", "x", "y"]}
    first = ["@", 0, ["Split", split, ["Concat", {"axis": "?k"}, "x", "y"]]]
    assert (
        of_both_parts(certified(rule_from_json("first", "test", [first], ["x"], attributes=kinds), CONFIG), CONFIG)
        is None
    )
    twice = rule_from_json("twice", "test", [["Relu", ["Relu", "x"]]], [["Relu", "x"]])
    assert of_both_parts(certified(twice, CONFIG), CONFIG) is None


@pytest.mark.exhaustive
def test_the_family_finds_what_parts_of_it_find(slices: GenerationReport) -> None:
    """Products among it, whose axes stay where they are, of any batch."""
    report = generate(GeneratorConfig(MOVEMENT, max_operators=2))
    assert not any(map(is_tied, report.rules))
    by_source = {rule.equation().partition(" =>")[0]: rule for rule in report.rules}
    rows = by_source["Slice[axes=[-2], ends=p0, starts=p1, steps=p2](MatMul(a, b))"]
    assert rows.spec("a").shape == ("...a", "a1", "a2")
    kept = {e for e in equations(slices) if "Relu" in e}
    assert len(kept) > 3
    assert kept <= equations(report)
