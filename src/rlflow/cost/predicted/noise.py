"""The noise of a price, by its size: how much of a change of prices may be nothing.

Noise(share=0.025, us=1.5).sigma_ms(1.0) == 0.0265
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Noise:
    """The standard error of a price is a share of it, and some microseconds beside."""

    share: float
    us: float

    def sigma_ms(self, ms: float) -> float:
        """Return the standard error of a price of `ms` milliseconds."""
        return self.share * ms + self.us / 1e3
