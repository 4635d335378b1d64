"""Dreams over match tokens beside the truth: they are led through the rewrites of real episodes.

A case begins in a real state. At each step the dream takes a class of the token that was really taken: of several the
nearest to the last rewrite. If none is there, the dream has lost track: the rewrite is left out and earns nothing.

    true    take A: +3.0, bears B     take B: +1.0        alive 2 of 2, return 4.0
    dream   take A: +2.5, bears C     there is no B       alive 1 of 2, return 2.5

A dream in which nothing ever changes (`copy`) is led along beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from rlflow.representation.token_rollouts import FAR_AWAY, TokenEpisode, nearness_after
from rlflow.world_model.match_level.imagination import ClassStates
from rlflow.world_model.match_level.match_deltas import NONE
from rlflow.world_model.match_level.starts import visited_states

HORIZONS = (1, 2, 5, 15)

_NEAR = 1  # edges from the last rewrite: what its next one is mostly chosen from

Imagine = Callable[[ClassStates, Tensor], tuple[ClassStates, Tensor]]
"""One imagined step: the states after rewrites of classes (B,), and rewards (B,) in percent."""


def unchanged(states: ClassStates, match_class: Tensor) -> tuple[ClassStates, Tensor]:
    """One step in which nothing is earned and nothing changes but where the last rewrites were."""
    near = states.distance[torch.arange(len(match_class)), match_class]
    return replace(states, near=near), torch.zeros(len(match_class))


@dataclass(frozen=True, eq=False)
class _Truth:
    """The real course of C cases of up to J steps; what lies beyond the end of an episode is not `reached`.

    reached (C, J) bool; token, taken (C, J) int64: the class that was taken and how many of it; reward (C, J); near: of
    each case and step the classes near those rewrites after them, by their tokens.
    """

    reached: Tensor
    token: Tensor
    taken: Tensor
    reward: Tensor
    near: list[list[frozenset[int]]]


@torch.no_grad()
def open_loop(
    imagine: Imagine,
    episodes: Sequence[TokenEpisode],
    rule_mean: np.ndarray,
    max_kinds: int,
    horizons: Sequence[int] = HORIZONS,
) -> dict[int, dict[str, float]]:
    """Measures after k imagined steps, from every state of episodes that go on for k steps, for k in horizons.

    rule_mean (T,): the mean saving, in units, of each token's rule (`diagnostics.by_rule`). max_kinds: the size of
    states. Each entry holds `cases` and:

    - `reward`: mean absolute error of the k-th reward, in percent, beside `reward_zero` and `reward_rule_mean`.
    - `return`: the same of the sum of k rewards; `return_correlation` of the imagined and the true ones.
    - `alive`: the share of k-th rewrites that the dream still had, beside `alive_copy`.
    - `near`: F1 of the classes near the last rewrite that the dream has and those that were there, beside `near_copy`.
    """
    steps, start = max(horizons), visited_states(episodes, max_kinds).states
    truth = _truth(episodes, steps)
    rule_reward = truth.taken * torch.from_numpy(rule_mean).float()[truth.token.clamp_min(0)] * start.unit[:, None]
    led, copied = _led(imagine, start, truth), _led(unchanged, start, truth)
    report, earned = {}, torch.zeros(truth.reward.shape)
    for step, ((states, reward, alive), (copy, _, copy_alive)) in enumerate(zip(led, copied, strict=True)):
        earned[:, step] = reward
        reached, so_far = truth.reached[:, step], slice(0, step + 1)
        if step + 1 not in horizons or not reached.any():
            continue
        true = truth.reward[reached]
        dreamed, ruled = earned[reached], rule_reward[reached]
        sums = dreamed[:, so_far].sum(dim=1), true[:, so_far].sum(dim=1)
        report[step + 1] = {
            "cases": float(reached.sum()),
            "reward": _mean_error(dreamed[:, step], true[:, step]),
            "reward_zero": _mean_error(0.0, true[:, step]),
            "reward_rule_mean": _mean_error(ruled[:, step], true[:, step]),
            "return": _mean_error(*sums),
            "return_zero": _mean_error(0.0, sums[1]),
            "return_rule_mean": _mean_error(ruled[:, so_far].sum(dim=1), sums[1]),
            "return_correlation": _correlation(*sums),
            "alive": float(alive[reached].float().mean()),
            "alive_copy": float(copy_alive[reached].float().mean()),
            "near": _overlap(states, truth, reached, step),
            "near_copy": _overlap(copy, truth, reached, step),
        }
    return report


def _led(imagine: Imagine, states: ClassStates, truth: _Truth) -> Iterator[tuple[ClassStates, Tensor, Tensor]]:
    """Lead the states through the true rewrites; yields states, rewards (C,) and which had the rewrite (C,) bool."""
    for token in truth.token.T:
        there = (states.token == token[:, None]) & (states.count > 0)
        _, match_class = torch.where(there, states.near.long(), FAR_AWAY + 1).min(dim=1)
        alive = there.any(dim=1)
        going = torch.nonzero(alive).squeeze(-1)
        reward = torch.zeros(len(token))
        if len(going):
            after, saved = imagine(states.rows(going), match_class[going])
            reward[going] = saved
            merged = {name: value.clone() for name, value in vars(states).items()}
            for name, value in vars(after).items():
                merged[name][going] = value
            states = ClassStates(**merged)
        yield states, reward, alive


def _truth(episodes: Sequence[TokenEpisode], steps: int) -> _Truth:
    rows = [row for episode in episodes for row in _rows(episode, steps)]
    tokens, numbers, rewards, near = zip(*rows, strict=True)
    token, taken = (torch.tensor(np.array(column), dtype=torch.int64) for column in (tokens, numbers))
    reward = torch.tensor(np.array(rewards), dtype=torch.float32)
    return _Truth(token != NONE, token, taken, reward, list(near))


def _rows(
    episode: TokenEpisode, steps: int
) -> Iterator[tuple[list[int], list[int], list[float], list[frozenset[int]]]]:
    """The true tokens, numbers taken, rewards and near classes of the `steps` steps from each state, filled up."""
    trios = list(zip(episode.states, episode.steps, episode.states[1:], strict=False))
    token = [int(before.token[step.chosen]) for before, step, _ in trios] + [NONE] * steps
    taken = [step.taken for _, step, _ in trios] + [0] * steps
    reward = [step.reward for _, step, _ in trios] + [0.0] * steps
    nearby = [nearness_after(before.token, step, after.token) <= _NEAR for before, step, after in trios]
    near = [frozenset(after.token[close].tolist()) for (_, _, after), close in zip(trios, nearby, strict=True)]
    for start in range(len(trios)):
        span = slice(start, start + steps)
        yield token[span], taken[span], reward[span], near[span]


def _overlap(states: ClassStates, truth: _Truth, reached: Tensor, step: int) -> float:
    """F1 over all cases together; 1 where nothing is near and nothing was dreamed there."""
    both = either = 0
    is_near = (states.near <= _NEAR) & (states.count > 0)
    for case in torch.nonzero(reached).flatten().tolist():
        dreamed, true = set(states.token[case][is_near[case]].tolist()), truth.near[case][step]
        both += 2 * len(dreamed & true)
        either += len(dreamed) + len(true)
    return both / either if either else 1.0


def _mean_error(predicted: Tensor | float, true: Tensor) -> float:
    return float((predicted - true).abs().mean())


def _correlation(one: Tensor, other: Tensor) -> float:
    """Pearson's, `nan` where either does not vary."""
    one, other = one - one.mean(), other - other.mean()
    scale = float(one.norm() * other.norm())
    return float(one @ other) / scale if scale > 0 else float("nan")
