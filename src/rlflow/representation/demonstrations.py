"""What an expert's way over a graph tells of every match that it passed: was it taken, then or later?

Equality saturation and chains find sequences of rewrites in which many a step saves nothing by itself. Of every match
in every state on the way a demonstration tells whether it is among the steps that were left, and what those save to
which it leads. The order of steps in different places of a graph does not show, so that nothing is learned of it.

    state 3   A x 12, B x 12     A: 12 are taken later, B: none is
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenEpisode


@dataclass(frozen=True, eq=False)
class Demonstration:
    """An expert's episode with T + 1 states. Of the K kinds of matches of each state:

    taken (K,) float32: the share of its matches that the expert takes, in this step or later. gain (K,) float32: the
    most that such a match leads to, in percent of the start's price, discounted; 0 where none is taken.
    """

    episode: TokenEpisode
    taken: tuple[np.ndarray, ...]
    gain: tuple[np.ndarray, ...]

    def __post_init__(self) -> None:
        for states in (self.taken, self.gain):
            if [len(of_kinds) for of_kinds in states] != [len(state.token) for state in self.episode.states]:
                raise InputError("demonstration: its labels are not those of the kinds in the states of its episode")
