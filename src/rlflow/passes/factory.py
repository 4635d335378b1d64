"""Searches for passes by name, with the settings that a person may give all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rlflow.errors import InputError
from rlflow.passes import core_set, search
from rlflow.passes.backend import Facts
from rlflow.passes.search import Found, OnProgress
from rlflow.passes.transitions import Transitions

METHODS = ("beam", "greedy", "random", "core_set", "fixpoint", "chain", "default")


def search_with(
    method: str,
    transitions: Transitions,
    start: Facts,
    *,
    max_passes: int,
    width: int,
    episodes: int,
    seed: int,
    on_progress: OnProgress | None = None,
) -> Found:
    """Search by a method of `METHODS`. `InputError` if there is none of that name."""
    known = transitions.backend.catalogue()
    bounds: dict[str, Any] = {"max_passes": max_passes, "on_progress": on_progress}
    searches: Mapping[str, Callable[[], Found]] = {
        "beam": lambda: search.beam(transitions, start, width=width, **bounds),
        "greedy": lambda: search.greedy(transitions, start, **bounds),
        "random": lambda: search.by_chance(transitions, start, episodes=episodes, seed=seed, **bounds),
        "core_set": lambda: core_set.run(transitions, start, core_set.shipped(known.name)),
        "fixpoint": lambda: search.fixpoint(transitions, start, known.simplifiers),
        "chain": lambda: search.sequence(transitions, start, known.chain),
        "default": lambda: search.sequence(transitions, start, [known.default]),
    }
    if method not in searches:
        raise InputError(f"there is no search {method!r} for passes: choose one of {', '.join(METHODS)}")
    return searches[method]()
