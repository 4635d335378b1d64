"""Environments that are stepped together, in the interface of Stable-Baselines3: dreams, or episodes on a real graph.

A subclass gives `reset`, `step_wait`, `state_dict` and `load_state_dict`. Nothing can be set in one environment alone,
since those of a batch share everything but where they are; of what can be asked, each has its row.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv


class BatchEnv(VecEnv):
    """B environments side by side. One that ends begins anew in the same call, as in every `VecEnv`."""

    render_mode = None
    _actions: np.ndarray

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """All that the environments carry from step to step."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned."""

    def step_async(self, actions: np.ndarray) -> None:
        """Take note of the actions."""
        self._actions = np.asarray(actions, dtype=np.int64)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Nothing is drawn, unless a subclass says so."""
        return [seed] * self.num_envs

    def close(self) -> None:
        """Nothing to release."""

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """An attribute, once for each environment; they share it."""
        value = getattr(self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Refused: the environments of a batch share everything."""
        raise NotImplementedError("the environments of a batch share their settings; build another batch")

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Ask for the rows of `action_masks`; anything else is refused, since a batch has no environment inside."""
        if method_name != "action_masks":
            raise NotImplementedError(f"cannot call {method_name}: a batch has no environment inside")
        rows = getattr(self, method_name)()
        return [rows[index] for index in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: int | Iterable[int] | None = None) -> list[bool]:
        """Never: a batch has no environment inside."""
        return [False for _ in self._get_indices(indices)]
