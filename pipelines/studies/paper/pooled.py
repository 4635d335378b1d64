"""The paper's own formulation, one vector for a graph and actions by rule and location, at several temperatures.

It acts with a few rules, which are chosen on a smaller graph of the same kind, as in the experiment
(`world_model=graph_level`). Scores are those of Table 3: in the dream, and by an episode as long on the graph itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlflow.agents.collection import CollectionConfig, collect
from rlflow.agents.dream_training import train_in_dream
from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.dream import GraphLevelDream
from rlflow.agents.graph_level.graph_level_search import GraphLevelSearch
from rlflow.agents.policy_search import judge_on
from rlflow.environments import EnvironmentConfig, SubstitutionEnv
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.rule_selection import SelectionConfig, select_rules
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig
from rlflow.world_model.graph_level.trainer import fit_world_model
from studies.paper.rows import Row
from studies.subject import Subject


@dataclass(frozen=True)
class GraphLevelCell:
    """The settings of the experiment's stages, and the temperatures of the dreams that a controller is trained in.

    smaller: the graph on which rules are chosen. sweep_share: of the controller's steps, for each temperature.
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

    def run(self) -> dict[str, Row]:
        graph, prices, shipped = self.subject.graph(), self.subject.prices(), library.load()
        chosen = select_rules(shipped, self.smaller.graph(), self.smaller.prices(), self.selection)
        rules = chosen.rules(shipped)
        env = SubstitutionEnv(graph, rules, prices, config=self.environment)
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

        score = judge_on(graph, alone)
        rows = {}
        for temperature in self.temperatures:
            training = train_in_dream(dream.at(temperature), self.ppo.shortened(self.sweep_share), seed=self.seed)
            real = score(training.controller)
            rows[f"pooled tau {temperature:g}"] = Row(
                {"dream_percent": training.score_percent, "real_percent": real.score_percent}
            )
        return rows
