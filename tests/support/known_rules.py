"""Rules of a line each, and what is known by some."""

from rlflow.rules.rule import Rule, rule_from_json
from rlflow.rules.verification.verify import VerificationConfig, certified
from rlflow.synthesis.prune import KnownRules

SCALE = rule_from_json(
    "scale",
    "test",
    [["Mul", ["MatMul", "x", "w"], "s"]],
    [["MatMul", "x", ["Mul", "w", "s"]]],
    {"x": {"shape": ["m", "k"]}, "w": {"shape": ["k", "n"]}},
)


def rule(name: str, source: object, target: object, *rest: object) -> Rule:
    return certified(rule_from_json(name, "test", [source], [target], *rest), VerificationConfig(shapes=24))


def knowing(*rules: Rule, max_iterations: int = 5, max_nodes: int = 2000) -> KnownRules:
    known = KnownRules(max_iterations, max_nodes)
    for one in rules:
        known.add(one)
    return known
