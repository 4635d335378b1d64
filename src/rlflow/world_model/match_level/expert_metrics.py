"""Measures of how well V tells what experts take, beside what is known from how often they take matches of a rule.

    shares = rule_shares(rollouts)                                          of training
    auc(episode, reading.taken), auc(episode, by_rule(rule_of, shares))     0.5: no better than chance

The area under the curve (Hanley and McNeil 1982) is the chance that a match which the expert takes, now or later, gets
a higher score than one that he passes.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenEpisode, TokenRollouts

_ROUNDING = 1e-6  # scores that differ by less are the same


def rule_shares(rollouts: TokenRollouts) -> dict[str, float]:
    """The share of the matches of each rule that the experts of all demonstrations take, in the states they pass."""
    taken, seen = defaultdict[str, float](float), defaultdict[str, float](float)
    for episode in rollouts.episodes:
        if episode.demonstration is None:
            continue
        for state, share in zip(episode.states, episode.demonstration.taken, strict=True):
            for token, count, of_class in zip(state.token.tolist(), state.count.tolist(), share.tolist(), strict=True):
                taken[rollouts.rule_of[token]] += count * of_class
                seen[rollouts.rule_of[token]] += count
    return {rule: taken[rule] / seen[rule] for rule in seen}


def auc(episode: TokenEpisode, score: np.ndarray) -> float:
    """The area under the curve of scores (T,) of tokens, over all matches of all states that a demonstration passes.

    NaN where its expert takes all or none. `InputError` for an episode without a demonstration.
    """
    if episode.demonstration is None:
        raise InputError("choices: the episode has no demonstration, so that nobody knows what an expert takes")
    token, count = (np.concatenate([getattr(state, name) for state in episode.states]) for name in ("token", "count"))
    share = np.concatenate(episode.demonstration.taken)
    _, rank = np.unique(np.round(score[token] / _ROUNDING), return_inverse=True)
    taken, passed = np.bincount(rank, count * share), np.bincount(rank, count * (1.0 - share))
    pairs = taken.sum() * passed.sum()
    below = np.cumsum(passed) - 0.5 * passed  # half of those that score the same
    return float((taken * below).sum() / pairs) if pairs > 0 else float("nan")
