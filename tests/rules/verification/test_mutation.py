"""A rule whose target is perturbed is another equation, and false: the verifier must refuse it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from support.rewrites import each_of

from rlflow.errors import RuleError
from rlflow.ops.registry import OPERATORS
from rlflow.rules import pattern
from rlflow.rules.certificate import Certificate
from rlflow.rules.library import load
from rlflow.rules.pattern import Apply, Term
from rlflow.rules.rule import Rule
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.verify import VerificationConfig, verify

RULES = load().rules
CONFIG = VerificationConfig(float_cases=0)
OTHER_OPERATOR = {"Add": "Mul", "Mul": "Add", "Sub": "Add", "Div": "Mul", "Sum": "Mul", "Relu": "Tanh", "MatMul": "Add"}
OTHER_OPERATOR |= {"Reciprocal": "Neg", "Softmax": "Relu"}


def at_each_place(term: Term) -> Iterator[tuple[Apply, str]]:
    for place, part in enumerate(pattern.subterms(term)):
        if isinstance(part, Apply):
            yield part, f"{place} {part.op}"


def replaced(term: Term, part: Term, by: Term) -> Term:
    return pattern.rebuilt(term, lambda t: by if t == part else t)


def mutants(target: Term) -> Iterator[tuple[str, Term]]:
    for part, where in at_each_place(target):
        if part.op in OTHER_OPERATOR and len(part.arguments) <= 2:
            yield f"operator at {where}", replaced(target, part, replace(part, op=OTHER_OPERATOR[part.op]))
        if len(part.arguments) == 2 and not OPERATORS[part.op].commutative and part.op != "Concat":
            swapped = replace(part, arguments=part.arguments[::-1])
            yield f"operands at {where}", replaced(target, part, swapped)
        if part.op in ("Add", "Mul", "MatMul", "Sum"):
            for kept in part.arguments:
                yield f"only {pattern.show(kept)} at {where}", replaced(target, part, kept)
        if part.op == "Transpose":
            perm = dict(part.attributes)["perm"]
            reverse = ["inverse", pattern.thaw(perm)]
            if (are_numbers(perm) and is_own_inverse(perm)) or reverse[1][0] == "last_two_swapped":
                continue
            turned = replace(part, attributes=(("perm", pattern.freeze(reverse)),))
            yield f"permutation at {where}", replaced(target, part, turned)
        if part.op == "Conv":
            attributes = dict(part.attributes)
            pads = attributes["pads"]
            if are_numbers(pads) and pads[:2] == pads[2:]:
                continue  # the same at either end
            attributes["pads"] = ("list", *(("get", attributes["pads"], i) for i in (2, 3, 0, 1)))
            turned = replace(part, attributes=tuple(sorted(attributes.items())))
            yield f"pads of the other end at {where}", replaced(target, part, turned)


def mutated(rule: Rule) -> Iterator[tuple[str, Rule]]:
    bound = set(pattern.variables(*rule.source))
    for index, target in enumerate(rule.target):
        for what, mutant in (("negated", Apply("Neg", (), (target,))), *mutants(target)):
            targets = (*rule.target[:index], mutant, *rule.target[index + 1 :])
            if mutant not in (target, rule.source[index]) and set(pattern.variables(*targets)) <= bound:
                yield f"output {index}, {what}", replace(rule, target=targets, certificate=None)


def is_true_anyway(rule: Rule, what: str) -> bool:
    """Permutations that are their own inverse wherever the rule holds: with either, it says the same."""
    if "permutation" not in what:
        return False
    found = list(permutations_of(rule))
    return bool(found) and all(map(is_own_inverse, found))


def are_numbers(attribute: object) -> bool:
    return isinstance(attribute, tuple) and all(isinstance(p, int) for p in attribute)


def is_own_inverse(permutation: Sequence[int]) -> bool:
    return [permutation[p] for p in permutation] == list(range(len(permutation)))


def permutations_of(rule: Rule) -> Iterator[Sequence[int]]:
    """Those that are written in the rule, and those that are drawn where both sides are well typed."""
    for side in (*rule.source, *rule.target):
        for part in pattern.subterms(side):
            written = dict(part.attributes).get("perm") if isinstance(part, Apply) else None
            if are_numbers(written):
                yield written
    sampler, random = Sampler(rule), Random(0)
    for _ in range(200 if rule.attributes else 0):
        instance = sampler.draw(random)
        if sampler.sides(instance) is not None:
            yield from (instance.attributes[name] for name, kind in rule.attributes.items() if kind[0] == "permutation")


@each_of(RULES)
def test_a_perturbed_target_is_refused(rule: Rule) -> None:
    refuted_by_value = 0
    for what, mutant in mutated(rule):
        if is_true_anyway(rule, what):
            continue
        try:
            outcome = verify(mutant, CONFIG)
        except RuleError:
            continue
        assert not isinstance(outcome, Certificate), f"{what}: {mutant.equation()}"
        refuted_by_value += outcome.instance is not None
    assert refuted_by_value, "no mutant was well typed, so that nothing was tested"
