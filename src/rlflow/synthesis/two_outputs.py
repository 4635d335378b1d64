"""Rules of two outputs, derived from rules of one, so that they need not be enumerated.

If the source of a rule joins two parts, Concat(L, M) = R says that L and M are the parts of Split(R), which is a rule
of two outputs (`in_two_outputs`). And a rule about the first part of a Split may hold of both parts (`of_both_parts`).
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from rlflow.errors import RuleError
from rlflow.rules import pattern
from rlflow.rules.certificate import Certificate
from rlflow.rules.expression import Expression
from rlflow.rules.pattern import Apply, Term
from rlflow.rules.rule import Rule, with_short_names
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.sides import Sides
from rlflow.rules.verification.verify import VerificationConfig, verify


def of_both_parts(rule: Rule, config: VerificationConfig) -> Rule | None:
    """Return the certified rule that says of both parts of a Split what this one says of one part.

    None if this one is about no part or about several, or is refuted for the other part.
    """
    splits = [t for t in pattern.subterms(rule.source[0]) if isinstance(t, Apply) and t.op == "Split"]
    sides = [tuple(_of_part(part, side[0]) for part in range(2)) for side in (rule.source, rule.target)]
    if not splits or (rule.source[0], rule.target[0]) not in zip(*sides, strict=True):
        return None
    made = with_short_names(replace(rule, source=sides[0], target=sides[1], certificate=None))
    outcome = verify(made, config)
    return replace(made, certificate=outcome) if isinstance(outcome, Certificate) else None


def _of_part(part: int, term: Term) -> Term:
    """Replace every part of a Split in the term by this part."""

    def taken(inner: Term) -> Term:
        return replace(inner, output=part) if isinstance(inner, Apply) and inner.op == "Split" else inner

    return pattern.rebuilt(term, taken)


_SIZED_AT = 24
"""The number of drawn instances from which the dimension of a part along the joint is told."""


def in_two_outputs(rule: Rule, config: VerificationConfig) -> Rule | None:
    """Return the certified rule Split(R) of the two parts that the source joins.

    Variables that the parts do not share become constant, so that neither part can feed the other. None if the rule
    joins no two parts along one axis, if they share nothing, or if it is refuted.
    """
    joint = rule.source[0]
    if len(rule.source) > 1 or not isinstance(joint, Apply) or joint.op != "Concat" or len(joint.arguments) != 2:
        return None
    parts = [part for part in joint.arguments if isinstance(part, Apply)]
    axis = dict(joint.attributes)["axis"]
    shared = set.intersection(*(set(pattern.variables(part)) for part in joint.arguments))
    if len(parts) < 2 or parts[0] == parts[1] or not shared or not isinstance(axis, int):
        return None

    try:
        sizes = [_size(rule, part, axis) for part in parts]
    except RuleError:
        return None
    if any(size is None for size in sizes):
        return None

    split = pattern.freeze({"axis": axis, "split": ["list", *sizes]}.items())
    halves = tuple(Apply("Split", tuple(sorted(split)), rule.target, output) for output in range(2))
    # Variables that only one part reads: constants cannot depend on the other part.
    loose = {name: replace(rule.spec(name), constant=True) for name in pattern.variables(*parts) if name not in shared}
    made = with_short_names(
        replace(rule, source=tuple(parts), target=halves, variables={**rule.variables, **loose}, certificate=None)
    )
    outcome = verify(made, config)
    return replace(made, certificate=outcome) if isinstance(outcome, Certificate) else None


def _size(rule: Rule, part: Term, axis: int) -> Expression | None:
    """Find a dimension of a variable that the part always has along the axis; None if there is none."""
    sampler, random = Sampler(replace(rule, source=(part,), target=(part,), where=())), Random(0)
    attempts = (sampler.sides(sampler.draw(random)) for _ in range(_SIZED_AT))
    drawn = [sides for sides in attempts if sides]
    candidates = [(name, place) for name in pattern.variables(part) for place in (-1, -2, -3, -4)]
    found = (c for c in candidates if all(_has(sides, *c, axis) for sides in drawn))
    return next((["dim", *candidate] for candidate in found), None)


def _has(sides: Sides, name: str, place: int, axis: int) -> bool:
    shape, whole = sides.instance.shape(name), sides.source.types[0].shape or ()
    return len(shape) >= -place and len(whole) >= -axis and shape[place] == whole[axis]
