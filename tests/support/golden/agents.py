"""Trainings of agents in dreams and on graphs, and what the agents find when they play on their graph.

A training has two updates, with a trial on the real graph after each.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rlflow.agents.candidates.candidate_search import CandidateSearch
from rlflow.agents.candidates.controller import CandidateController
from rlflow.agents.candidates.training import train_on_candidates
from rlflow.agents.dream_training import DreamTraining, train_in_dream
from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.dream import GraphLevelDream
from rlflow.agents.graph_level.graph_level_search import GraphLevelSearch
from rlflow.agents.match_level import baselines, taught_guide
from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.dream import MatchLevelDream
from rlflow.agents.match_level.guided_chains import ChainConfig, GuidedChains
from rlflow.agents.match_level.match_level_search import MatchLevelSearch
from rlflow.agents.match_level.model_free import RealGraph
from rlflow.agents.match_level.planned import planned
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.agents.policy_search import PolicySearch, judge_on
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.method import Budget
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from support.candidate_agents import NETWORK, small_candidates
from support.candidate_agents import PPO as CANDIDATES
from support.golden import digests
from support.golden.digests import Value, digest, trajectory, weights
from support.golden.entries import Compute
from support.golden.fits import SEED, means_of_rules, pooled_world, token_world
from support.golden.rollouts import pooled, pooled_env
from support.token_worlds import small_graph, small_process, small_token_rollouts
from support.walks import LIBRARY, REWRITER

TOKEN_PPO = MatchLevelControllerConfig(
    total_steps=96, steps_per_update=6, batch_size=32, epochs=1, width=8, updates_per_trial=1
)
CMA_ES = CmaEsConfig(generations=2, population=4, generations_per_trial=1)
POOLED_PPO = ControllerConfig(
    total_steps=128, steps_per_update=8, batch_size=32, epochs=1, width=16, rule_embedding=4, updates_per_trial=1
)
TOKEN_DREAM = MatchLevelDreamConfig(num_envs=8, max_kinds=48, max_steps=6)
POOLED_DREAM = GraphLevelDreamConfig(num_envs=8, max_steps=6)
MODEL_FREE = replace(TOKEN_PPO, total_steps=48)
REAL_EPISODES = RealEpisodesConfig(num_envs=4, max_steps=3, max_kinds=48)
BUDGET = Budget(rewrites=120)
LITTLE = Budget(rewrites=50)
"""Greedy search leaves some of it on both graphs, and no policy would do with what is left."""
HORIZON = 6


def entries() -> Mapping[str, Compute]:
    """Return the trainings, and what the trained agents find."""
    return {
        **{f"trainings/{name}": partial(_training, train) for name, train in _TRAININGS.items()},
        "trainings/candidates": lambda: _weights(_candidates()),
        "trainings/model free": _model_free,
        **{f"episodes/{name}": partial(_played, alone) for name, alone in _ALONE.items()},
        **{f"guided searches/{name}": partial(_guided, make) for name, make in _GUIDED.items()},
    }


@cache
def _token_training(config: MatchLevelControllerConfig | CmaEsConfig) -> DreamTraining[MatchLevelController]:
    model, births, _ = token_world()
    dream = MatchLevelDream.of(model, births, small_token_rollouts(), TOKEN_DREAM)
    return train_in_dream(dream, config, seed=SEED, judge=judge_on(small_graph(), _token_player))


@cache
def _pooled_training() -> DreamTraining[Controller]:
    dream = GraphLevelDream.of(pooled_world(), pooled().rollouts(pooled_env()), POOLED_DREAM)
    judge = judge_on(pooled_env().graph, _pooled_player)
    return train_in_dream(dream, POOLED_PPO, seed=SEED, judge=judge)


@cache
def _candidates() -> CandidateController:
    config = replace(CANDIDATES, total_steps=64)
    return train_on_candidates(small_candidates(), LIBRARY.hash, config, NETWORK, seed=SEED)


def _model_free() -> Value:
    course = dict[int, dict[str, float]]()
    model = token_world().model
    dream = RealGraph(model, small_process(), REAL_EPISODES)
    training = train_in_dream(dream, MODEL_FREE, seed=SEED, on_round=course.__setitem__)
    rewrites = int(course[max(course)]["rewrites"])
    return {"rewrites": rewrites, "weights": _weights(training.controller)}


def _token_player(controller: MatchLevelController) -> MatchLevelSearch:
    """Return an optimiser that plays one episode of the controller's likeliest actions."""
    model, cost = token_world().model, AnalyticCost()
    return MatchLevelSearch(LIBRARY, REWRITER, cost, model, controller, seed=SEED, sampled_episodes=0, candidates=1)


