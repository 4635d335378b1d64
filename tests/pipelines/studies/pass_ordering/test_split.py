"""Programs are divided by family, and none is on both sides."""

import pytest
from studies.pass_ordering.split import split_of

from rlflow.errors import InputError
from rlflow.passes.backend import Source

SOURCES = [Source(f"{family}{number}", family) for family in ("a", "b", "c") for number in range(10)]


def test_no_family_is_on_both_sides() -> None:
    split = split_of(SOURCES, ["b"], training_graphs=4, held_out_graphs=3)
    assert split.training == ("a0", "a5", "c0", "c5"), "evenly over all others"
    assert split.held_out == {"b": ("b0", "b3", "b6")}
    assert split.all_held_out == ("b0", "b3", "b6")


def test_all_are_taken_where_there_are_no_more() -> None:
    split = split_of(SOURCES, ["a", "c"], training_graphs=99, held_out_graphs=99)
    assert (len(split.training), len(split.all_held_out)) == (10, 20)


def test_what_cannot_be_divided_is_refused() -> None:
    with pytest.raises(InputError, match="there is no family 'd' in this dataset: choose among a, b, c"):
        split_of(SOURCES, ["d"], training_graphs=1, held_out_graphs=1)
    with pytest.raises(InputError, match="no family is left to train on"):
        split_of(SOURCES, ["a", "b", "c"], training_graphs=1, held_out_graphs=1)
