"""Every formulation of a rewriting process on a small graph: processes, environments, and policies that search.

Networks are as initialised: what is tested with them holds for any policy.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from rlflow import zoo
from rlflow.agents.candidates.candidate_search import CandidateSearch
from rlflow.agents.candidates.memory import CandidateMemory, PriceScale
from rlflow.agents.graph_level.controller import Controller, ControllerArguments
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.graph_level_search import GraphLevelProcess, GraphLevelSearch
from rlflow.agents.match_level.controller import MatchLevelController, MatchLevelControllerArguments
from rlflow.agents.match_level.guide_process import GuideProcess
from rlflow.agents.match_level.match_level_process import MatchLevelProcess
from rlflow.agents.match_level.match_level_search import MatchLevelSearch
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.agents.match_level.scorers import EncoderScorer
from rlflow.agents.policy_search import PolicySearch
from rlflow.cost.analytic import AnalyticCost
from rlflow.environments import (
    CandidateConfig,
    CandidateEnv,
    EnvironmentConfig,
    MatchClassConfig,
    MatchClassEnv,
    ProcessEnv,
    SubstitutionEnv,
)
from rlflow.environments.candidate_process import CandidateProcess
from rlflow.environments.match_class_process import MatchClassProcess
from rlflow.environments.substitution_env import SubstitutionProcess
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.processes.process import Process
from rlflow.representation.candidate_arrays import CandidateWriter
from rlflow.representation.features import todays_vocabulary
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.graph_level.graph_level_config import GraphLevelModelConfig
from rlflow.world_model.graph_level.latent_state import layout_of
from rlflow.world_model.graph_level.model import GraphLevelModel, WorldModelArguments
from rlflow.world_model.graph_level.rule_alignment import RuleAlignment
from rlflow.world_model.match_level.model import MatchLevelModel, MatchLevelModelArguments
from support.candidate_agents import NETWORK, untaught
from support.readers import reader_of
from support.token_worlds import SMALL, small_graph, small_process, small_token_rollouts
from support.walks import LIBRARY, REWRITER

LOCATIONS, STEPS = 10, 12
CANDIDATES = CandidateConfig(max_candidates=12, max_steps=STEPS)
CLASSES = MatchClassConfig(max_steps=STEPS)
SUBSTITUTION = EnvironmentConfig(max_locations=LOCATIONS, max_steps=STEPS)
POOLED = GraphLevelModelConfig(
    latent=6, encoder_width=16, encoder_layers=2, hidden=24, mixtures=3, rule_embedding=4, head_width=32
)
RULES = (
    "merge-3-linears",
    "residual-bias-to-sum",
    "sum-to-residual-bias",
    "residual-add-to-sum",
    "linear-to-gemm",
    "divide-to-multiply",
    "scale-into-weight",
)


@cache
def few_rules() -> Library:
    return LIBRARY.select([LIBRARY.get(name).id for name in RULES])


@cache
def bert() -> Graph:
    """A layer of BERT in which each of the few rules matches somewhere."""
    sizes = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50}
    return from_onnx(zoo.build("bert", **sizes, positions=16))


@cache
def token_model() -> MatchLevelModel:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        arguments = MatchLevelModelArguments(small_token_rollouts().vocabulary, LIBRARY.hash, SMALL)
        return MatchLevelModel(arguments).eval().requires_grad_(False)


def graph_level_agent(rules: Library, seed: int = 0) -> tuple[GraphLevelModel, Controller]:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        ids = tuple(rule.id for rule in rules.rules)
        model = GraphLevelModel(WorldModelArguments(ids, rules.hash, LOCATIONS, todays_vocabulary(), POOLED)).eval()
        config = ControllerConfig(width=16, terminate_bias=-6.0)
        arguments = ControllerArguments(ids, rules.hash, LOCATIONS, layout_of(model), config)
        return model, Controller(arguments.new_policy().eval(), arguments)


def token_controller() -> MatchLevelController:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = MatchLevelControllerConfig(width=8, greedy_weight=0.0, terminate_bias=-6.0)
        arguments = MatchLevelControllerArguments.of(token_model(), config, STEPS)
        return MatchLevelController(arguments.new_policy(), arguments)


def candidates() -> CandidateProcess:
    return CandidateProcess(small_graph(), REWRITER, AnalyticCost(), CANDIDATES)


def named_candidates() -> CandidateProcess:
    process = candidates()
    return process.observed_by(CandidateMemory(CandidateWriter(), 64).observer(PriceScale.of(process)))


def graph_level() -> GraphLevelProcess:
    """The rules stand in another order in the world model, which does not know one of them."""
    rules = few_rules()
    model, _ = graph_level_agent(rules.select([rule.id for rule in reversed(rules.rules[1:])]))
    process = SubstitutionProcess(bert(), Rewriter(rules.rules), AnalyticCost(), SUBSTITUTION)
    alignment = RuleAlignment.of(model.arguments.rule_ids, [rule.id for rule in rules.rules])
    return GraphLevelProcess(process, model, alignment)


def guide_process(name: str = "bert") -> GuideProcess:
    """The same classes of matches, as a policy that ships sees them."""
    process = small_process(name)
    scorer = EncoderScorer(
        reader_of(token_model()), process.start().graph, process.evaluator.rewriter, process.evaluator.cost_model
    )
    return GuideProcess(process, scorer)


PROCESSES: Mapping[str, Callable[[], Process[Any, Any]]] = {
    "rule and location": lambda: SubstitutionProcess(small_graph(), REWRITER, AnalyticCost(), SUBSTITUTION),
    "rule and location, through V and M": graph_level,
    "candidates": candidates,
    "candidates, by name": named_candidates,
    "classes of matches, as environments show them": lambda: MatchClassProcess(
        small_graph(), REWRITER, AnalyticCost(), CLASSES
    ),
    "classes of matches": lambda: MatchLevelProcess(small_process(), token_model()),
    "classes of matches, few shown": lambda: MatchLevelProcess(small_process(), token_model(), max_kinds=8),
    "classes of matches, by ONNX Runtime": guide_process,
}


def substitution_env(**options: Any) -> SubstitutionEnv:
    return SubstitutionEnv(bert(), LIBRARY, AnalyticCost(), **{"config": SUBSTITUTION, "rewriter": REWRITER} | options)


def candidate_env(**options: Any) -> CandidateEnv:
    settings = {"config": CANDIDATES, "rewriter": REWRITER} | options
    return CandidateEnv(small_graph(), LIBRARY, AnalyticCost(), **settings)


def match_class_env(**options: Any) -> MatchClassEnv:
    settings = {"config": CLASSES, "rewriter": REWRITER} | options
    return MatchClassEnv(small_graph(), LIBRARY, AnalyticCost(), **settings)


ENVIRONMENTS: Mapping[str, Callable[..., ProcessEnv[Any]]] = {
    "match classes": match_class_env,
    "rule and location": substitution_env,
    "candidates": candidate_env,
}


def match_level_search(**options: Any) -> MatchLevelSearch:
    parts = (LIBRARY, REWRITER, AnalyticCost(), token_model(), token_controller())
    return MatchLevelSearch(*parts, **{"sampled_episodes": 2, "candidates": 1} | options)


def graph_level_search(rules: Library | None = None, **options: Any) -> GraphLevelSearch:
    """Trained on the same rules unless `trained_on` others; `weights` draws those of its networks."""
    rules = rules or few_rules()
    model, controller = graph_level_agent(options.pop("trained_on", rules), options.pop("weights", 0))
    parts = (rules, Rewriter(rules.rules), options.pop("cost_model", AnalyticCost()), model, controller)
    environment = options.pop("environment", SUBSTITUTION)
    return GraphLevelSearch(*parts, environment, **{"sampled_episodes": 3, "candidates": 1} | options)


def candidate_search(**options: Any) -> CandidateSearch:
    controller = untaught(replace(NETWORK, greedy_weight=50.0), CandidateConfig(max_candidates=20, max_steps=STEPS))
    parts = (LIBRARY, REWRITER, AnalyticCost(), controller)
    return CandidateSearch(*parts, **{"sampled_episodes": 2, "candidates": 1} | options)


SEARCHES: Mapping[str, tuple[Callable[..., PolicySearch], Callable[[], Graph]]] = {
    "match level": (match_level_search, small_graph),
    "graph level": (graph_level_search, bert),
    "candidates": (candidate_search, small_graph),
}
