"""Searches by name."""

import pytest
from support.toy_compiler import SafeToyCompiler

from rlflow.errors import InputError
from rlflow.passes.factory import METHODS, search_with
from rlflow.passes.onnx.backend import OnnxBackend
from rlflow.passes.transitions import Transitions

SETTINGS = {"max_passes": 9, "width": 2, "episodes": 4, "seed": 0}


def test_every_name_means_its_search() -> None:
    """On "ccab": `default` removes "ab", greedy search as well, and what may grow the word empties it."""
    transitions = Transitions(SafeToyCompiler())
    methods = [method for method in METHODS if method != "core_set"]  # nothing was learned for words
    left = {m: search_with(m, transitions, transitions.start("ccab"), **SETTINGS).facts.operations for m in methods}
    assert left.pop("random") <= 4
    assert left == {"beam": 0, "greedy": 2, "fixpoint": 0, "chain": 0, "default": 2}


def test_the_core_set_that_comes_along_takes_detours_away() -> None:
    """Fewer operations are left than by the default pipeline, and the model computes the same."""
    transitions = Transitions(OnnxBackend())
    start = transitions.start("detours/mlp?layers=2&hidden=16")
    found = search_with("core_set", transitions, start, **SETTINGS)
    assert found.tried == 45, "whatever else is asked for"
    assert found.facts.operations < search_with("default", transitions, start, **SETTINGS).facts.operations
    assert not transitions.backend.check(transitions.payload(start.key), transitions.payload(found.facts.key), seed=0)


@pytest.mark.parametrize("method", ["beam", "greedy", "random"])
def test_a_long_search_tells_how_far_it_is(method: str) -> None:
    transitions, told = Transitions(SafeToyCompiler()), list[tuple[float, str]]()
    search_with(
        method,
        transitions,
        transitions.start("ccab"),
        **SETTINGS,
        on_progress=lambda done, text: told.append((done, text)),
    )
    assert told[0] == (0.0, "4 operations after 0 passes")
    assert len(told) > 1
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_an_unknown_name_is_refused() -> None:
    transitions = Transitions(SafeToyCompiler())
    with pytest.raises(InputError, match="there is no search 'luck' for passes: choose one of beam, greedy"):
        search_with("luck", transitions, transitions.start("cc"), **SETTINGS)
