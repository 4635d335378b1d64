"""Masks follow from match counts: prefixes, and terminate always valid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rlflow.errors import InputError
from rlflow.representation.action_space import ActionSpace


def test_terminate_is_valid_where_nothing_matches() -> None:
    """The trap of stock masking: an all-false row would mean uniform over everything."""
    space = ActionSpace(3, 5)
    assert space.rule_mask(np.zeros(3, dtype=int)).tolist() == [False, False, False, True]


@given(arrays.arrays(np.int64, (4, 3), elements=st.integers(0, 5)))
def test_location_masks_are_prefixes_of_the_counts(counts: np.ndarray) -> None:
    space = ActionSpace(3, 5)
    mask = space.location_mask(counts)
    assert (mask.sum(-1) == counts).all()
    assert (np.diff(mask.astype(int), axis=-1) <= 0).all()
    assert (space.rule_mask(counts)[..., :-1] == mask.any(-1)).all()


@given(st.lists(st.integers(0, 5), min_size=2, max_size=2), st.integers(-1, 3), st.integers(-1, 6))
def test_validity_agrees_with_the_masks(counts: list[int], rule: int, location: int) -> None:
    space, array = ActionSpace(2, 5), np.array(counts)
    expected = (
        location == 0
        if rule == space.terminate
        else 0 <= rule < 2 and 0 <= location < 5 and bool(space.location_mask(array)[rule, location])
    )
    assert space.is_valid(array, rule, location) == expected


def test_an_empty_space_is_refused() -> None:
    with pytest.raises(InputError, match="at least 0 rules and 1 location"):
        ActionSpace(3, 0)
