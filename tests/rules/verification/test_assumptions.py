"""The verifier refuses what changes masked rows or fails at size 0, and records what else a rule assumes."""

from dataclasses import replace

import pytest

from rlflow.rules.certificate import FINITE, MODERATE, Certificate
from rlflow.rules.declared.catalogue import false_controls
from rlflow.rules.library import Library
from rlflow.rules.rule import Rule, rule_from_json
from rlflow.rules.verification.refutation import Refutation
from rlflow.rules.verification.verify import VerificationConfig, verify

CONFIG = VerificationConfig()
ROWS = {"x": {"shape": ["...b", "n"]}, "s": {"shape": ["...b", 1]}}


@pytest.mark.parametrize(
    ("control", "reason", "remedy"),
    [
        ("masked-rows-are-ordinary", "the sides differ, as written: s masked by", "bounded(s)"),
        ("attention-hides-rows-alike", "the sides differ, as written: m masked by", "bounded(m)"),
        ("attention-to-nothing", "ONNX Runtime cannot run the target, as written: no elements", "1 <= dim("),
    ],
)
def test_a_rule_without_its_condition_is_refused(control: str, reason: str, remedy: str) -> None:
    """All checks before this one pass: as reals, these are equalities."""
    outcome = verify(next(c for c in false_controls() if c.name == control), CONFIG)
    assert isinstance(outcome, Refutation)
    assert outcome.reason.startswith(reason)
    assert remedy in str(outcome)


def of(source: object, target: object, **rest: object) -> Rule:
    return rule_from_json("rule", "test", [source], [target], **rest)


def test_a_softmax_of_pieces_is_no_softmax_where_all_is_hidden() -> None:
    """In pieces, a row that is hidden altogether is zero over zero, already by -1e4: no bound of ours excludes that."""
    power = ["Exp", "x"]
    pieces = ["Div", power, ["ReduceSum", {"axes": [-1], "keepdims": 1}, power]]
    rows = {"x": {"shape": ["...b", "n"]}}
    for where in ((), (["bounded", "x"],)):
        outcome = verify(of(pieces, ["Softmax", {"axis": -1}, "x"], variables=rows, where=where), CONFIG)
        assert isinstance(outcome, Refutation)
        assert "masked by -1e+04" in outcome.reason


def test_the_mean_of_nothing_is_not_what_is_added_to_it() -> None:
    mean = {"axes": [-1], "keepdims": 1}
    source, target = ["ReduceMean", mean, ["Add", "x", "s"]], ["Add", "s", ["ReduceMean", mean, "x"]]
    outcome = verify(of(source, target, variables=ROWS), CONFIG)
    assert isinstance(outcome, Refutation)
    assert "no elements along axis -1 of x" in outcome.reason
    known = verify(of(source, target, variables=ROWS, where=(["<=", 1, ["dim", "x", -1]],)), CONFIG)
    assert isinstance(known, Certificate)


def test_orders_of_masks_are_alike() -> None:
    """Two masks of the lowest float overflow to minus infinity in one order and not in another; both hide."""
    source = ["Softmax", {"axis": -1}, ["Add", ["Add", "x", "y"], "z"]]
    target = ["Softmax", {"axis": -1}, ["Add", "x", ["Add", "y", "z"]]]
    outcome = verify(of(source, target, variables={n: {"shape": ["m", "n"]} for n in "xyz"}), CONFIG)
    assert isinstance(outcome, Certificate)
    assert outcome.assumes == ()


@pytest.mark.parametrize(
    ("name", "assumes"),
    [
        ("merge-2-linears", ()),
        ("sum-of-filters", (FINITE,)),
        ("divide-to-multiply", (MODERATE,)),
        ("associate-weights", (FINITE, MODERATE)),
        # Its mask is bounded, so that the infinities at which its sides differ are never drawn for it.
        ("fuse-attention-with-mask", ()),
    ],
)
def test_what_shipped_rules_assume(library: Library, name: str, assumes: tuple[str, ...]) -> None:
    assert library.get(name).assumes == assumes


def test_a_rule_that_hides_its_assumption_is_refused(library: Library) -> None:
    rule = library.get("associate-weights")
    assert rule.certificate is not None
    hiding = replace(rule, certificate=replace(rule.certificate, assumes=(MODERATE,)))
    outcome = verify(hiding, replace(CONFIG, seed=1))
    assert isinstance(outcome, Refutation)
    assert "assumes what its certificate does not say: finite" in outcome.reason
    assert isinstance(verify(rule, replace(CONFIG, seed=1)), Certificate)
