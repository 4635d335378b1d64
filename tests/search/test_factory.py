"""An option that a search does not take is refused with those that it does."""

import pytest

from rlflow.errors import InputError
from rlflow.search.factory import make_search


def _search(library, rewriter, cost_model, depth=3):
    return library, rewriter, cost_model, depth


def test_a_search_is_made_from_its_parts_and_options():
    assert make_search(_search, (1, 2, 3), {"depth": 4}, "the search") == (1, 2, 3, 4)


def test_an_option_that_there_is_not_is_refused():
    with pytest.raises(InputError, match=r"^the search x cannot be made: .*'breadth'; its options are depth$"):
        make_search(_search, (1, 2, 3), {"breadth": 4}, "the search x")


def test_a_failure_inside_is_not_taken_for_a_wrong_option():
    def fails(library):
        raise TypeError("inside")

    with pytest.raises(TypeError, match="inside"):
        make_search(fails, (1,), {}, "the search")
