"""Rows by way of JSON."""

import json

from msgspec import convert
from studies.pass_ordering.rows import Outcome, Row

from rlflow.passes.backend import Facts, PassCost
from rlflow.passes.search import Found
from rlflow.schemas import plain


def test_a_row_is_read_as_it_was_written() -> None:
    found = Found(Facts("key", (("Add", 2),), PassCost(1.0, 0.0, 8.0)), ("cse", "dce"), tried=9)
    row = Row({"bert": Outcome.of(found), "gpt2": Outcome(7, 1, (), "an output differs")}, 2.5, (1.0, 2.0), {"hits": 3})
    assert row.outcomes["bert"] == Outcome(2, 9, ("cse", "dce"))
    assert convert(json.loads(json.dumps(plain(row))), Row) == row
