"""Budgets and shapes as they are written on the command line."""

import pytest

from rlflow.cli.arguments import parse_budget, parse_shape, parse_shapes
from rlflow.errors import InputError


@pytest.mark.parametrize(("text", "seconds"), [("60s", 60), ("500ms", 0.5), ("1.5m", 90), ("2", 2), ("1h", 3600)])
def test_budgets(text, seconds):
    assert parse_budget(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 day", "nan", "1e9999s", "0"])
def test_impossible_budgets(text):
    with pytest.raises(InputError, match="is not a budget"):
        parse_budget(text)


@pytest.mark.parametrize("text", ["x", "=1x2", "x=", "x=1x", "x=-1", "x=axb"])
def test_shapes_that_are_none(text):
    with pytest.raises(InputError, match="is not a shape"):
        parse_shape(text)


def test_shapes_are_read_from_the_end():
    assert parse_shape("a=b=2x3") == ("a=b", (2, 3))


def test_several_sizes_are_joined():
    assert parse_shapes("a+b=2x3+4") == ("a+b", ((2, 3), (4,)))
    assert parse_shapes("x=2x3") == parse_shape("x=2x3"), "one is a shape, not a list of it"
