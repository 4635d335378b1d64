"""The choice among the snapshots of a training: the one that does best on the real graph is kept.

PPO learns in the dream alone. The longer it does, the better it finds the places where the dream is wrong, so that the
real score falls again while the dreamed one still rises (paper section 2.3). No gradient comes from the real graph, and
the real steps that the choice takes are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torch import nn

Agent = TypeVar("Agent")
Policy = TypeVar("Policy", bound=nn.Module)


@dataclass(frozen=True)
class Trial:
    """The improvement of the real graph by an agent, in percent, and the real steps that it took."""

    score_percent: float
    rewrites: int


Judge = Callable[[Agent], Trial]


@dataclass
class Selection(Generic[Policy]):
    """The best snapshot so far, the latest of equally good ones; `weights` is None before the first trial.

    tries_untrained: the policy before its first update is a snapshot, too.
    """

    judge: Judge[Policy]
    tries_untrained: bool = False
    score_percent: float = float("-inf")
    rewrites: int = 0
    weights: dict[str, Any] | None = None

    def consider(self, policy: Policy) -> float:
        """Try the policy and keep a copy of its weights if none was better; returns its score in percent."""
        trial = self.judge(policy)
        self.rewrites += trial.rewrites
        if trial.score_percent >= self.score_percent:
            self.score_percent = trial.score_percent
            self.weights = {name: value.clone() for name, value in policy.state_dict().items()}
        return trial.score_percent

    def choose(self, policy: Policy) -> None:
        """Give the policy the weights of the best snapshot."""
        if self.weights is not None:
            policy.load_state_dict(self.weights)

    def state_dict(self) -> dict[str, Any]:
        """All but the judge."""
        return {"score_percent": self.score_percent, "rewrites": self.rewrites, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        self.score_percent, self.rewrites = state["score_percent"], state["rewrites"]
        self.weights = state["weights"]
