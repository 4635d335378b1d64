"""Registries of what is chosen by name: methods, cost models and zoo models, ours and those of other packages.

Ours stand in a table of import strings, `"greedy": "rlflow.search.greedy:Greedy"`, so that to list the names imports
none of them, and what only one of them needs is imported when that one is chosen. Another package announces its own as
an entry point of the registry's group, in its `pyproject.toml`:

    [project.entry-points."rlflow.methods"]
    annealing = "my_package.annealing:Annealing"

A name of ours always means ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Generic, TypeVar

from rlflow.errors import InputError

T = TypeVar("T")


_MOST_LISTED = 60


def unknown(noun: str, name: str, names: Iterable[str]) -> str:
    """Say that there is no `noun` of this name: which are nearest, and all that there are unless they are many."""
    there_are = list(names)
    near = get_close_matches(name, there_are)
    meant = f"did you mean {' or '.join(near)}?" if near else ""
    listed = f"choose one of {', '.join(there_are)}" if len(there_are) <= _MOST_LISTED or not near else ""
    return f"there is no {noun} {name!r}: {' '.join(filter(None, (meant, listed)))}"


@dataclass(frozen=True)
class Registry(Generic[T]):
    """A table of names to choose from; `noun` is the word for one in an error, `group` names the entry points."""

    noun: str
    group: str
    built_in: Mapping[str, str]

    def names(self) -> list[str]:
        """Ours as the table has them, then those of other packages, sorted."""
        return [*self.built_in, *sorted(self._of_other_packages())]

    def get(self, name: str) -> T:
        """Import what has this name. `InputError` if there is no such name, or if it cannot be imported."""
        if name in self.built_in:
            found: T = EntryPoint(name, self.built_in[name], self.group).load()
            return found
        others = self._of_other_packages()
        if name not in others:
            raise InputError(unknown(self.noun, name, self.names()))
        try:
            found = others[name].load()
        except (ImportError, AttributeError) as error:
            raise InputError(
                f"the {self.noun} {name!r} cannot be imported from {others[name].value} ({error}): mend or remove the "
                "package that announces it"
            ) from None
        return found

    def _of_other_packages(self) -> dict[str, EntryPoint]:
        found = {entry.name: entry for entry in _announced(tuple(sys.path))(group=self.group)}
        return {name: entry for name, entry in found.items() if name not in self.built_in}


@cache
def _announced(path: tuple[str, ...]) -> Callable[..., EntryPoints]:
    """Return the selector of entry points of the packages on this path: to read them takes a while."""
    return entry_points().select
