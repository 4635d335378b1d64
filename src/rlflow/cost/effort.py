"""The effort that a method makes, in counts and in seconds.

    Effort(rewrites=3) + Effort(prices_asked=10) == Effort(rewrites=3, prices_asked=10)

    tally = Tally()
    tally.count(Effort(rewrites=3))
    tally.effort                                            # Effort(rewrites=3)

Methods are compared by counts, which no other process on the machine can change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of a search, as every method counts it.

    - `rewrites`: those carried out, in a graph or in an e-graph; "evaluations" or "real interactions" in results.
    - `prices_asked`: prices that the search asked for, remembered ones as well.
    - `prices_measured`: prices that had to be measured on the runtime.
    - `rewriting_s`, `pricing_s`, `measuring_s`: seconds of each; `pricing_s` is without `measuring_s`.
    """

    rewrites: int = 0
    prices_asked: int = 0
    prices_measured: int = 0
    rewriting_s: float = 0.0
    pricing_s: float = 0.0
    measuring_s: float = 0.0

    def __add__(self, other: Effort) -> Effort:
        return Effort(
            self.rewrites + other.rewrites,
            self.prices_asked + other.prices_asked,
            self.prices_measured + other.prices_measured,
            self.rewriting_s + other.rewriting_s,
            self.pricing_s + other.pricing_s,
            self.measuring_s + other.measuring_s,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the figures under the names that results publish; rewrites are `real_interactions` there."""
        return {
            "real_interactions": self.rewrites,
            "prices_asked": self.prices_asked,
            "prices_measured": self.prices_measured,
            "rewriting_s": self.rewriting_s,
            "pricing_s": self.pricing_s,
            "measuring_s": self.measuring_s,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Effort:
        """Read what `to_json` wrote; `KeyError` if a figure is missing."""
        others = ("prices_asked", "prices_measured", "rewriting_s", "pricing_s", "measuring_s")
        return cls(content["real_interactions"], **{name: content[name] for name in others})


class Tally:
    """Effort as it is counted; evaluators of one search, and of searches inside it, count into the same one.

    - `expansions`: graphs of which a search has looked at all rewrites.
    - `prices_asked`, `pricing_s`: as in `Effort`; they change too often to make an `Effort` each time.
    - `others`: all other effort.
    """

    def __init__(self) -> None:
        self.expansions = 0
        self.prices_asked = 0
        self.pricing_s = 0.0
        self.others = Effort()

    @property
    def effort(self) -> Effort:
        """The effort so far."""
        return self.others + Effort(prices_asked=self.prices_asked, pricing_s=self.pricing_s)

    def count(self, effort: Effort) -> None:
        """Add effort."""
        self.others += effort
