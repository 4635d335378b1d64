"""Rules that derivations need and models do not: they make a graph larger, so that no library has them.

They are verified like any other rule before they derive anything.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from rlflow.rules.egraph.saturation import CompiledRule
from rlflow.rules.rule import Rule, rule_from_json
from rlflow.rules.verification.verify import VerificationConfig, certified


@cache
def lemmas() -> tuple[CompiledRule, ...]:
    """All of them, verified; `RuleError` with the counter-example of one that is false."""
    declared = (*_parted(), *_crossed(), *_relu_of_product(), _repeated_channels())
    return tuple(CompiledRule(certified(rule, VerificationConfig())) for rule in declared)


_TWO_PARTS = {"?k": ["axis", "x"], "?s": ["partition", "x", "?k", 2]}


def _part(i: int, whole: Any, axis: str = "?k", sizes: str = "?s") -> Any:
    return ["@", i, ["Split", {"axis": axis, "split": sizes}, whole]]


def _parted() -> list[Rule]:
    """What is parted is the join of its parts, through which operators pass that know of joins alone."""
    whole = ["Concat", {"axis": "?k"}, _part(0, "x"), _part(1, "x")]
    two = [["==", ["length", "?s"], 2]]
    return [
        rule_from_json(
            f"part-{i}-of-whole", "lemma", [_part(i, "x")], [_part(i, whole)], attributes=_TWO_PARTS, where=two
        )
        for i in (0, 1)
    ]


def _crossed() -> list[Rule]:
    """Parts along one axis of parts along another, the other way round."""
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
    """A factor that is not negative passes: what a relu gave, or a square."""
    square = ["Mul", "y", "y"]
    rules = [
        rule_from_json(
            f"relu-of-{name}-product", "lemma", [["Relu", ["Mul", "x", factor]]], [["Mul", ["Relu", "x"], factor]]
        )
        for name, factor in (("relu", ["Relu", "y"]), ("square", square))
    ]
    return [*rules, *(rule.reversed(f"{rule.name}-reversed") for rule in rules)]


def _repeated_channels() -> Rule:
    """Two groups that read the same image are one."""
    window = {"strides": "?s", "pads": "?p", "dilations": "?d"}
    return rule_from_json(
        "convolution-of-repeated-channels",
        "lemma",
        [["Conv", {**window, "group": 2}, ["Concat", {"axis": -3}, "x", "x"], "f"]],
        [["Conv", window, "x", "f"]],
        {"x": {"shape": ["n", "c", "h", "w"]}, "f": {"shape": ["m", "c", "p", "q"]}},
        attributes={"?s": ["integers", 1, 2, 2], "?p": ["integers", 0, 2, 4], "?d": ["integers", 1, 2, 2]},
    )
