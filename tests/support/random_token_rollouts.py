"""Token rollouts drawn at random: matches come and go by no law, but nothing is lost or counted twice."""

import math

import numpy as np

from rlflow.representation.edit_graph import ADDED, FAR, REMOVED
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_rollouts import (
    FAR_AWAY,
    Demonstration,
    TokenEpisode,
    TokenRollouts,
    TokenState,
    TokenStep,
)
from rlflow.representation.vocabulary import PADDING, Vocabulary

WORDS = Vocabulary((PADDING, "Add", "Mul", "Relu", "Exp"), ("rank", "log2_price"))
RULES = ("fuse-add", "fuse-mul", "split")


def random_token(rng: np.random.Generator) -> MatchToken:
    """A small graph of a few nodes, wired at random on both sides of its edit."""
    nodes = int(rng.integers(1, 6))
    role = rng.integers(REMOVED, FAR + 1, nodes)

    def edges(absent: int) -> list[tuple[int, int]]:
        there = np.flatnonzero(role != absent)
        return [(int(a), int(b)) for a, b in rng.choice(there, (2, 2))] if len(there) else []

    return MatchToken.of(
        rng.integers(1, len(WORDS.operators), nodes).tolist(),
        role.tolist(),
        rng.normal(size=(nodes, len(WORDS.features))).astype(np.float32),
        rng.exponential(size=nodes).astype(np.float32),
        edges(ADDED),
        edges(REMOVED),
    )


def random_rollouts(seed: int, episodes: int = 3, steps: int = 4, tokens: int = 8) -> TokenRollouts:
    """Episodes of up to `steps` steps, some of which turn a match, bear some or end some, on two graphs."""
    rng = np.random.default_rng(seed)
    known = list({token.key: token for token in (random_token(rng) for _ in range(tokens))}.values())
    return TokenRollouts(
        tokens=tuple(known),
        rule_of=tuple(rng.choice(RULES, len(known)).tolist()),
        episodes=tuple(_episode(rng, int(rng.integers(steps + 1)), len(known)) for _ in range(episodes)),
        graphs=("one", "other"),
        vocabulary=WORDS,
        library_hash="drawn",
    )


def _episode(rng: np.random.Generator, steps: int, tokens: int) -> TokenEpisode:
    counts = rng.integers(0, 4, tokens)
    states, taken = [_state(rng, counts)], []
    while len(taken) < steps and counts.any():
        counts, step = _step(rng, states[-1], tokens)
        states.append(_state(rng, counts))
        taken.append(_in_places(step, states[-1]))
    shown = _demonstration(rng, states) if rng.random() < 0.5 else None
    return TokenEpisode(int(rng.integers(2)), float(rng.uniform(0.1, 2.0)), tuple(states), tuple(taken), False, shown)


def _demonstration(rng: np.random.Generator, states: list[TokenState]) -> Demonstration:
    labels = (tuple(rng.random(len(state.token)).astype(np.float32) for state in states) for _ in range(2))
    return Demonstration(*labels)


def _state(rng: np.random.Generator, counts: np.ndarray) -> TokenState:
    present = rng.permutation(np.flatnonzero(counts))
    between = np.triu(rng.integers(0, FAR_AWAY + 1, (len(present), len(present))), 1).astype(np.int8)
    saving = rng.normal(size=len(present)).astype(np.float32)
    return TokenState(
        present,
        counts[present],
        rng.integers(1, counts[present] + 1),
        between + between.T,
        saving,
        float(rng.uniform(50, 100)),
        f"{rng.integers(2**63):016x}",
    )


def _step(rng: np.random.Generator, before: TokenState, tokens: int) -> tuple[np.ndarray, TokenStep]:
    """The counts after a step, and the step with tokens where there are to be places after it."""
    classes = len(before.token)
    chosen = int(rng.integers(classes))
    left = before.count.copy()
    taken = int(rng.integers(1, left[chosen] + 1))
    left[chosen] -= taken
    gone = rng.integers(0, left + 1)
    gone[chosen] = left[chosen] if rng.random() < 0.8 else gone[chosen]
    left -= gone
    turned = [
        (place, int(rng.integers(tokens)), int(rng.integers(1, left[place] + 1)))
        for place in np.flatnonzero(left).tolist()
        if rng.random() < 0.3
    ]
    born = [(token, int(rng.integers(1, 4))) for token in np.flatnonzero(rng.random(tokens) < 0.2).tolist()]
    counts = np.zeros(tokens, dtype=np.int64)
    counts[before.token] = left
    for place, token, number in turned:
        counts[before.token[place]] -= number
        counts[token] += number
    for token, number in born:
        counts[token] += number
    columns = np.array(turned, np.int64).reshape(-1, 3), np.array(born, np.int64).reshape(-1, 2)
    distance = rng.integers(0, FAR_AWAY + 1, classes).astype(np.int8)
    beside = (0.1 * taken if tokens % 2 else math.nan, math.nan if taken % 2 else -0.1 * taken)  # known or not
    return counts, TokenStep(chosen, taken, float(rng.normal()), distance, gone, *columns, *beside)


def _in_places(step: TokenStep, after: TokenState) -> TokenStep:
    place_of = {token: place for place, token in enumerate(after.token.tolist())}
    for column in (step.turned[:, 1], step.born[:, 0]):
        column[:] = [place_of[token] for token in column.tolist()]
    return step