def _pooled_player(controller: Controller) -> GraphLevelSearch:
    model, cost, settings = pooled_world(), AnalyticCost(), pooled_env().config
    return GraphLevelSearch(
        LIBRARY, REWRITER, cost, model, controller, settings, seed=SEED, sampled_episodes=0, candidates=1
    )


def _candidate_player() -> CandidateSearch:
    cost = AnalyticCost()
    return CandidateSearch(LIBRARY, REWRITER, cost, _candidates(), seed=SEED, sampled_episodes=0, candidates=1)


Training = Callable[[], DreamTraining[Controller] | DreamTraining[MatchLevelController]]

_TRAININGS: Mapping[str, Training] = {
    "match level": partial(_token_training, TOKEN_PPO),
    "match level, evolved": partial(_token_training, CMA_ES),
    "graph level": _pooled_training,
}


def _training(train: Training) -> Value:
    """Return the weights, the scores in the dream before and after training, and the rewrites of the judge."""
    training = train()
    return {
        "rewrites": training.rewrites,
        "score_percent": float(training.score_percent).hex(),
        "untrained_percent": float(training.untrained_percent).hex(),
        "weights": _weights(training.controller),
    }


_ALONE: Mapping[str, Callable[[], tuple[PolicySearch, Graph]]] = {
    "match level": lambda: (_token_player(_token_training(TOKEN_PPO).controller), small_graph()),
    "match level, evolved": lambda: (_token_player(_token_training(CMA_ES).controller), small_graph()),
    "graph level": lambda: (_pooled_player(_pooled_training().controller), pooled_env().graph),
    "candidates": lambda: (_candidate_player(), small_graph()),
}


def _played(player: Callable[[], tuple[PolicySearch, Graph]]) -> Value:
    """Return what the policy finds alone, and with drawn episodes and candidates after greedy search, and its ways."""
    alone, graph = player()
    policy = replace(alone, sampled_episodes=2, candidates=4)
    greedy = Greedy(LIBRARY, Rewriter(LIBRARY.rules), AnalyticCost())
    after = replace(policy, before=greedy).optimise(graph, LITTLE)
    visits = alone.visits(graph, 2)
    return {
        **{f"alone_{name}": value for name, value in digests.search(alone.optimise(graph, BUDGET)).items()},
        **{f"after_greedy_{name}": value for name, value in digests.search(after).items()},
        "ways": digest([trajectory(way) for way in visits.trajectories]),
        "ways_rewrites": visits.rewrites,
    }


def _by_rule_means() -> GuidedChains:
    with TemporaryDirectory() as folder:
        means_of_rules().save(Path(folder))
        return baselines.rule_mean(LIBRARY, REWRITER, AnalyticCost(), folder=Path(folder), seed=SEED)


def _by_an_untrained_network() -> GuidedChains:
    with TemporaryDirectory() as folder:
        taught_guide.shipped().save(Path(folder))
        return baselines.untrained(LIBRARY, REWRITER, AnalyticCost(), folder=Path(folder), seed=SEED)


def _planned() -> GuidedChains:
    """Return the search that imagines in M where rewrites lead."""
    model, births, _ = token_world()
    with TemporaryDirectory() as folder:
        TaughtGuide(model, ChainConfig(), shares=means_of_rules().taken).save(Path(folder))
        births.save(Path(folder))
        plan = {"length": 3, "dream": {"pessimism": 0.5}}
        return planned(LIBRARY, REWRITER, AnalyticCost(), folder=Path(folder), plan=plan, seed=SEED)


_GUIDED: Mapping[str, Callable[[], GuidedChains]] = {
    "planned": _planned,
    "random order": lambda: baselines.chains_random(LIBRARY, REWRITER, AnalyticCost(), seed=SEED),
    "rule means": _by_rule_means,
    "untrained network": _by_an_untrained_network,
}


def _guided(make: Callable[[], GuidedChains]) -> Value:
    return digests.search(make().optimise(small_graph(), BUDGET))


def _weights(controller: CandidateController | Controller | MatchLevelController) -> str:
    return weights(controller.policy.state_dict())
