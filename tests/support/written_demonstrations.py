"""Demonstrations whose labels are written down, on episodes of any kind."""

from dataclasses import replace

import numpy as np

from rlflow.representation.token_rollouts import Demonstration, TokenEpisode


def as_demonstration(episode: TokenEpisode, gain: float = 1.0) -> TokenEpisode:
    """The episode as that of an expert who takes one match of each kind that it chose, and gains the same by each."""
    last = len(episode.steps)
    taken = []
    for number, state in enumerate(episode.states):
        shares = np.zeros(len(state.token), np.float32)
        if number < last:
            chosen = episode.steps[number].chosen
            shares[chosen] = 1.0 / state.count[chosen]
        taken.append(shares)
    gains = tuple(np.where(shares > 0, np.float32(gain), np.float32(0)) for shares in taken)
    return replace(episode, demonstration=Demonstration(tuple(taken), gains))
