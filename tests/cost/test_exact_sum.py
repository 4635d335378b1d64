"""Exact sums: the same whatever the order and the way, and rounded as `fsum` rounds all terms."""

from fractions import Fraction
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlflow.cost.exact_sum import exact

# As in prices: no overflow, and far from the smallest floats.
PRICES = st.floats(1e-6, 1e6) | st.floats(-1e6, -1e-6)


@pytest.mark.parametrize("terms", [[], [0.0], [0.1, -0.1], [1e16, 1.0, -1e16, -1.0]])
def test_nothing_is_left_of_what_cancels(terms):
    assert exact(terms) == ()


def test_a_sum_keeps_what_rounding_drops():
    """0.1 + 0.2 is not 0.3, and 1 is lost in 1e16; here neither is."""
    assert exact([1e16, 1.0]) == (1e16, 1.0)
    assert 1e16 + 1.0 == 1e16
    assert exact([0.1, 0.2, -0.3]) == (float(Fraction(0.1) + Fraction(0.2) - Fraction(0.3)),)


@given(st.lists(PRICES, max_size=30), st.lists(PRICES, max_size=5), st.randoms(use_true_random=False))
def test_a_sum_that_is_changed_is_the_sum_of_what_there_is_then(terms, made, rng):
    """As a price is: some terms go, others come, and the order is another one."""
    gone = rng.sample(terms, len(terms) // 2)
    changed = exact((*exact(terms), *made, *(-term for term in gone)))
    left = list(terms)
    for term in gone:
        left.remove(term)
    left += made
    rng.shuffle(left)
    assert sum(map(Fraction, changed)) == sum(map(Fraction, left))
    assert fsum(changed) == fsum(left)
    assert changed == exact(left)
