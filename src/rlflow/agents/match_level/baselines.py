"""Baselines of V: the same chains in an order drawn at random, by the means of rules, and by an untrained V.

    search = chains_random(library, rewriter, cost_model, seed=0)
    search = rule_mean(library, rewriter, cost_model, folder=Path("without-gpt2"), seed=0)
    search = untrained(library, rewriter, cost_model, folder=Path("without-gpt2"), seed=0)

What chains do is left as it is, such as beginning with greedy search and trying nothing again where it looks the same,
so that the difference to "rlflow" is what V knows. Only their length is the one that serves the baselines best: a long
chain that nobody guides costs rewrites and leads nowhere. The means of rules also say which rules an e-graph admits;
a policy without lessons admits every rule. The folder is that of a policy.

The invariant: neither random order nor the means of rules hold any match for too improbable to be tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from rlflow.agents.match_level.guided_chains import ChainConfig, GuidedChains, guided_chains
from rlflow.agents.match_level.rule_means import RuleMeans
from rlflow.agents.match_level.scorers import Scores, token_states
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.match_level.model import MatchLevelModel

_NEVER = 1e-12  # a probability below which nothing lies
_LENGTH = 3  # rewrites of a chain; better than 12 for a random order, for means of rules and for an untrained V
_MOST_SURE = 1e-4  # the distance of a mean from 0 and 1, whose logits are infinite


class RandomScorer:
    """Draws an order of all matches whenever it is asked, and knows nothing of what they lead to."""

    def __init__(self, seed: int, start: Graph, rewriter: Rewriter, cost_model: CostModel) -> None:
        self._state_of = token_states(start, rewriter, cost_model)
        self._rng = np.random.default_rng(seed)

    def of(self, graph: Graph) -> Scores:
        """Draw an order."""
        state = self._state_of(graph)
        drawn = self._rng.random(len(state.matches))
        nothing = np.zeros_like(drawn)
        return Scores(state, drawn, nothing, nothing)


class RuleMeanScorer:
    """Has the same scores of all matches of a rule."""

    def __init__(self, means: RuleMeans, start: Graph, rewriter: Rewriter, cost_model: CostModel) -> None:
        self._state_of = token_states(start, rewriter, cost_model)
        ids = [rule.id for rule in rewriter.rules]
        share = np.clip(_by_rule(means.taken, ids), _MOST_SURE, 1 - _MOST_SURE)
        self._taken = np.log(share) - np.log1p(-share)
        self._gain, self._saving = _by_rule(means.gain, ids), _by_rule(means.saving, ids)

    def of(self, graph: Graph) -> Scores:
        """Say of each match what is known of its rule."""
        state = self._state_of(graph)
        rules = [location.rule for location, _ in state.matches]
        return Scores(state, self._taken[rules], self._gain[rules], self._saving[rules])


def chains_random(
    library: Library, rewriter: Rewriter, cost_model: CostModel, *, seed: int = 0, rewrites: int = 2000
) -> GuidedChains:
    """Make the search by `RandomScorer`."""
    config = ChainConfig(length=_LENGTH, rewrites=rewrites, least_probability=_NEVER)
    return guided_chains(partial(RandomScorer, seed), library, rewriter, cost_model, config, seed, _all(rewriter))


def rule_mean(
    library: Library, rewriter: Rewriter, cost_model: CostModel, *, folder: Path, seed: int = 0, rewrites: int = 2000
) -> GuidedChains:
    """Make the search by `RuleMeanScorer`. `InputError` if the folder holds no means."""
    usual = ChainConfig(length=_LENGTH, rewrites=rewrites, least_probability=_NEVER)
    config = replace(
        usual, admitted_probability=usual.admitted_share
    )  # for a judge that says of a match its rule's share
    means = RuleMeans.load(folder)
    scored_by = partial(RuleMeanScorer, means)
    return guided_chains(scored_by, library, rewriter, cost_model, config, seed, means.taken)


def untrained(
    library: Library, rewriter: Rewriter, cost_model: CostModel, *, folder: Path, seed: int = 0, rewrites: int = 2000
) -> GuidedChains:
    """Make the search by a network as that of the policy, with the weights that `seed` gives a new one."""
    policy = TaughtGuide.load(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MatchLevelModel(policy.model.arguments).eval().requires_grad_(False)
    untaught = replace(policy, model=model, shares=_all(rewriter))
    return untaught.guide.search(library, rewriter, cost_model, seed=seed, length=_LENGTH, rewrites=rewrites)


def _all(rewriter: Rewriter) -> dict[str, float]:
    """Return the shares of rules for who knows nothing of them: no rule is kept out of an e-graph unheard."""
    return {rule.id: 1.0 for rule in rewriter.rules}


def _by_rule(means: Mapping[str, float], rules: list[str]) -> np.ndarray:
    """Return (R,) the mean of each rule, for one that has none the mean over rules."""
    other = float(np.mean(list(means.values()))) if means else 0.0
    return np.array([means.get(rule, other) for rule in rules])
