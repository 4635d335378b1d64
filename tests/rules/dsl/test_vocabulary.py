"""The vocabulary: each word is a type of a parameter, and says what its name says."""

from typing import Annotated, get_args, get_origin

import pytest

from rlflow.rules.dsl import Attributes, Shape, Tensor, Value, vocabulary
from rlflow.rules.dsl.domains import Flag, Together

WORDS = {name: word for name, word in vars(vocabulary).items() if get_origin(word) is Annotated}


@pytest.mark.parametrize("name", WORDS)
def test_every_word_can_annotate_a_parameter(name: str) -> None:
    kind, *notes = get_args(WORDS[name])
    if kind is Tensor:
        assert all(isinstance(note, Shape | Flag) for note in notes)
        assert [note.parts() for note in notes if isinstance(note, Shape)] or "constant" in str(notes)
    elif kind is Attributes:
        (together,) = notes
        assert isinstance(together, Together)
        symbols = [symbol for symbol, _ in together.members.values()]
        assert len(set(symbols)) == len(symbols) >= 2
    else:
        assert kind is Value
        (domain,) = notes
        assert domain.to_json()


def test_there_are_words_for_the_usual_things() -> None:
    """Not vacuous: the test above ran on them."""
    assert {"Image", "Filters", "Window", "AnySlice", "Permutation", "Axis", "Rows", "Weight"} <= set(WORDS)


def test_windows_that_go_together_use_the_same_symbols() -> None:
    plain, grouped = (get_args(word)[1].members for word in (vocabulary.Window, vocabulary.GroupedWindow))
    assert {name: grouped[name][0] for name in plain} == {name: symbol for name, (symbol, _) in plain.items()}
    assert set(grouped) - set(plain) == {"group"}
