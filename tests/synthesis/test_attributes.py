"""What is seen at one axis, slice or permutation becomes a rule of all of them, or of none."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from support.movement import CONFIG, SHAPES, cut, found

from rlflow.rules import pattern
from rlflow.rules.declared import pushdown
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.pattern import Term, parse
from rlflow.rules.rule import Rule, rule_from_json
from rlflow.rules.verification.sampler import EXTENTS, Sampler
from rlflow.rules.verification.verify import Certificate, verify
from rlflow.synthesis.attributes import is_tied, of_any_attributes
from rlflow.synthesis.generate import GenerationReport
from rlflow.synthesis.prune import KnownRules

TO_THE_END = 2**31 - 1


def turn(perm: Sequence[int], x: Any) -> Any:
    return ["Transpose", {"perm": list(perm)}, x]


def test_a_transpose_takes_the_axis_of_a_slice_with_it() -> None:
    """That a slice keeps its axis past a transpose is well typed where dimensions are equal, and false."""
    known = KnownRules()
    for rule in found("Transpose", "Slice").rules:
        known.add(rule)
    turned = parse(cut(-1, 0, 2, turn((1, 2, 0), "a")))
    assert known.explain(turned, parse(turn((1, 2, 0), cut(-3, 0, 2, "a"))), SHAPES)
    backwards = parse(cut(-1, -1, -TO_THE_END, turn((1, 2, 0), "a"), -1))
    kept = parse(turn((1, 2, 0), cut(-1, -1, -TO_THE_END, "a", -1)))
    moved = parse(turn((1, 2, 0), cut(-3, -1, -TO_THE_END, "a", -1)))
    assert known.explain(backwards, moved, SHAPES)
    assert not known.explain(backwards, kept, SHAPES)


def test_no_rule_has_a_size_of_its_example(slices: GenerationReport) -> None:
    """Not vacuous: the equalities themselves, seen at one slice each, have."""
    assert slices.rules
    assert not any(map(is_tied, slices.rules))
    for source in (cut(-1, 0, 2, ["Relu", "a"]), ["Reshape", {"shape": [2, -1]}, "a"]):
        assert is_tied(rule_from_json("seen", "test", [source], ["a"]))
    assert not is_tied(rule_from_json("of all", "test", [cut(-1, 0, TO_THE_END, "a")], ["a"]))


def seen(source: Any, target: Any) -> Rule:
    return rule_from_json("seen", "test", [source], [target], {"a": {"shape": ["l", "m", "k"]}})


def targets(rule: Rule) -> list[Term]:
    dimensions = {"l": 3, "m": 7, "k": 4}
    return [candidate.target[0] for group in of_any_attributes(rule, dimensions) for candidate in group]


def test_targets_are_computed_by_example() -> None:
    """A transpose that was seen to be (2, 0, 1) may be a composition or an inverse, and nothing else."""
    twice = seen(turn((1, 2, 0), turn((1, 2, 0), "a")), turn((2, 0, 1), "a"))
    assert {pattern.show(term).split("(")[0] for term in targets(twice)} == {
        "Transpose[perm=inverse",
        "Transpose[perm=compose",
    }
    assert not targets(seen(turn((1, 2, 0), "a"), turn((1, 0, 2), "a")))


def test_drawn_slices_go_in_every_direction() -> None:
    """End, start and step are drawn one after another and belong together: one in six reads all backwards."""
    kinds = {"?e": ["extent"], "?b": ["extent", "?e"], "?t": ["extent", "?e", "?b"]}
    cutting = ["Slice", {"axes": "?a", "starts": "?b", "ends": "?e", "steps": "?t"}, "x"]
    rule = rule_from_json("slice", "test", [cutting], [cutting], attributes={"?a": ["axes", "x"], **kinds})
    sampler, random = Sampler(rule), Random(0)
    drawn = [sampler.draw(random) for _ in range(400)]
    extents = {tuple(i.attributes[name][0] for name in kinds) for i in drawn}  # type: ignore[index]
    assert extents == set(EXTENTS)
    assert sum(i.attributes["?e"] == (-TO_THE_END,) and i.attributes["?b"] == (-1,) for i in drawn) > 400 / 6


def test_what_types_do_not_tell_is_refuted_where_all_is_read_backwards() -> None:
    """Forward slices of one addend change its type, so that this error passes where only they are drawn."""

    def sliced(x: Any) -> Any:
        return ["Slice", {"axes": [-1], "starts": "?b", "ends": "?e", "steps": "?t"}, x]

    kinds = {"?e": ["extent"], "?b": ["extent", "?e"], "?t": ["extent", "?e", "?b"]}
    rule = rule_from_json(
        "one addend", "test", [["Add", sliced("x"), "z"]], [sliced(["Add", "x", "z"])], attributes=kinds
    )
    assert not isinstance(verify(rule, CONFIG), Certificate)
    drawn = rules_of(pushdown)[0].attributes
    independent = {name: drawn[name] for name in ("?b", "?e", "?t")}
    assert isinstance(verify(replace(rule, attributes=independent), CONFIG), Certificate)
