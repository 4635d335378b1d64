"""Everything up to a number of operators is enumerated, and nothing that is unequal is taken for equal."""

from dataclasses import replace

import numpy as np
import pytest
from support.generation import SMALL, equations, with_leaves

from rlflow.ops import registry
from rlflow.ops.domain import Array
from rlflow.ops.field import FieldDomain, NoExponentError
from rlflow.rules import pattern
from rlflow.synthesis.enumeration import EXPONENTIAL, Leaf, OperatorChoice, enumerate_pairs
from rlflow.synthesis.families import FAMILIES, Family
from rlflow.synthesis.generate import (
    GenerationReport,
    generate,
)


def test_everything_up_to_the_number_of_operators_is_enumerated() -> None:
    """Counted by hand for one variable and one unary and one commutative operator: x; R(x), x+x; R(R(x)), R(x+x),
    x+R(x), x+(x+x), and with a common part R(x)+R(x), (x+x)+(x+x).
    """
    found = enumerate_pairs(
        [Leaf("x", ("m",))],
        [OperatorChoice("Relu", 1), OperatorChoice("Add", 2)],
        {"m": 5},
        2,
        8,
        np.random.default_rng(0),
    )
    assert found.enumerated == 2 + 6
    shown = {(pattern.show(p.first), pattern.show(p.other)) for p in found.pairs}
    assert shown == {("Relu(x)", "Relu(Relu(x))"), ("Relu(Add(x, x))", "Add(Relu(x), Relu(x))")}


@pytest.mark.slow
def test_progress_is_reported_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    report = generate(SMALL, on_progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == list(range(1, report.after_renaming + 1))
    assert {total for _, total in seen} == {report.after_renaming}


@pytest.mark.slow
def test_accidents_of_one_shape_do_not_poison(small: GenerationReport) -> None:
    """At 1 x 1 a tensor is its own transpose. Among the leaves, that must not derive anything at other shapes."""
    poisoned = with_leaves(Leaf("one", (1, 1)), *SMALL.family.leaves)
    assert equations(small) <= equations(generate(poisoned))


@pytest.mark.slow
def test_fingerprints_of_unequal_terms_differ() -> None:
    """No two of 20,000 expressions that are equal by their fingerprint are refuted: nothing cancels in a digest."""
    config = replace(with_leaves(*SMALL.family.leaves[:2]), max_operators=3)
    assert generate(config).refuted == 0


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_exponentials_are_known_as_such(family: Family) -> None:
    """The search leaves out, without a word, an operator that needs an exponent where none were drawn."""
    domain, rng = FieldDomain([1]), np.random.default_rng(0)
    shape = {"convolution": (2, 2, 5, 5), "movement": (8, 8, 8)}.get(family.name, (3, 3))
    needing = set()
    for choice in family.operators:
        operands: list[Array] = [domain.draw_residues(shape, rng) for _ in range(choice.arity)]
        operands += [np.array([0])] if choice.selector else []
        try:
            registry.OPERATORS[choice.op].evaluate(domain, dict(choice.written), operands)
        except NoExponentError:
            needing.add(choice.op)
    assert needing == {choice.op for choice in family.operators} & EXPONENTIAL
