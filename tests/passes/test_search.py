"""Searches for passes, on words whose shortest form is known."""

import pytest
from support.toy_compiler import SafeToyCompiler

from rlflow.passes import search
from rlflow.passes.transitions import Transitions


@pytest.fixture
def transitions() -> Transitions:
    return Transitions(SafeToyCompiler())


def test_greedy_search_is_stuck_where_a_word_must_grow_first(transitions: Transitions) -> None:
    start = transitions.start("cc")
    assert search.greedy(transitions, start, max_passes=9).facts == start
    assert search.greedy(transitions, transitions.start("abab"), max_passes=9).facts.operations == 0, "but not always"


def test_beam_search_goes_through_longer_words_to_the_optimum(transitions: Transitions) -> None:
    found = search.beam(transitions, transitions.start("cc"), width=2, max_passes=9)
    assert found.facts.operations == 0
    assert found.passes == ("expand", "swap", "cancel")
    assert found.tried >= 3 * 4, "each level tries all passes"


def test_the_fixpoint_repeats_until_nothing_changes(transitions: Transitions) -> None:
    """A round removes the inner "ab" of each "aabb", which brings the outer letters together."""
    start = transitions.start("aabbaabb")
    once = search.sequence(transitions, start, ["default"])
    assert once.facts.operations == 4
    repeated = search.fixpoint(transitions, start, ["default"])
    assert repeated.facts.operations == 0
    assert repeated.passes == ("default", "default")
    assert repeated.tried == 3, "the last round changes nothing"


def test_chance_is_the_same_for_the_same_seed(transitions: Transitions) -> None:
    start = transitions.start("cc")
    settings = {"max_passes": 6, "episodes": 3}
    first = search.by_chance(transitions, start, seed=1, **settings)
    assert first == search.by_chance(transitions, start, seed=1, **settings)
    assert first.tried == 18
    drawn = {search.by_chance(transitions, start, seed=seed, **settings).facts.operations for seed in range(20)}
    assert drawn == {0, 2}, "it finds the optimum by some seeds and never leaves the start by others"


def test_passes_lead_where_a_search_says(transitions: Transitions) -> None:
    start = transitions.start("ccab")
    for found in (
        search.beam(transitions, start, width=3, max_passes=9),
        search.by_chance(transitions, start, max_passes=9, episodes=9, seed=0),
    ):
        assert search.sequence(transitions, start, found.passes).facts == found.facts
