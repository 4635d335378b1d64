"""Potential-based reward shaping (Ng, Harada, Russell 1999): hints that do not change which policy is the best.

    env = PotentialShaping(env, by_name("cost"), gamma=0.99)

To each reward is added gamma Phi(s') - Phi(s). Over an episode that telescopes to -Phi(start), which no action can
change; so it must be with the learner's own gamma, and with Phi = 0 in the state after termination. Truncation is no
termination: the learner goes on valuing the state that was cut off.

The potentials here are 0 at the start as well. One that is -200 there, the cost itself, has the same best policy, but
pays 200 for stopping at once, and a learner finds that first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, SupportsFloat

import gymnasium

from rlflow.errors import InputError
from rlflow.passes.backend import Facts

Potential = Callable[[Facts, Facts], float]
"""Of the program that an episode began with and the present one; higher is better."""


class PotentialShaping(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds gamma Phi(s') - Phi(s) to the rewards of an environment that tells of programs (`facts`, `start_facts`).

    `gamma` must be the learner's. `info["unshaped_reward"]` is what the environment itself gave.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], potential: Potential, *, gamma: float) -> None:
        if not 0.0 <= gamma <= 1.0:
            raise InputError(f"gamma must lie between 0 and 1, not {gamma}: give the learner's")
        super().__init__(env)
        self.potential, self.gamma = potential, gamma

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        before = self._phi()
        observation, reward, terminated, truncated, info = self.env.step(action)
        after = 0.0 if terminated else self._phi()
        shaped = float(reward) + self.gamma * after - before
        return observation, shaped, terminated, truncated, info | {"unshaped_reward": float(reward)}

    def _phi(self) -> float:
        return self.potential(self.get_wrapper_attr("start_facts"), self.get_wrapper_attr("facts"))


def cost(start: Facts, facts: Facts) -> float:
    """The paper's, from cost analysis: floating-point and transcendental operations saved, in percent of the start."""
    return _saved_percent(facts.cost.flops, start.cost.flops) + _saved_percent(
        facts.cost.transcendentals, start.cost.transcendentals
    )


def bytes_accessed(start: Facts, facts: Facts) -> float:
    """Bytes accessed no more, in percent of the start's; they move where floating-point operations do not."""
    return _saved_percent(facts.cost.bytes_accessed, start.cost.bytes_accessed)


def _saved_percent(now: float, start: float) -> float:
    return 100.0 * (start - now) / start if start else 0.0


POTENTIALS: Mapping[str, Potential] = {"cost": cost, "bytes": bytes_accessed}


def by_name(name: str) -> Potential:
    """A potential by its name. `InputError` if there is none."""
    if name not in POTENTIALS:
        raise InputError(f"there is no potential {name!r}: choose one of {', '.join(POTENTIALS)}")
    return POTENTIALS[name]
