"""One imagined step over match tokens: what a rewrite saves, which matches it ends, and which are born.

A state is a table of kinds of matches. A rewrite of one kind takes one match of it, ends some nearby, and turns and
bears those of a birth set that is drawn at the temperature:

    kinds    A x 12, B x 12, C x 1            A is taken; of B one shares a node with it
    then     A x 11, B x 11, C x 1, D x 1     D comes out of a birth set

Those that are born lie where the rewrite was: as far from all others as it, and from each other as in their set.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from rlflow.nn.masking import sample_categorical
from rlflow.representation.token_distances import FAR_AWAY
from rlflow.world_model.tokens.birth_sets import NONE
from rlflow.world_model.tokens.config import TokenDreamConfig
from rlflow.world_model.tokens.knowledge import Knowledge
from rlflow.world_model.tokens.token_memory import TokenMemory

_NEARBY = 2  # edges: as far as a token sees, so that a match beyond looks the same after a rewrite


@dataclass(frozen=True)
class KindStates:
    """B states of up to K kinds of matches; a place with count 0 is empty.

    token, count (B, K) int64; distance (B, K, K) int8 between kinds; near (B, K) int8, the distance to the last
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

    def rows(self, index: Tensor) -> KindStates:
        """The states at index (B,)."""
        return KindStates(*(getattr(self, entry.name)[index] for entry in fields(self)))


@torch.no_grad()
def imagine(
    knowledge: Knowledge,
    memory: TokenMemory,
    states: KindStates,
    kind: Tensor,
    config: TokenDreamConfig,
    generator: torch.Generator | None,
) -> tuple[KindStates, Tensor]:
    """Next states and rewards (B,) in percent, after one rewrite of kind (B,) in each; kinds must have a match.

    An imperfect model invites exploitation (paper section 2.3): the saving is reduced by `pessimism` times its expected
    error (Yu et al. 2020, MOPO).
    """
    batch = torch.arange(len(kind))
    chosen = states.token[batch, kind]
    distance = states.distance[batch, kind]
    reward = _saving_percent(knowledge, chosen, states.unit, config.pessimism)

    count = _after_ends(knowledge, memory, states, chosen, distance, kind)
    drawn = _drawn_set(knowledge, chosen, config.temperature, generator)
    return _with_births(knowledge, states, count, distance, drawn, reward), reward


def _saving_percent(knowledge: Knowledge, token: Tensor, unit: Tensor, pessimism: float) -> Tensor:
    reading = knowledge.reading
    return torch.sinh(reading.saving[token] - pessimism * reading.sigma[token]) * unit


def _after_ends(
    knowledge: Knowledge, memory: TokenMemory, states: KindStates, chosen: Tensor, distance: Tensor, kind: Tensor
) -> Tensor:
    """The numbers of matches (B, K) that are left of each kind, before any is born."""
    batch = torch.arange(len(kind))
    left = states.count.clone()
    left[batch, kind] -= 1
    near = (distance < FAR_AWAY) & (left > 0)
    row, place = near.nonzero(as_tuple=True)
    logits = memory.gone_logits_of(
        knowledge.chosen[chosen[row]],
        knowledge.other[states.token[row, place]],
        distance[row, place].long(),
        left[row, place],
    )
    left[row, place] -= torch.minimum(logits.argmax(dim=-1), left[row, place])
    return left


def _drawn_set(knowledge: Knowledge, chosen: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
    """A birth set (B,) for each rewrite: the likeliest at temperature 0, else drawn."""
    logits = knowledge.birth_logits[chosen]
    choice = logits.argmax(dim=-1) if temperature == 0 else sample_categorical(logits / temperature, generator)
    return knowledge.likeliest[chosen].gather(-1, choice[:, None]).squeeze(-1)


def _with_births(
    knowledge: Knowledge, states: KindStates, count: Tensor, distance: Tensor, drawn: Tensor, reward: Tensor
) -> KindStates:
    """Add the matches of the drawn sets at empty places; what finds none is left out."""
    sets = knowledge.sets
    token, before, number = sets.token[drawn], sets.before[drawn], sets.count[drawn]
    count, number = _turned(states.token, count, distance, before, number)
    number = torch.where(token == NONE, 0, number)

    size = number.shape[1]
    empty_first = torch.argsort((count > 0).to(torch.int8), dim=1, stable=True)[:, :size]
    is_empty = count.gather(1, empty_first) == 0
    number = torch.where(is_empty, number, 0)
    fill = (number > 0) & is_empty

    after = states.token.scatter(1, empty_first, torch.where(fill, token, states.token.gather(1, empty_first)))
    count = count.scatter(1, empty_first, torch.where(fill, number, count.gather(1, empty_first)))
    between = _distances_after(states.distance, distance, empty_first, fill, sets.distance[drawn])
    near = distance.scatter(1, empty_first, torch.where(fill, 0, distance.gather(1, empty_first)).to(torch.int8))
    return KindStates(after, count, between, near, states.cost - reward, states.begun, states.unit)


def _turned(token: Tensor, count: Tensor, distance: Tensor, before: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
    """Take matches that turn into others off their kinds; a set's entry whose kind is not there turns nothing."""
    born = before == NONE
    there = (token[:, None, :] == before[..., None]) & ((distance <= _NEARBY) & (count > 0))[:, None, :]
    found, place = there.any(dim=-1), there.to(torch.int8).argmax(dim=-1)
    turned = torch.where(found & ~born, torch.minimum(number, count.gather(1, place)), 0)
    left = (count - torch.zeros_like(count).scatter_add_(1, place, turned)).clamp_min(0)
    return left, torch.where(born, number, turned)


def _distances_after(between: Tensor, from_rewrite: Tensor, place: Tensor, fill: Tensor, inside: Tensor) -> Tensor:
    """Distances (B, K, K) after the matches at `place` (B, P) were filled in, where `fill`."""
    result = between.clone()
    batch = torch.arange(len(place))[:, None]
    kept = between.gather(1, place[..., None].expand(-1, -1, between.shape[2]))
    rows = torch.where(fill[..., None], from_rewrite[:, None, :], kept)
    result[batch, place] = rows
    result[batch, :, place] = rows
    both = fill[:, :, None] & fill[:, None, :]
    rows_at, columns_at = place[:, :, None], place[:, None, :]
    result[batch[..., None], rows_at, columns_at] = torch.where(
        both, inside, result[batch[..., None], rows_at, columns_at]
    )
    return result
