"""No search at all: for what is done before a search, or after it, by itself."""

from __future__ import annotations

from dataclasses import dataclass

from rlflow.method import OnProgress, State, Workspace
from rlflow.search.base import Search


@dataclass(frozen=True)
class Nothing(Search):
    """Leaves every graph as it is. As a method it is called "passes", since these are what is left then."""

    name: str = "passes"

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        return state
