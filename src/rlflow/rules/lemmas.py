"""Rules that derivations need and models do not: they make a graph larger, so that no library has them.

They are verified like any other rule before they derive anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlflow.rules.rule import Rule, declare
from rlflow.rules.verify import VerificationConfig, certified


def lemmas() -> list[Rule]:
    """All of them, without certificates."""
    return [_parted(0), _parted(1), *_relu_of_product()]


def certified_lemmas(declared: Sequence[Rule]) -> list[Rule]:
    """With their certificates; `RuleError` with the counter-example of one that is false."""
    return [certified(rule, VerificationConfig()) for rule in declared]


def _parted(output: int) -> Rule:
    """What is parted is the join of its parts, through which operators pass that know of joins alone."""

    def part(i: int, whole: Any) -> Any:
        return ["@", i, ["Split", {"axis": "?k", "split": "?s"}, whole]]

    return declare(
        f"part-{output}-of-joined-parts",
        "lemma",
        [part(output, "x")],
        [part(output, ["Concat", {"axis": "?k"}, part(0, "x"), part(1, "x")])],
        attributes={"?k": ["axis", "x"], "?s": ["partition", "x", "?k", 2]},
        where=[["==", ["length", "?s"], 2]],
    )


def _relu_of_product() -> list[Rule]:
    """A factor that is not negative passes."""
    whole, parts = ["Relu", ["Mul", "x", ["Relu", "y"]]], ["Mul", ["Relu", "x"], ["Relu", "y"]]
    rule = declare("relu-of-product", "lemma", [whole], [parts])
    return [rule, rule.reversed("product-of-relus")]
