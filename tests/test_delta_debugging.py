"""The part that is left fails, and without any one of its items it does not."""

from hypothesis import given
from hypothesis import strategies as st

from rlflow.delta_debugging import smallest_failing


@given(items=st.sets(st.integers(0, 40), min_size=1), data=st.data())
def test_what_is_left_is_what_was_needed(items: set[int], data: st.DataObject) -> None:
    """Of a set of needed items, which may be all of them, exactly these remain, in their order."""
    needed = data.draw(st.sets(st.sampled_from(sorted(items)), min_size=1))
    asked: list[tuple[int, ...]] = []

    def fails(part: tuple[int, ...]) -> bool:
        asked.append(part)
        return needed <= set(part)

    assert smallest_failing(tuple(sorted(items)), fails) == tuple(sorted(needed))
    assert all(part == tuple(sorted(part)) for part in asked)


@given(first=st.integers(0, 10), second=st.integers(11, 20))
def test_either_of_two_reasons_will_do(first: int, second: int) -> None:
    assert smallest_failing(tuple(range(21)), lambda part: first in part or second in part) in ((first,), (second,))


def test_a_single_item_takes_few_questions() -> None:
    """About twice the logarithm: a question may cost a second."""
    asked = []
    assert smallest_failing(tuple(range(64)), lambda part: not asked.append(part) and 41 in part) == (41,)
    assert len(asked) <= 12
