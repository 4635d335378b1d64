"""The dream: a batched environment that M imagines, with no real step in it.

B dreams are stepped together: `step` takes B actions, asks M once, and returns B observations (z, h, counts, cost),
rewards and ends. A dream starts in a state that the rollouts visited, with M's memory of the way there; one that ends
begins anew in the same call, as every `VecEnv` of Stable-Baselines3 does.

The invariant: nothing here can reach a real graph (docs/decisions.md, 8), and everything that a step depends on is in
`state_dict`, so that a training goes on after a kill as if it had not happened.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from rlflow.errors import InputError
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.config import DreamConfig
from rlflow.world_model.dataset import pad_episodes
from rlflow.world_model.imagination import imagine
from rlflow.world_model.latent_state import layout_of
from rlflow.world_model.mdn_rnn import Hidden, State
from rlflow.world_model.model import WorldModel

INVALID_ACTION_REWARD = -100.0  # the real environment's (docs/decisions.md, 11)


@dataclass(frozen=True)
class Starts:
    """S states in which a dream may begin, with M's memory of the way there.

    initial (S,) bool: an episode of the rollouts began here.
    """

    state: State
    hidden: Hidden
    initial: Tensor


@torch.no_grad()
def visited_states(model: WorldModel, rollouts: Rollouts) -> Starts:
    """Every state of the rollouts in which an action was taken."""
    latents = model.latents(rollouts)
    sequences = pad_episodes(rollouts.episodes)
    state, _ = sequences.transitions(latents)
    h, c = model.memory.recall(state, sequences.action)

    valid = sequences.valid
    initial = torch.zeros_like(valid)
    initial[:, 0] = True
    return Starts(
        state=State(state.z[valid], state.counts[valid], state.cost[valid]),
        hidden=(h[valid], c[valid]),
        initial=initial[valid],
    )


class DreamEnv(VecEnv):
    """B dreams side by side, stepped together in torch.

    Observation: flat float32 `ObservationLayout`. Action: (rule, location) in MultiDiscrete([R + 1, L]). Rewards
    in percent. An episode ends by terminate (or where M predicts it), and is truncated at `max_steps` with
    `TimeLimit.truncated` and `terminal_observation` in its info. An invalid action costs 100 and changes nothing.
    """

    render_mode = None

    def __init__(self, model: WorldModel, starts: Starts, config: DreamConfig, *, seed: int) -> None:
        if not starts.initial.any():
            raise InputError("dream: no start state; give rollouts with at least one step")
        self.memory, self.starts, self.config = model.memory, starts, config
        self.layout = layout_of(model)
        self.rule_ids = model.arguments.rule_ids
        self.library_hash = model.arguments.library_hash
        self.generator = torch.Generator().manual_seed(seed)
        self._initial = torch.nonzero(starts.initial).squeeze(-1)
        space = spaces.Box(-np.inf, np.inf, (self.layout.size,), np.float32)
        actions = spaces.MultiDiscrete([self.memory.num_rules + 1, self.memory.max_locations])
        super().__init__(config.num_envs, space, actions)
        self._actions = np.zeros((config.num_envs, 2), dtype=np.int64)
        self.state, self.hidden = self._draw(config.num_envs)
        self.steps = torch.zeros(config.num_envs, dtype=torch.int64)

    def reset(self) -> np.ndarray:
        """Begin all dreams anew; observations (B, size)."""
        self.state, self.hidden = self._draw(self.num_envs)
        self.steps.zero_()
        return self._observation()

    def step_async(self, actions: np.ndarray) -> None:
        """Take note of actions (B, 2)."""
        self._actions = actions

    @torch.no_grad()
    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Imagine the actions' outcome; dreams that end begin anew in the same call."""
        action = torch.from_numpy(np.asarray(self._actions, dtype=np.int64))
        valid = self._is_valid(action)

        # An invalid action is imagined as terminate, then undone: M is never asked about what cannot be done.
        safe = torch.where(valid[:, None], action, torch.tensor([self.memory.num_rules, 0]))
        state, reward, terminated, hidden = imagine(
            self.memory, self.state, safe, self.hidden, self.config, self.generator
        )
        self._replace(valid, state, hidden)
        reward = torch.where(valid, reward, INVALID_ACTION_REWARD)

        self.steps += 1
        terminated = terminated & valid
        done = terminated | (self.steps >= self.config.max_steps)

        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if done.any():
            last = self._observation()
            for index in torch.nonzero(done).flatten().tolist():
                infos[index] = {
                    "terminal_observation": last[index],
                    "TimeLimit.truncated": not bool(terminated[index]),
                }
            self._restart(done)

        return self._observation(), reward.numpy(), done.numpy(), infos

    @property
    def fingerprint(self) -> str:
        """Hash of the dream: model, starts and settings."""
        digest = hashlib.sha256(repr(self.config).encode())
        starts = (*vars(self.starts.state).values(), *self.starts.hidden, self.starts.initial)
        for tensor in (*self.memory.state_dict().values(), *starts):
            digest.update(tensor.numpy().tobytes())
        return digest.hexdigest()

    def state_dict(self) -> dict[str, Tensor]:
        """All that a dream carries from step to step."""
        return {
            "z": self.state.z,
            "counts": self.state.counts,
            "cost": self.state.cost,
            "h": self.hidden[0],
            "c": self.hidden[1],
            "steps": self.steps,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state_dict` returned."""
        self.state = State(state["z"], state["counts"], state["cost"])
        self.hidden = (state["h"], state["c"])
        self.steps = state["steps"].clone()
        self.generator.set_state(state["generator"])

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed the noise of the dream."""
        if seed is not None:
            self.generator.manual_seed(seed)
        return [seed] * self.num_envs

    def close(self) -> None:
        """Nothing to release."""

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """An attribute, once per dream; they share it."""
        value = getattr(self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Refused: the dreams of a batch share everything."""
        raise NotImplementedError("the dreams of a batch share their settings; build another DreamEnv")

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Refused: a dream has no environment inside."""
        raise NotImplementedError(f"cannot call {method_name}: a dream has no environment inside")

    def env_is_wrapped(self, wrapper_class: type, indices: int | Iterable[int] | None = None) -> list[bool]:
        """Never: a dream has no environment inside."""
        return [False for _ in self._get_indices(indices)]

    def _is_valid(self, action: Tensor) -> Tensor:
        """Return (B,) bool: the masks admit the action (B, 2)."""
        rule, location = action.unbind(dim=-1)
        # terminate counts as a rule with one match
        matches = torch.nn.functional.pad(self.state.counts, (0, 1), value=1.0)
        return location < matches.gather(-1, rule[:, None]).squeeze(-1)

    def _draw(self, number: int) -> tuple[State, Hidden]:
        """Start states: an episode's first one with probability `initial_fraction`, else any visited one."""
        everywhere = torch.randint(len(self.starts.initial), (number,), generator=self.generator)
        chosen = torch.randint(len(self._initial), (number,), generator=self.generator)
        at_start = torch.rand(number, generator=self.generator) < self.config.initial_fraction
        index = torch.where(at_start, self._initial[chosen], everywhere)

        state, (h, c) = self.starts.state, self.starts.hidden
        return State(state.z[index], state.counts[index], state.cost[index]), (h[index], c[index])

    def _restart(self, done: Tensor) -> None:
        state, hidden = self._draw(self.num_envs)
        self._replace(done, state, hidden)
        self.steps[done] = 0

    def _replace(self, which: Tensor, state: State, hidden: Hidden) -> None:
        """Take over the new state and recurrent state of the dreams where `which` (B,) bool is true."""
        self.state = _where(which, state, self.state)
        self.hidden = (
            torch.where(which[:, None], hidden[0], self.hidden[0]),
            torch.where(which[:, None], hidden[1], self.hidden[1]),
        )

    def _observation(self) -> np.ndarray:
        return self.layout.flatten(self.state, self.hidden).numpy()


def _where(condition: Tensor, yes: State, no: State) -> State:
    """Choose between two states by row."""
    return State(
        z=torch.where(condition[:, None], yes.z, no.z),
        counts=torch.where(condition[:, None], yes.counts, no.counts),
        cost=torch.where(condition, yes.cost, no.cost),
    )
