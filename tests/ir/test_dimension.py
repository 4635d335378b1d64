"""Derived symbols: one name for what is computed in one way, and no name for two things."""

from hypothesis import given
from hypothesis import strategies as st

from rlflow.ir.dimension import at_most, is_at_most, over, plus

SYMBOLS = st.sampled_from(["n", "batch size", "#0", "", "n+1", "n-1", "~(n)//2+1", "~min(n, 64)"])
NUMBERS = st.integers(-300, 300)


@given(symbol=SYMBOLS, first=NUMBERS, second=NUMBERS)
def test_steps_add_up(symbol: str, first: int, second: int) -> None:
    """Whatever they are: so what branches of a network do to a size can be told to be the same."""
    assert plus(plus(symbol, first), second) == plus(symbol, first + second)
    assert plus(symbol, 0) == symbol
    assert first == second or plus(symbol, first) != plus(symbol, second)


def test_a_name_that_looks_like_a_sum_is_a_name() -> None:
    """Somebody's `dim-1` is no `dim`, even one larger."""
    assert plus("dim-1", 1) not in ("dim", plus("dim", 0))
    assert plus("dim+1", 1) != plus("dim", 2)


def test_quotients() -> None:
    assert over("n", 1) == "n"
    assert len({over("n", 2), over("n", 3), over(plus("n", 1), 2), plus(over("n", 2), 1), "n"}) == 5
    assert plus(over(plus("n", 2 - 3), 2), 1) == plus(over(plus("n", -1), 2), 1)  # 3 x 3 padded by 1, and 1 x 1


def test_the_smaller_one() -> None:
    assert is_at_most(at_most("n", 64), "n")
    assert not any(is_at_most(d, "n") for d in ("n", 64, None, at_most("m", 64), at_most("nn", 64)))
