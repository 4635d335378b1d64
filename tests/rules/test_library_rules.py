"""Every rule of the shipped library inside a graph; that its sides agree is what its certificate says."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.rewrites import assert_same_outputs, each_of, embed

from rlflow.ir import Graph, Ref, structural_hash
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.pattern import Apply, variables
from rlflow.rules.rule import Rule
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.sides import Sides

RULES = load().rules
SEEDS = st.integers(0, 2**32 - 1)
each_rule = each_of(RULES)
few_examples = settings(max_examples=3)  # `make bench NAME=rules` draws a thousand of each rule
_DRAWS = 50
"""Of some rules the target is typed at few instances."""


def drawn_sides(rule: Rule, seed: int) -> Sides:
    """An instance at which both sides are well typed and of equal types."""
    sampler, random = Sampler(rule), Random(seed)
    drawn = (sampler.sides(sampler.draw(random)) for _ in range(_DRAWS))
    case = next((case for case in drawn if case is not None), None)
    assume(case is not None)
    return case


@each_rule
@few_examples
@given(seed=SEEDS)
def test_rewriter_finds_and_applies_the_rule(rule: Rule, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, roots = embedded(rule, seed)
    rewriter = Rewriter([replace(rule, profitable_if=())])  # what is drawn is small
    found = [m for m in rewriter.matches(graph)[0] if set(m.roots) == set(roots)]
    assert found
    for match in found:
        assert_same_outputs(graph, rewriter.apply(graph, match), rng)


def embedded(rule: Rule, seed: int) -> tuple[Graph, tuple[Ref, ...]]:
    """At an instance without empty values, which rules leave alone."""
    drawn = (drawn_sides(rule, seed + attempt) for attempt in range(50))
    instance = next(sides.instance for sides in drawn if not _has_empty_values(sides))
    graph, roots = embed(rule, instance, np.random.default_rng(seed))
    assume(not any(graph.nodes[r.node].constant for r in roots))
    return graph, roots


def _has_empty_values(sides: Sides) -> bool:
    steps = (*sides.source.steps, *sides.target.steps)
    return any(0 in (kind.shape or ()) for step in steps for kind in step.types)


def inverses() -> list[tuple[Rule, Rule]]:
    """Rules whose two sides, exchanged, are another rule of the library."""
    by_content = {content(r): r for r in RULES}
    exchangeable = [
        r
        for r in RULES
        if all(isinstance(t, Apply) for t in r.target) and set(variables(*r.source)) == set(variables(*r.target))
    ]
    back = {r.id: by_content.get(content(r.reversed("back"))) for r in exchangeable}
    return [(r, found) for r in exchangeable if (found := back[r.id]) is not None]


def content(rule: Rule) -> str:
    return rule.id.removeprefix(f"{rule.family}-")


INVERSES = inverses()


def test_there_are_inverses() -> None:
    assert len(INVERSES) >= 10


@pytest.mark.parametrize(("rule", "back"), INVERSES, ids=[r.id for r, _ in INVERSES])
@few_examples
@given(seed=SEEDS)
def test_a_rule_and_its_inverse_return_to_the_same_graph(rule: Rule, back: Rule, seed: int) -> None:
    graph, roots = embedded(rule, seed)
    rewriter = Rewriter([rule, back])
    match = next(m for m in rewriter.matches(graph)[0] if set(m.roots) == set(roots))
    child = rewriter.apply(graph, match)
    returned = {structural_hash(rewriter.apply(child, m)) for m in rewriter.matches(child)[1]}
    assert structural_hash(graph) in returned
