"""Families are drawn so that nothing holds by accident: sizes that all differ and are never 1, known operators."""

import pytest

from rlflow.ops.registry import OPERATORS
from rlflow.synthesis.families import FAMILIES, Family

each = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


@each
def test_no_two_dimensions_have_one_size(family: Family) -> None:
    sizes = list(family.dimensions.values())
    assert len(set(sizes)) == len(sizes)
    assert 1 not in sizes


@each
def test_leaves_have_names_of_their_own_and_sizes_for_all_their_symbols(family: Family) -> None:
    names = [leaf.name for leaf in family.leaves]
    assert len(set(names)) == len(names) > 1
    symbols = {d for leaf in family.leaves for d in leaf.shape if isinstance(d, str)}
    assert symbols <= set(family.dimensions)


@each
def test_operators_are_known(family: Family) -> None:
    assert family.operators
    assert {choice.op for choice in family.operators} <= set(OPERATORS)


def test_a_family_is_found_under_its_own_name() -> None:
    assert all(name == family.name for name, family in FAMILIES.items())
