"""Derived symbols: one name for what is computed in one way, and no name for two things."""

from hypothesis import given
from hypothesis import strategies as st

from rlflow.ir.dimension import at_most, is_at_most, over, plus, size_of

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


NAMES = st.sampled_from(["n", "height", "a-1", "a, 3"])
DERIVED = st.recursive(
    NAMES.map(lambda name: (name, {"n": 7, "height": 32, "a-1": 5, "a, 3": 9}[name])),
    lambda known: st.one_of(
        st.tuples(known, st.integers(-9, 9)).map(lambda each: (plus(each[0][0], each[1]), each[0][1] + each[1])),
        st.tuples(known, st.integers(1, 4)).map(lambda each: (over(each[0][0], each[1]), each[0][1] // each[1])),
        st.tuples(known, st.integers(1, 9)).map(lambda each: (at_most(each[0][0], each[1]), min(each[0][1], each[1]))),
    ),
    max_leaves=5,
)


@given(DERIVED)
def test_a_derived_dimension_has_the_size_that_arithmetic_gives(derived: tuple[str, int]) -> None:
    symbol, size = derived
    assert size_of(symbol, {"n": 7, "height": 32, "a-1": 5, "a, 3": 9}) == size


def test_nothing_is_known_of_the_size_of_other_symbols() -> None:
    assert [size_of(each, {"n": 7}) for each in (3, None, "m", "~(m)//2", "~m+1")] == [3, None, None, None, None]
