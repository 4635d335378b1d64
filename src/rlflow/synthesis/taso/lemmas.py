"""Lemmas: rules that derivations need and models do not, since they make a graph larger.

They are in no library, and are verified like any other rule before they derive anything.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from rlflow.egraph.saturation import CompiledRule
from rlflow.rules.rule import Rule, rule_from_json
from rlflow.rules.verification.verify import VerificationConfig, certified


@cache
def lemmas() -> tuple[CompiledRule, ...]:
    """Return all lemmas, verified; `RuleError` with the counter-example of one that is false."""
    declared = (*_parts_of_wholes(), *_parts_of_parts(), *_relu_of_product(), _repeated_channels())
    return tuple(CompiledRule(certified(rule, VerificationConfig())) for rule in declared)


_TWO_PARTS = {"?k": ["axis", "x"], "?s": ["partition", "x", "?k", 2]}


def _part(i: int, whole: Any, axis: str = "?k", sizes: str = "?s") -> Any:
    return ["@", i, ["Split", {"axis": axis, "split": sizes}, whole]]


def _parts_of_wholes() -> list[Rule]:
    """Declare that a tensor is the concatenation of its two parts, for the rules that need to see a Concat."""
    whole = ["Concat", {"axis": "?k"}, _part(0, "x"), _part(1, "x")]
    two = [["==", ["length", "?s"], 2]]
    return [
        rule_from_json(
            f"part-{i}-of-whole", "lemma", [_part(i, "x")], [_part(i, whole)], attributes=_TWO_PARTS, where=two
        )
        for i in (0, 1)
    ]


def _parts_of_parts() -> list[Rule]:
    """Declare that Splits along two different axes can be exchanged."""
    attributes = {**_TWO_PARTS, "?l": ["axis", "x"], "?t": ["partition", "x", "?l", 2]}
    return [
        rule_from_json(
            f"part-{j}-of-part-{i}",
            "lemma",
            [_part(j, _part(i, "x"), "?l", "?t")],
            [_part(i, _part(j, "x", "?l", "?t"))],
            attributes=attributes,
            where=[["!=", "?k", "?l"]],
        )
        for i in (0, 1)
        for j in (0, 1)
    ]


def _relu_of_product() -> list[Rule]:
    """Declare that Relu passes a factor that is never negative: the result of another Relu, or a square."""
    square = ["Mul", "y", "y"]
    rules = [
        rule_from_json(
            f"relu-of-{name}-product", "lemma", [["Relu", ["Mul", "x", factor]]], [["Mul", ["Relu", "x"], factor]]
        )
        for name, factor in (("relu", ["Relu", "y"]), ("square", square))
    ]
    return [*rules, *(rule.reversed(f"{rule.name}-reversed") for rule in rules)]


def _repeated_channels() -> Rule:
    """Declare that a convolution in two groups that read the same image is one without groups."""
    window = {"strides": "?s", "pads": "?p", "dilations": "?d"}
    return rule_from_json(
        "convolution-of-repeated-channels",
        "lemma",
        [["Conv", {**window, "group": 2}, ["Concat", {"axis": -3}, "x", "x"], "f"]],
        [["Conv", window, "x", "f"]],
        {"x": {"shape": ["n", "c", "h", "w"]}, "f": {"shape": ["m", "c", "p", "q"]}},
        attributes={"?s": ["integers", 1, 2, 2], "?p": ["integers", 0, 2, 4], "?d": ["integers", 1, 2, 2]},
    )
