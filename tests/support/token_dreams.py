"""PrecomputedModel of a few tokens, written down by hand, so that what must be dreamed of is known exactly."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.world_model.match_level.dream_env import MatchLevelDreamEnv
from rlflow.world_model.match_level.imagination import ClassStates
from rlflow.world_model.match_level.match_deltas import NONE, MatchDeltas
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.match_level.starts import TokenStarts
from rlflow.world_model.match_level.token_encoder import TokenReading
from rlflow.world_model.match_level.token_memory import TokenMemory

EMBEDDING = 2


class Entry(NamedTuple):
    """One match of a birth set: its token, how many, and what it looked like before."""

    token: int
    count: int = 1
    before: int = NONE


class Set(NamedTuple):
    """What `taken` rewrites bore, with the logarithm of its weight; all these matches lie `apart` from each other."""

    entries: Sequence[Entry]
    log_weight: float = 0.0
    apart: int = 1
    taken: int = 1


def memory(gone_at_0: int = 0) -> TokenMemory:
    """Whatever the tokens are, the outcome is `gone_at_0` of any class at distance 0; none is gone beyond."""
    made = TokenMemory(EMBEDDING, metric_width=1, survival_width=1).eval().requires_grad_(False)
    for parameter in made.parameters():
        parameter.zero_()
    made.distance.weight[0] = 10.0
    first, _, last = made.gone
    first.weight.fill_(1.0)
    last.weight[gone_at_0] = 1.0
    last.bias[0] = 5.0
    return made


def precomputed(
    sets: Mapping[int, Sequence[Set]], saving: Sequence[float], sigma: Sequence[float] | None = None
) -> PrecomputedModel:
    """Of as many tokens as there are savings; one that has no sets bears nothing."""
    tokens = len(saving)
    owned = [(token, one) for token in range(tokens) for one in sets.get(token, [Set([])])]
    size = max(len(one.entries) for _, one in owned)
    rows = [[*one.entries, *[Entry(NONE, 0)] * (size - len(one.entries))] for _, one in owned]
    table = torch.tensor(rows, dtype=torch.int64).reshape(len(rows), size, 3)
    apart = torch.tensor([one.apart for _, one in owned], dtype=torch.int8)
    choices = max(sum(owner == token for owner, _ in owned) for token in range(tokens))
    likeliest = torch.zeros(tokens, choices, dtype=torch.int64)
    logits = torch.full((tokens, choices), -1e9)
    for token in range(tokens):
        mine = [place for place, (owner, _) in enumerate(owned) if owner == token]
        likeliest[token, : len(mine)] = torch.tensor(mine)
        logits[token, : len(mine)] = torch.tensor([owned[place][1].log_weight for place in mine])
    reading = TokenReading(
        torch.tensor([[token % 3 - 1.0, token // 3 - 1.0] for token in range(tokens)]),
        torch.tensor(saving),
        torch.tensor(sigma if sigma is not None else [0.0] * tokens),
        taken=torch.zeros(tokens),
        gain=torch.zeros(tokens),
    )
    return PrecomputedModel(
        reading=reading,
        saving=reading.saving,
        sigma=reading.sigma,
        apart=torch.ones(tokens),
        chosen=torch.zeros(tokens, 1),
        other=torch.zeros(tokens, 1),
        sets=MatchDeltas(
            parent=torch.tensor([owner for owner, _ in owned]),
            taken=torch.tensor([one.taken for _, one in owned]),
            seen=torch.ones(len(owned)),
            token=table[..., 0],
            before=table[..., 2],
            count=table[..., 1],
            distance=apart[:, None, None].expand(-1, size, size).clone(),
        ),
        likeliest=likeliest,
        birth_logits=logits,
    )


def state(
    classes: Sequence[tuple[int, int]],
    places: int,
    distance: Mapping[tuple[int, int], int] | None = None,
    *,
    cost: float = 100.0,
    unit: float = 1.0,
) -> ClassStates:
    """One state of classes (token, count), as far from each other as can be but for the `distance` of some places."""
    token, count = torch.zeros(1, places, dtype=torch.int64), torch.zeros(1, places, dtype=torch.int64)
    between = torch.full((1, places, places), FAR_AWAY, dtype=torch.int8)
    between[0].fill_diagonal_(0)
    for place, (match_class, number) in enumerate(classes):
        token[0, place], count[0, place] = match_class, number
    for (one, other), edges in (distance or {}).items():
        between[0, one, other] = between[0, other, one] = edges
    start = torch.tensor([cost])
    return ClassStates(
        token, count, between, torch.full((1, places), FAR_AWAY, dtype=torch.int8), start, start, torch.tensor([unit])
    )


def stacked(states: Sequence[ClassStates]) -> ClassStates:
    """Several states as one batch."""
    return ClassStates(*(torch.cat(column) for column in zip(*(vars(one).values() for one in states), strict=True)))


def dream(
    known: PrecomputedModel, start: ClassStates, *, seed: int = 0, gone_at_0: int = 1, **settings: float
) -> MatchLevelDreamEnv:
    """A dream that begins in any of these states, all of them initial."""
    config = MatchLevelDreamConfig(**{"num_envs": 8, "max_kinds": start.token.shape[1], "max_steps": 4, **settings})  # type: ignore[arg-type]
    starts = TokenStarts(start, torch.ones(len(start.token), dtype=torch.bool))
    return MatchLevelDreamEnv(memory(gone_at_0), known, starts, config, seed=seed)


def present(states: ClassStates, row: int = 0) -> dict[int, int]:
    """Number of matches by token, of the classes that are there."""
    found: dict[int, int] = {}
    for token, count in zip(states.token[row].tolist(), states.count[row].tolist(), strict=True):
        if count:
            found[token] = found.get(token, 0) + count
    return found


def any_valid(observed_counts: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a class that is there in every row, terminate where none is."""
    chance = torch.rand(observed_counts.shape, generator=generator)
    return torch.where(
        (observed_counts > 0).any(dim=1),
        torch.where(observed_counts > 0, chance, -1.0).argmax(dim=1),
        observed_counts.shape[1],
    )
