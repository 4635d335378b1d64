"""One imagined step over match tokens: what rewrites save, which matches they end, and which are born.

A state is a table of classes of matches. A choice rewrites all matches of a class, which ends some nearby, and turns
and bears those of a birth set that is drawn at the temperature:

    before   A x 12, B x 12, C x 1            all A are taken; all B but one share a node with one of them
    after    B x 1, C x 1, D x 12             D comes out of a birth set

Those that are born lie where the rewrites were: as far from all others as these, and from each other as in their set.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from rlflow.nn.masking import sample_categorical
from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.world_model.match_level.match_deltas import NONE
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.match_level.token_memory import TokenMemory, left_after

_NEARBY = 3  # edges between nodes that two matches take: a match beyond looks the same after a rewrite


@dataclass(frozen=True)
class ClassStates:
    """B states of up to K classes of matches; a place with count 0 is empty.

    token, count (B, K) int64; distance (B, K, K) int8 between classes; near (B, K) int8, the distance to the last
    rewrite, `FAR_AWAY` before the first; cost (B,) in percent of the start's, and begun (B,), where the episode began;
    unit (B,), the unit of prices in percent.
    """

    token: Tensor
    count: Tensor
    distance: Tensor
    near: Tensor
    cost: Tensor
    begun: Tensor
    unit: Tensor

    def rows(self, index: Tensor) -> ClassStates:
        """The states at index (B,)."""
        return ClassStates(*(getattr(self, entry.name).index_select(0, index) for entry in fields(self)))


def matches_apart(count: Tensor, share: Tensor) -> Tensor:
    """Return how many of count (...) matches are apart, by their share (...): at least one, if there is any."""
    return torch.maximum((count * share).round(), (count > 0).to(share))


@torch.no_grad()
def imagine(
    precomputed: PrecomputedModel,
    memory: TokenMemory,
    states: ClassStates,
    match_class: Tensor,
    config: MatchLevelDreamConfig,
    generator: torch.Generator | None,
) -> tuple[ClassStates, Tensor]:
    """Next states and rewards (B,) in percent, after the rewrites of class (B,) in each state.

    Classes must have a match. There are fewer rewrites than matches where some end others of their own class.

    An imperfect model invites exploitation (paper section 2.3): a saving that V tells is reduced by `pessimism` times
    its expected error (Yu et al. 2020, MOPO). A birth set is the less likely, the more it promises, by
    `birth_pessimism`: what is wrongly promised is looked for, and found however seldom it is drawn.
    """
    batch = torch.arange(len(match_class))
    chosen = states.token[batch, match_class]
    distance = states.distance[batch, match_class]
    times = matches_apart(states.count[batch, match_class], precomputed.apart[chosen]).long()
    count = _left(precomputed, memory, states, chosen, distance, times)
    count[batch, match_class] = 0
    reward = times * _saving_percent(precomputed, chosen, states.unit, config.pessimism)

    drawn = _drawn_set(precomputed, chosen, config, generator)
    return _with_births(precomputed, states, count, distance, drawn, times, reward), reward


def _saving_percent(precomputed: PrecomputedModel, token: Tensor, unit: Tensor, pessimism: float) -> Tensor:
    return torch.sinh(precomputed.saving[token] - pessimism * precomputed.sigma[token]) * unit


def _left(
    precomputed: PrecomputedModel,
    memory: TokenMemory,
    states: ClassStates,
    chosen: Tensor,
    distance: Tensor,
    times: Tensor,
) -> Tensor:
    """The matches (B, K) of each class that so many rewrites (B,) do not end."""
    row, place = ((distance < FAR_AWAY) & (states.count > 0)).nonzero(as_tuple=True)
    there = states.count[row, place]
    logits = memory.gone_logits_of(
        precomputed.chosen[chosen[row]], precomputed.other[states.token[row, place]], distance[row, place].long(), there
    )
    return states.count.index_put((row, place), left_after(logits.argmax(dim=-1), there, times[row]))


def _drawn_set(
    precomputed: PrecomputedModel, chosen: Tensor, config: MatchLevelDreamConfig, generator: torch.Generator | None
) -> Tensor:
    """A birth set (B,) for each choice: the likeliest at temperature 0, else drawn."""
    candidates, temperature = precomputed.likeliest[chosen], config.temperature
    logits = precomputed.birth_logits[chosen] - config.birth_pessimism * precomputed.promised[candidates]
    choice = logits.argmax(dim=-1) if temperature == 0 else sample_categorical(logits / temperature, generator)
    return candidates.gather(-1, choice[:, None]).squeeze(-1)


def _with_births(
    precomputed: PrecomputedModel,
    states: ClassStates,
    count: Tensor,
    distance: Tensor,
    drawn: Tensor,
    times: Tensor,
    reward: Tensor,
) -> ClassStates:
    """Add the matches of the drawn sets, for so many rewrites (B,), to their classes, or at empty places where there is
    none of these; what finds no place is left out.
    """
    sets = precomputed.sets
    number = (2 * times[:, None] * sets.count[drawn] + sets.taken[drawn, None]) // (2 * sets.taken[drawn, None])
    count, number = _turned(states.token, count, distance, sets.before[drawn], number)
    row, entry, place = _joined(states.token, count, sets.token[drawn], number)
    count = count.index_put((row, place), number[row, entry], accumulate=True)
    number = number.index_put((row, entry), number.new_zeros(()))
    between, here = _nearer(states.distance, distance, row, place), distance.new_zeros(())
    near = distance.index_put((row, place), here)

    empty_first = torch.argsort((count > 0).to(torch.int8), dim=1, stable=True)
    size = min(empty_first.shape[1], number.shape[1])
    empty_first, number = empty_first[:, :size], number[:, :size]
    fill = (number > 0) & (count.gather(1, empty_first) == 0)

    row, entry = fill.nonzero(as_tuple=True)
    at = (row, empty_first[row, entry])
    inside = sets.distance[drawn[row], entry][:, :size]
    return ClassStates(
        token=states.token.index_put(at, sets.token[drawn[row], entry]),
        count=count.index_put(at, number[row, entry]),
        distance=_distances_after(between, at, _lines(distance, empty_first, fill, row, inside)),
        near=near.index_put(at, here),
        cost=states.cost - reward,
        begun=states.begun,
        unit=states.unit,
    )


def _turned(token: Tensor, count: Tensor, distance: Tensor, before: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
    """Take matches that turn into others off their classes; an entry of a set whose class is not there turns nothing.

    Returns the counts (B, K) that are left, and the numbers (B, P) of the sets' entries.
    """
    row, entry = (before != NONE).nonzero(as_tuple=True)
    near = (distance <= _NEARBY) & (count > 0)
    there = (token[row] == before[row, entry, None]) & near[row]
    found, place = there.to(torch.int8).max(dim=1)
    turned = torch.where(found > 0, torch.minimum(number[row, entry], count[row, place]), 0)
    left = count.index_put((row, place), -turned, accumulate=True).clamp_min(0)
    return left, number.index_put((row, entry), turned)


def _joined(token: Tensor, count: Tensor, born: Tensor, number: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The states, entries and places (N,) where matches are born, by tokens (B, P), that a class is there of."""
    there = (born[:, :, None] == token[:, None]) & (count > 0)[:, None] & (number > 0)[:, :, None]
    row, entry, place = there.nonzero(as_tuple=True)
    return row, entry, place


def _nearer(between: Tensor, from_rewrite: Tensor, row: Tensor, place: Tensor) -> Tensor:
    """Distances (B, K, K) after matches were born of classes (N,), which are as near as the rewrites now."""
    nearer = between.index_put((row, place), torch.minimum(between[row, place], from_rewrite[row]))
    return torch.minimum(nearer, nearer.transpose(1, 2))


def _lines(from_rewrite: Tensor, place: Tensor, fill: Tensor, row: Tensor, inside: Tensor) -> Tensor:
    """Distances (N, K) from N new matches to all classes: those of the rewrite, but `inside` (N, P) to each other.

    row (N,): the states that they are in; the new ones of each are at `place` (B, P) where `fill`.
    """
    lines, place = from_rewrite[row], place[row]
    return lines.scatter(1, place, torch.where(fill[row], inside, lines.gather(1, place)))


def _distances_after(between: Tensor, at: tuple[Tensor, Tensor], lines: Tensor) -> Tensor:
    """Distances (B, K, K) with those of N classes replaced: `at` their (state, place), lines (N, K)."""
    row, place = at
    result = between.clone()
    result[row, place] = lines
    result[row, :, place] = lines
    return result
