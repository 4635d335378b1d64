"""The view that a policy has of classes of matches, the same in a dream and on a real graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.world_model.match_level.imagination import ClassStates, matches_apart
from rlflow.world_model.match_level.token_encoder import TokenReading

_EXTRAS = 4  # what experts take, saving, count, nearness
BEYOND_AN_EDGE = 1.0 - 1.5 / FAR_AWAY  # a nearness between those of one edge and of two
SAVING_SCALE = 0.25  # asinh of units: a thousand units are 1.9
LOGIT_SCALE = 0.25  # a probability of one in fifty is -1


class TokenView(NamedTuple):
    """An observation taken apart: classes (..., K, W + 4), present (..., K) bool, cost (..., 1)."""

    classes: Tensor
    present: Tensor
    cost: Tensor


@dataclass(frozen=True)
class TokenLayout:
    """A flat observation of K classes: of each the embedding (W), the logit that an expert takes it and the saving as V
    reads them, the number of matches apart, the nearness to the last rewrites; then the cost, as a loss or a gain in
    units since the episode began. All float32.
    """

    max_kinds: int
    embedding: int

    @property
    def width(self) -> int:
        """Numbers for each class."""
        return self.embedding + _EXTRAS

    @property
    def size(self) -> int:
        """Length of an observation."""
        return self.max_kinds * self.width + 1

    def looks(self, reading: TokenReading, apart: Tensor | None = None) -> Tensor:
        """The unchanging part of how T tokens look, from V's reading of them and apart (T,): (T + 1, width).

        apart: the share of a class's matches that are; None: counts are of these alone. It stands in the place of the
        number. Nearness is left 0, and the last row is what an empty place looks like: all 0.
        """
        share = torch.ones_like(reading.saving) if apart is None else apart
        columns = (LOGIT_SCALE * reading.taken, SAVING_SCALE * reading.saving, share)
        known = torch.cat([reading.embedding, torch.stack(columns, dim=1)], dim=1)
        return functional.pad(known, (0, self.width - known.shape[1], 0, 1))

    def flatten(self, states: ClassStates, looks: Tensor) -> Tensor:
        """States (B, K), with the `looks` of all tokens -> (B, size)."""
        present = states.count > 0
        observation = states.cost.new_empty(len(states.cost), self.size)
        classes = observation[:, :-1].unflatten(1, (self.max_kinds, self.width))
        classes.copy_(functional.embedding(torch.where(present, states.token, len(looks) - 1), looks))
        classes[..., -2] = torch.log1p(matches_apart(states.count, classes[..., -2]))
        classes[..., -1] = torch.where(present, 1.0 - states.near.float() / FAR_AWAY, 0.0)
        observation[:, -1] = SAVING_SCALE * torch.asinh((states.begun - states.cost) / states.unit)
        return observation

    def split(self, observation: Tensor) -> TokenView:
        """Observation (..., size) -> its parts; of any number of classes, not only of `max_kinds`."""
        classes = observation[..., :-1].unflatten(-1, (-1, self.width))
        return TokenView(classes, classes[..., -2] > 0, observation[..., -1:])

    def saving(self, classes: Tensor) -> Tensor:
        """Return (...) of classes (..., width): what all matches of each save, in units."""
        count = torch.expm1(classes[..., -2])
        return torch.sinh(classes[..., -3] / SAVING_SCALE) * count

    def taken(self, classes: Tensor) -> Tensor:
        """Return (...) of classes (..., width): the logit that an expert takes a match of each, now or later."""
        return classes[..., -4] / LOGIT_SCALE

    def is_near(self, classes: Tensor) -> Tensor:
        """Return (...) bool of classes (..., width): they lie within an edge of the last rewrite."""
        return classes[..., -1] > BEYOND_AN_EDGE
