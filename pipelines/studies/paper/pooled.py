"""The paper's own formulation, one vector for a graph and actions by rule and location, at several temperatures.

    rows = GraphLevelCell(subject, ...).run()     {"pooled tau 0.5": ..., "graph_level": ..., "taso by its rules": ...}

It acts with a few rules, which are chosen on a smaller graph of the same kind, as in the experiment
(`world_model=graph_level`). Scores are those of Table 3: in the dream, and by an episode as long on the graph itself.
The controller that does best there is the agent, `graph_level`; searches by the same rules are its control.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlflow.agents.collection import CollectionConfig, collect
from rlflow.agents.dream_training import train_in_dream
from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.dream import GraphLevelDream
from rlflow.agents.graph_level.graph_level_search import GraphLevelSearch
from rlflow.agents.policy_search import judge_on
from rlflow.environments import EnvironmentConfig, SubstitutionEnv
from rlflow.method import Budget
from rlflow.optimise.methods import METHODS
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.rule_selection import SelectionConfig, select_rules
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig
from rlflow.world_model.graph_level.trainer import fit_world_model
from studies.paper.rows import Row, method_row
from studies.subject import Subject

Control = tuple[str, Mapping[str, Any], Budget]
"""A search: its method, its options, and what it may spend."""


@dataclass(frozen=True)
class GraphLevelCell:
    """The settings of the experiment's stages, and the temperatures of the dreams that a controller is trained in.

    smaller: the graph on which rules are chosen. sweep_share: of the controller's steps, for each temperature.
    controls: searches by the same rules, by name.
    """

    subject: Subject
    smaller: Subject
    seed: int
    selection: SelectionConfig
    environment: EnvironmentConfig
    collection: CollectionConfig
    world_model: GraphLevelModelConfig
    dream: GraphLevelDreamConfig
    ppo: ControllerConfig
    temperatures: tuple[float, ...]
    sweep_share: float
    controls: Mapping[str, Control]

    def run(self) -> dict[str, Row]:
        graph, prices, shipped = self.subject.graph(), self.subject.prices(), library.load()
        chosen = select_rules(shipped, self.smaller.graph(), self.smaller.prices(), self.selection)
        rules = chosen.rules(shipped)
        started, env = time.perf_counter(), SubstitutionEnv(graph, rules, prices, config=self.environment)
        rollouts = collect(env, self.collection, seed=self.seed).rollouts(env)
        model = fit_world_model(rollouts, self.world_model, seed=self.seed)
        dream, rewriter = GraphLevelDream.of(model, rollouts, self.dream), Rewriter(rules.rules)

        def alone(controller: Controller) -> GraphLevelSearch:
            return GraphLevelSearch(
                rules,
                rewriter,
                prices,
                model,
                controller,
                env.config,
                sampled_episodes=0,
                candidates=1,
                seed=self.seed,
            )

        score, rows = judge_on(graph, alone), dict[str, Row]()
        trained, rewrites = list[tuple[float, Controller]](), env.process.evaluator.effort.rewrites
        for temperature in self.temperatures:
            training = train_in_dream(dream.at(temperature), self.ppo.shortened(self.sweep_share), seed=self.seed)
            real = score(training.controller)
            rows[f"pooled tau {temperature:g}"] = Row(
                {"dream_percent": training.score_percent, "real_percent": real.score_percent}
            )
            trained.append((real.score_percent, training.controller))
            rewrites += real.rewrites
        training_s = time.perf_counter() - started

        _, controller = max(trained, key=lambda each: each[0])
        found = alone(controller).optimise(graph, Budget())
        rows["graph_level"] = method_row(graph, found, prices, rules, training_s, rewrites)
        for name, (method, options, budget) in self.controls.items():
            search = METHODS.get(method)(rules, rewriter, prices, **options)
            rows[f"{name} by its rules"] = method_row(graph, search.optimise(graph, budget), prices, rules)
        return rows
