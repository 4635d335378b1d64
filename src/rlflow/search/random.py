"""Random search: episodes of random rewrites, the best graph of all. The baseline that any method has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlflow.errors import InputError
from rlflow.method import OnProgress, State, Workspace
from rlflow.rules.matching.rewriter import Location
from rlflow.search.base import Search


@dataclass(frozen=True)
class RandomSearch(Search):
    """Uniform over the rules that match, then over the rule's locations. One expansion is one rewrite.

    `episode_steps` rewrites an episode, then again from the start.
    """

    episode_steps: int = 100
    seed: int = 0
    name: str = "random"

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        """`InputError` without a budget: nothing else would end it."""
        if work.ledger.limits.is_endless:
            raise InputError("random search needs a budget: give a time or a number of rewrites")
        rng = np.random.default_rng(self.seed)
        best = start = state
        steps = 0
        while not work.is_spent:
            counts = work.rewriter.matches(state.graph).counts
            valid = [rule for rule, count in enumerate(counts) if count]
            if not valid and not steps:
                break
            if not valid or steps >= self.episode_steps:
                state, steps = start, 0
                continue
            rule = valid[int(rng.integers(len(valid)))]
            state = work.step(state, Location(rule, int(rng.integers(counts[rule]))))
            steps += 1
            work.ledger.tally.expansions += 1
            best = min(best, state, key=lambda s: s.runtime_ms)
            if on_progress and work.ledger.expansions % 10 == 0:
                on_progress(work.fraction, f"{best.runtime_ms:.3f} ms")
        return best
