"""The controller over (rule, location) on the real graph.

    search = GraphLevelSearch(library, rewriter, cost_model, world_model, controller, environment)
    result = search.optimise(graph, Budget())

Before each action the real graph is encoded by V and joined with M's memory of the steps so far, which gives the same
observation (z, h, counts, cost) that a dream gives. Actions that the dream would have allowed but the real graph does
not are masked.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.player import Player
from rlflow.agents.policy_search import WorldModelSearch
from rlflow.cost.evaluator import Evaluator
from rlflow.environments.substitution_env import EnvironmentConfig, SubstitutionProcess, SubstitutionState
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.method import State, Workspace
from rlflow.processes.process import Process
from rlflow.representation.action_space import Locations
from rlflow.rules.matching.rewriter import Location
from rlflow.world_model.graph_level import latent_state
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.rule_alignment import RuleAlignment


class GraphLevelProcess(Process[SubstitutionState, tuple[int, int]]):
    """The process as V and M see it; choices are (rule, location) in the world model's order of rules."""

    def __init__(self, process: SubstitutionProcess, model: GraphLevelModel, alignment: RuleAlignment) -> None:
        self.process, self.evaluator = process, process.evaluator
        self.model, self.alignment = model, alignment

    def start(self) -> SubstitutionState:
        state = self.process.start()
        return state.remembering(latent_state.begin(self.model, state.arrays, self._counts(state), state.percent))

    def choices(self, state: SubstitutionState) -> Collection[tuple[int, int]]:
        return Locations(self._counts(state))

    def step(self, state: SubstitutionState, choice: tuple[int, int]) -> SubstitutionState:
        after = self.process.step(state, self.alignment.action(*choice))
        counts = self._counts(after)
        memory = latent_state.advance(self.model, state.memory, choice, after.arrays, counts, after.percent)
        return after.remembering(memory)

    def observe(self, state: SubstitutionState) -> np.ndarray:
        """(size,) float32 of `ObservationLayout`."""
        observation: np.ndarray = state.memory.observation(latent_state.layout_of(self.model))
        return observation

    def location(self, state: SubstitutionState, choice: tuple[int, int]) -> Location:
        return Location(*self.alignment.action(*choice))

    def _counts(self, state: SubstitutionState) -> np.ndarray:
        return self.alignment.counts(state.counts)


@dataclass(frozen=True)
class GraphLevelSearch(WorldModelSearch):
    """Plays with a controller that sees a graph as one vector.

    A dream has no graph in which to tell locations apart; here there is one, so candidates are tried on it. Episodes
    begin at the graph, not behind random rewrites.
    """

    world_model: GraphLevelModel
    controller: Controller
    environment: EnvironmentConfig

    def player(self, work: Workspace, state: State) -> Player[Any, Any]:
        """`InputError` if controller and world model were trained on different rules."""
        process = self.process_on(state.graph, work.evaluator)
        return Player(work, state, process, self.controller, self.environment.max_steps)

    def process_on(self, graph: Graph, evaluator: Evaluator | None = None) -> GraphLevelProcess:
        """Return the process of episodes from a graph. `InputError` as of `player`."""
        known = self.world_model.arguments
        if self.controller.arguments.rule_ids != known.rule_ids:
            raise InputError("the controller and the world model were trained on different rules: train them together")
        parts = (graph, self.rewriter, self.cost_model, self.environment, known.vocabulary, evaluator)
        return GraphLevelProcess(SubstitutionProcess(*parts), self.world_model, self._alignment)

    @cached_property
    def _alignment(self) -> RuleAlignment:
        """Made once, so that rules that the model has never seen are warned of once."""
        return RuleAlignment.of(self.world_model.arguments.rule_ids, [r.id for r in self.library.rules])
