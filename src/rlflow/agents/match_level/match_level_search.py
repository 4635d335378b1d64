"""The controller over match tokens on the real graph.

    search = MatchLevelSearch(library, rewriter, cost_model, world_model, controller)
    result = search.optimise(graph, Budget())

Before each action V reads the matches of the real graph, which gives the same table of classes that a dream gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.match_level_process import MatchLevelProcess
from rlflow.agents.player import Player
from rlflow.agents.policy_search import WorldModelSearch
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.method import Budget, State, Workspace
from rlflow.processes.token_process import TokenProcess
from rlflow.world_model.match_level.model import MatchLevelModel


@dataclass(frozen=True)
class MatchLevelSearch(WorldModelSearch):
    """Plays episodes as long as those of its training, with a controller that sees classes of matches."""

    world_model: MatchLevelModel
    controller: MatchLevelController

    def player(self, work: Workspace, state: State) -> Player[Any, int]:
        """`InputError` if controller and world model do not belong together, or the graph's price is 0."""
        known = self.world_model.arguments
        if self.controller.arguments.embedding != known.config.encoder_width:
            raise InputError("the controller was trained in the dream of another world model: train them together")
        process = TokenProcess(state.graph, work.rewriter, self.cost_model, known.vocabulary, evaluator=work.evaluator)
        seen = MatchLevelProcess(process, self.world_model)
        return Player(work, state, seen, self.controller, self.controller.arguments.max_steps)

    def drawn(self, graph: Graph, episodes: int) -> list[float]:
        """The improvement in percent by each of so many episodes of drawn actions."""
        work, generator = self.begin(graph, Budget()), torch.Generator().manual_seed(self.seed)
        player, start_ms = self.player(work, work.start), work.start.runtime_ms
        found = [player.play(generator, candidates=1).runtime_ms for _ in range(episodes)]
        return [100.0 * (start_ms - best_ms) / start_ms for best_ms in found]
