"""Core sets of pass sequences, on words whose shortest form is known, and those that come with RLFlow."""

from pathlib import Path

import pytest
from experiment.results import read_results
from hypothesis import given, settings
from hypothesis import strategies as st
from support.toy_compiler import REWRITES, SafeToyCompiler

from rlflow.errors import InputError
from rlflow.passes import core_set
from rlflow.passes.backends import BACKENDS, backend_of
from rlflow.passes.transitions import Transitions

ALONE = [(name,) for name in REWRITES]
THROUGH_LONGER_WORDS = ("expand", "swap", "cancel")

words = st.text("abc", min_size=1, max_size=6)
candidates = st.lists(st.lists(st.sampled_from(sorted(REWRITES)), min_size=1, max_size=3).map(tuple), max_size=5)


@pytest.fixture
def transitions() -> Transitions:
    return Transitions(SafeToyCompiler())


def left(transitions: Transitions, word: str, core: core_set.CoreSet) -> int:
    return core_set.run(transitions, transitions.start(word), core).facts.operations


def test_what_leaves_more_operations_is_undone(transitions: Transitions) -> None:
    """Alone "expand" makes "cc" longer; within a sequence that ends well it does not matter."""
    found = core_set.run(transitions, transitions.start("ccab"), (("expand",), ("cancel",)))
    assert (found.facts.operations, found.passes, found.tried) == (2, ("cancel",), 2)
    assert left(transitions, "cc", (THROUGH_LONGER_WORDS,)) == 0
    assert left(transitions, "cc", (("expand", "swap"), ("cancel",))) == 2, "each begins at the best program so far"


def test_what_leaves_as_many_is_kept(transitions: Transitions) -> None:
    """Since "swap" gains nothing itself, and "cancel" nothing without it."""
    assert left(transitions, "ba", (("swap",), ("cancel",))) == 0


def test_one_core_set_is_learned_for_all_programs(transitions: Transitions) -> None:
    """By what a pass gains; then nothing is left to be removed, and nothing else empties "cc" in a second way."""
    starts = [transitions.start(word) for word in ("abab", "cc")]
    learned = core_set.learned(transitions, starts, [*ALONE, THROUGH_LONGER_WORDS], max_passes=8)
    assert learned == 2 * (("cancel",), THROUGH_LONGER_WORDS), "it is run again, as long as there are passes left"
    assert left(transitions, "ccabc", learned) == 0, "which it was not learned on"
    assert core_set.learned(transitions, starts, ALONE, max_passes=2) == (("cancel",), ("cancel",))
    assert core_set.learned(transitions, starts, [THROUGH_LONGER_WORDS], max_passes=2) == ()


def test_what_gains_nothing_here_comes_last(transitions: Transitions) -> None:
    """Without "cancel" none of them gains; "swap" changes two words, "expand" one, and "refuse" none."""
    starts = [transitions.start(word) for word in ("ab", "ba", "bba", "c")]
    offered = [("refuse",), ("expand",), ("swap",)]
    assert core_set.learned(transitions, starts, offered, max_passes=9) == (("swap",), ("expand",))
    learned = core_set.learned(transitions, [starts[0], starts[3]], [*offered, ("cancel",)], max_passes=9)
    assert learned == (("cancel",), ("cancel",), ("expand",)), "chosen, chosen again, and what might gain elsewhere"


def test_there_is_a_second_way_where_there_is_one(transitions: Transitions) -> None:
    """The same passes in a longer sequence gain less for each, and so they come after."""
    twice = (*THROUGH_LONGER_WORDS, "cancel")
    starts = [transitions.start("cc")]
    learned = core_set.learned(transitions, starts, [THROUGH_LONGER_WORDS, twice], max_passes=7)
    assert learned == (THROUGH_LONGER_WORDS, twice)


@settings(deadline=None)
@given(st.lists(words, min_size=1, max_size=4), candidates, st.integers(1, 9))
def test_it_has_the_passes_that_are_granted_or_nothing_gains(
    known: list[str], offered: list[core_set.Passes], most: int
) -> None:
    transitions = Transitions(SafeToyCompiler())
    starts = [transitions.start(word) for word in known]
    before = [start.operations for start in starts]
    learned = core_set.learned(transitions, starts, offered, max_passes=most)
    assert sum(map(len, learned)) <= most
    assert set(learned) <= set(offered)
    assert all(left(transitions, word, learned) <= count for word, count in zip(known, before, strict=True))
    gaining = [names for names in offered if [left(transitions, word, (names,)) for word in known] != before]
    assert not gaining or core_set.learned(transitions, starts, offered, max_passes=3), "none has more than 3"


@pytest.mark.parametrize("backend", BACKENDS.built_in)
def test_a_backend_has_the_passes_of_its_core_set(backend: str) -> None:
    if backend.startswith("xla"):
        pytest.importorskip("jax")
    passes = {name for names in core_set.shipped(backend) for name in names}
    assert passes
    assert passes <= set(backend_of(backend).catalogue().passes)


@pytest.mark.parametrize("backend", ["onnx", "xla"])
def test_what_is_shipped_is_what_was_evaluated(repository: Path, backend: str) -> None:
    document = read_results(repository / f"data/results/pass_ordering/one_shot/{backend}.json")
    learned = document["entrants"]["core_set"]["0"]["core_set"]
    assert core_set.shipped(backend) == tuple(map(tuple, learned))


def test_there_is_none_for_other_compilers() -> None:
    with pytest.raises(InputError, match="no core set was learned for the passes of 'toy'"):
        core_set.shipped("toy")
