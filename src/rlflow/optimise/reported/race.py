"""The measurements of candidates before one was checked, in a report."""

from collections.abc import Mapping
from dataclasses import dataclass

from rlflow.optimise.reported.steps import rules_words


@dataclass(frozen=True)
class Measured:
    """The measured milliseconds of all parts of the graph that the search began with and of the one it went on with.

    Of so many `graphs` that was the cheapest.
    """

    before_ms: float
    after_ms: float
    graphs: int


@dataclass(frozen=True)
class Racer:
    """A candidate in a race: the steps that lead to it, ids of the rules that it does `without`, and its ratio to the
    original, above 1 if it is faster, over so many rounds.
    """

    without: tuple[str, ...]
    steps: int
    ratio: float
    rounds: int

    def summary(self, names: Mapping[str, str]) -> str:
        """Its ratio behind what it is, with the names of rules by their ids."""
        what = f"{self.steps} {'step' if self.steps == 1 else 'steps'}"
        without = f" without {rules_words(self.without, names)}" if self.without else ""
        return f"{what}{without}: {self.ratio:.3f}"
