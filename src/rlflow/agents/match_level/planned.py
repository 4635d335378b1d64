"""Search by chains of rewrites of which the world model imagines where they lead, before any is carried out.

    search = planned(library, rewriter, cost_model, folder=Path("without-gpt2"), plan={"length": 8}, seed=0)

In "rlflow" the encoder V says what a rewrite leads to, as it has learned from experts. Here the memory M imagines it:
from the graph at hand, several chains begin with each rewrite that is likely enough to be tried, and the mean of what
they save takes the place of V's word. All else is as in "rlflow", so that the difference is what planning adds. The
folder is that of a policy whose M was fitted, with its birth sets beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlflow.agents.match_level.guided_chains import GuidedChains, guided_chains
from rlflow.agents.match_level.scorers import EncoderScorer, Scores
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.agents.match_level.token_reader import TokenReader
from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.representation.match_token import MatchToken
from rlflow.representation.state_tokens import StateTokens
from rlflow.representation.token_batch import TokenTable
from rlflow.representation.token_distances import MatchDistances
from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.settings import read_config
from rlflow.world_model.match_level.delta_bank import DeltaBank
from rlflow.world_model.match_level.imagination import ClassStates
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.planning import PlanConfig, best_returns
from rlflow.world_model.match_level.precomputed import PrecomputedModel

_MAX_REMEMBERED = 50_000  # tokens beside those of the birth sets
_ROWS_AT_ONCE = 256  # chains that are imagined at once


@dataclass(frozen=True, eq=False)
class Planner:
    """A world model with its outputs for the tokens of its birth sets, precomputed, and how it plans.

    least: the logit below which V holds a rewrite for too improbable to be planned with.
    """

    model: MatchLevelModel
    reader: TokenReader
    keys: tuple[bytes, ...]
    precomputed: PrecomputedModel
    config: PlanConfig
    least: float
    seed: int

    def judge(self, start: Graph, rewriter: Rewriter, cost_model: CostModel) -> PlanningScorer:
        """Make the judge of one optimisation."""
        return PlanningScorer(self, EncoderScorer(self.reader, start, rewriter, cost_model))


class PlanningScorer:
    """Repeats V's scores of each match, except for what it leads to, which is planned.

    The plan of a graph depends on the graph and the seed alone, whatever was asked before.
    """

    def __init__(self, planner: Planner, judge: EncoderScorer) -> None:
        self._planner, self._judge = planner, judge
        self._knowledge, self._number = planner.precomputed, _numbers(planner.keys)

    def of(self, graph: Graph) -> Scores:
        """Read all matches in a graph, and plan with those that are likely enough."""
        scores = self._judge.of(graph)
        classes = scores.state.token_of
        likely = np.unique(classes[scores.taken >= self._planner.least])
        gain = np.zeros(len(scores.state.tokens))
        if len(likely):
            gain[likely] = np.log1p(np.maximum(self._planned(graph, scores.state, likely), 0.0))
        return replace(scores, gain=gain[classes])

    def _planned(self, graph: Graph, state: StateTokens, classes: np.ndarray) -> np.ndarray:
        """Return where a rewrite of these classes (N,) leads to in the mean, in units of prices."""
        planner, number = self._planner, self._numbers_of(state.tokens)
        root = _imagined(graph, state, number, room=planner.precomputed.sets.token.shape[1])
        first = torch.from_numpy(classes).repeat_interleave(planner.config.chains)
        generator = torch.Generator().manual_seed(planner.seed ^ int(structural_hash(graph)[:15], 16))
        parts = [
            best_returns(
                self._knowledge,
                planner.model.memory,
                root.rows(torch.zeros_like(rows)),
                rows,
                planner.config,
                planner.least,
                generator,
            )
            for rows in first.split(_ROWS_AT_ONCE)
        ]
        mean: np.ndarray = torch.cat(parts).reshape(len(classes), -1).mean(dim=1).double().numpy()
        return mean / state.apart[classes]

    def _numbers_of(self, tokens: Sequence[MatchToken]) -> Tensor:
        """The numbers of tokens (K,) in what is known; M is asked about those that are new."""
        planner = self._planner
        if len(self._number) > len(planner.keys) + _MAX_REMEMBERED:
            self._knowledge, self._number = planner.precomputed, _numbers(planner.keys)
        new = [token for token in tokens if token.key not in self._number]
        if new:
            reading = planner.model.encoder.read(TokenTable(new))
            candidates = planner.config.dream.candidates
            self._knowledge = self._knowledge.with_tokens(planner.model.memory, reading, candidates)
            self._number |= {token.key: len(self._number) + place for place, token in enumerate(new)}
        return torch.tensor([self._number[token.key] for token in tokens])


def planned(
    library: Library,
    rewriter: Rewriter,
    cost_model: CostModel,
    *,
    folder: Path,
    plan: Mapping[str, Any],
    seed: int = 0,
    rewrites: int = 2000,
) -> GuidedChains:
    """Make the search. `plan`: settings of `PlanConfig`, with those of its dream.

    `InputError` if the folder holds no policy, or no birth sets, and for a setting that there is not.
    """
    policy, births = TaughtGuide.load(folder), DeltaBank.load(folder)
    config = read_config(PlanConfig, plan)
    known = PrecomputedModel.of(policy.model.memory, births.reading, births.sets, config.dream.candidates)
    probability = policy.chains.least_probability
    least = float(np.log(probability) - np.log1p(-probability))
    planner = Planner(policy.model, policy.guide.reader, births.keys, known, config, least, seed)
    chains = replace(policy.chains, rewrites=rewrites)
    return guided_chains(planner.judge, library, rewriter, cost_model, chains, seed, policy.shares)


def _numbers(keys: Sequence[bytes]) -> dict[bytes, int]:
    return {key: number for number, key in enumerate(keys)}


def _imagined(graph: Graph, state: StateTokens, number: Tensor, room: int) -> ClassStates:
    """A graph's K classes of matches as the one state in which chains begin, with room for those that are born.

    number (K,): of their tokens. Matches that share nodes with others of their class do not count. Costs are in units
    of prices, and only their differences tell anything.
    """
    classes, places = len(state.tokens), len(state.tokens) + room
    token, count = torch.zeros(1, places, dtype=torch.int64), torch.zeros(1, places, dtype=torch.int64)
    distance = torch.full((1, places, places), FAR_AWAY, dtype=torch.int8)
    token[0, :classes], count[0, :classes] = number, torch.from_numpy(state.apart)
    apart = MatchDistances(graph, [match.nodes for _, match in state.matches], state.token_of).groups_apart()
    distance[0, :classes, :classes] = torch.from_numpy(apart)
    near = torch.full((1, places), FAR_AWAY, dtype=torch.int8)
    zero, one = torch.zeros(1), torch.ones(1)
    return ClassStates(token, count, distance, near, cost=zero, begun=zero, unit=one)
