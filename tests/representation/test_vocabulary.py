"""Names behind numbers: kept as they are, and refused where a number could mean two things."""

import json
from dataclasses import asdict

import pytest

from rlflow.errors import InputError
from rlflow.representation.vocabulary import OPAQUE, PADDING, Vocabulary

SMALL = Vocabulary((PADDING, OPAQUE, "Add", "Mul"), ("rank", "operands"))


def test_json_gives_the_same_back() -> None:
    assert Vocabulary.from_json(json.loads(json.dumps(asdict(SMALL)))) == SMALL


def test_padding_is_index_0() -> None:
    with pytest.raises(InputError, match="must begin with <padding>"):
        Vocabulary((OPAQUE, PADDING), ())
    with pytest.raises(InputError, match="must begin with <padding>"):
        Vocabulary((), ())


def test_a_repeated_name_is_refused() -> None:
    with pytest.raises(InputError, match="the operator Add is there more than once"):
        Vocabulary((PADDING, "Add", "Add"), ())
    with pytest.raises(InputError, match="the feature rank is there more than once"):
        Vocabulary((PADDING,), ("rank", "operands", "rank"))


def test_a_difference_is_told_by_name() -> None:
    assert SMALL.describe_difference(SMALL) == ""
    other = Vocabulary((PADDING, OPAQUE, "Mul", "Relu"), ("operands", "rank"))
    assert SMALL.describe_difference(other) == "operators without Add, with Relu; features in another order"
