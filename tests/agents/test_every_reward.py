"""Every reward by both formulations: collected, fitted, trained in the dream, and earned on the graph, at a tiny size.

A measured latency is stood in for by a multiple of the price, so that what an episode must earn is known exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from support.formulations import SUBSTITUTION, bert, few_rules
from support.token_dreams import any_valid
from support.token_worlds import FEW, SMALL, small_process
from support.walks import LIBRARY
from support.world_models import SMALL as SMALL_GRAPH_LEVEL

from rlflow.agents.collection import CollectionConfig, collect
from rlflow.agents.dream_training import Dream, dream_score, train_in_dream
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.dream import GraphLevelDream
from rlflow.agents.graph_level.graph_level_search import GraphLevelSearch
from rlflow.agents.match_level.chain import FittedWorld
from rlflow.agents.match_level.match_level_process import MatchLevelProcess
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.agents.scores import episode_return
from rlflow.agents.token_collection import collect_tokens
from rlflow.cost.analytic import AnalyticCost
from rlflow.environments import SubstitutionEnv
from rlflow.environments.end_to_end import EndToEnd
from rlflow.environments.episode import Episode
from rlflow.environments.rewards import Reward, RewardConfig, reward_of
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.processes.process import Process
from rlflow.representation.rollouts import Rollouts
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.timing.savings import Saving
from rlflow.step_reward import KINDS, StepReward
from rlflow.world_model.dream_env import DreamEnv
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.trainer import fit_world_model
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig

HORIZON = 5
LOUDER = 3.0  # of what a price saves, the latency that stands for a measured one
PRICES = AnalyticCost()


def latency_by_price(start: Graph, graph: Graph, config: RewardConfig) -> Saving:
    percent = LOUDER * 100.0 * (1.0 - PRICES.runtime_ms(graph) / PRICES.runtime_ms(start))
    return Saving(percent, percent, percent)


def timed(every: int | None = 1) -> EndToEnd:
    return EndToEnd(RewardConfig("end_to_end", every=every), latency_by_price)


def earned_by(kind: str) -> Reward:
    return timed() if kind == "end_to_end" else reward_of(RewardConfig(kind))


def closed_form(kind: str, graphs: list[Graph]) -> float:
    """The return of an episode through these graphs, by what they cost alone."""
    costs = [PRICES.cost(graph) for graph in graphs]
    percent = [100.0 * cost.runtime_ms / costs[0].runtime_ms for cost in costs]
    saved = percent[0] - percent[-1]
    memory = 100.0 * (costs[0].bytes_moved - costs[-1].bytes_moved) / costs[0].bytes_moved
    return {
        "incremental": saved,
        "terminal": saved,
        "runtime": -sum(percent[1:]),
        "weighted": 0.8 * saved + 0.2 * memory,
        "end_to_end": LOUDER * saved,
    }[kind]


@dataclass(frozen=True)
class Formulation:
    """Rollouts, the dream of a world model that is fitted on them, the process that its controllers act in."""

    collected: Callable[[EndToEnd | None], Any]
    dream: Callable[[Any, StepReward], Dream[Any]]
    config: Any
    process: Callable[[Dream[Any], Any], Process[Any, Any]]


def token_rollouts(timing: EndToEnd | None) -> TokenRollouts:
    return collect_tokens(small_process(), "bert", FEW, seed=0, library_hash=LIBRARY.hash, timed=timing).rollouts


@cache
def token_world() -> FittedWorld:
    return FittedWorld.fit(token_rollouts(None), SMALL, seed=0)


def token_dream(rollouts: TokenRollouts, reward: StepReward) -> Dream[Any]:
    return token_world().dream(rollouts, MatchLevelDreamConfig(num_envs=8, max_steps=HORIZON), reward)


def rollouts_by_rules(timing: EndToEnd | None) -> Rollouts:
    env = SubstitutionEnv(bert(), few_rules(), PRICES, config=SUBSTITUTION)
    config = CollectionConfig(episodes=24, terminate_probability=0.05)
    return collect(env, config, seed=0, timed=timing).rollouts(env)


@cache
def graph_level_model() -> Any:
    return fit_world_model(rollouts_by_rules(None), SMALL_GRAPH_LEVEL, seed=0)


def graph_level_dream(rollouts: Rollouts, reward: StepReward) -> Dream[Any]:
    config = GraphLevelDreamConfig(num_envs=8, max_steps=HORIZON)
    return GraphLevelDream.of(graph_level_model(), rollouts, config, reward)


def graph_level_process(dream: Dream[Any], controller: Any) -> Process[Any, Any]:
    parts = (few_rules(), Rewriter(few_rules().rules), PRICES, dream.model, controller, SUBSTITUTION)
    return GraphLevelSearch(*parts).process_on(bert())


FORMULATIONS = {
    "match level": Formulation(
        token_rollouts,
        token_dream,
        MatchLevelControllerConfig(total_steps=160, steps_per_update=10, batch_size=40, epochs=1, terminate_bias=-4.0),
        lambda dream, controller: MatchLevelProcess(small_process(), dream.model, dream.config.max_kinds),
    ),
    "graph level": Formulation(
        rollouts_by_rules,
        graph_level_dream,
        ControllerConfig(total_steps=160, steps_per_update=10, batch_size=40, epochs=1, terminate_bias=-6.0),
        graph_level_process,
    ),
}


@pytest.fixture(params=FORMULATIONS.values(), ids=[*FORMULATIONS])
def formulation(request: pytest.FixtureRequest) -> Formulation:
    return request.param  # type: ignore[no-any-return]


def dream_of(formulation: Formulation, reward: StepReward, every: int | None = 1) -> Dream[Any]:
    """A dream that pays this reward, of rollouts that tell of what it counts, and of no more."""
    return formulation.dream(formulation.collected(timed(every) if reward.quantity == "latency" else None), reward)


def drawn(env: DreamEnv, generator: torch.Generator) -> np.ndarray:
    """Valid actions, terminate where there is no other."""
    if "count" in env.states:
        return any_valid(env.states["count"], generator).numpy()
    rule = any_valid(env.states["counts"], generator)
    return torch.stack([rule, torch.zeros_like(rule)], dim=1).numpy()


def dreamt(dream: Dream[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rewards (T, B) of random actions up to the first end of each dream, those that are at an end, and costs (T, B)
    after each step that is at none. The same ones whatever is paid.
    """
    env, generator = dream.env(seed=1), torch.Generator().manual_seed(2)
    env.reset()
    rewards, ends, costs, running = [], [], [], np.ones(env.num_envs, bool)
    for _ in range(HORIZON):
        _, reward, done, _ = env.step(drawn(env, generator))
        rewards.append(np.where(running, reward, 0.0))
        costs.append(np.where(running & ~done, env.states["cost"].numpy(), np.nan))
        ends.append(running & done)
        running &= ~done
    assert not running.any()
    return np.array(rewards), np.array(ends), np.array(costs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_controller_learns_by_it_in_the_dream_and_earns_its_closed_form_on_the_graph(
    formulation: Formulation, kind: str
):
    """A few updates; the episode has a rewrite that saves something."""
    dream = dream_of(formulation, StepReward(kind))
    training = train_in_dream(dream, formulation.config, seed=0)
    assert training.score_percent == pytest.approx(dream_score(dream, training.controller, seed=0))
    beginner = dream.untrained(formulation.config, seed=0).policy.state_dict()
    assert any((value != beginner[name]).any() for name, value in training.controller.policy.state_dict().items())

    process, reward = formulation.process(dream, training.controller), earned_by(kind)
    episode, ended, total = Episode(process, reward, HORIZON, [process.start()]), False, 0.0
    graphs = [episode.state.graph]
    while not ended:
        choice = training.controller.choose(process.observe(episode.state))
        outcome = episode.act(choice if choice in process.choices(episode.state) else None)
        graphs.append(episode.state.graph)
        total, ended = total + outcome.reward, outcome.ended
    expected = closed_form(kind, graphs)
    assert total == pytest.approx(expected, abs=1e-9)
    assert abs(closed_form("incremental", graphs)) > 1e-3, "the episode changes the price"
    tried = episode_return(process, training.controller, HORIZON, earned_by(kind))
    assert tried.score_percent == pytest.approx(expected, abs=1e-9)
    assert tried.rewrites >= len(graphs) - 2


def test_dreamt_rewards_add_up_as_real_ones_do(formulation: Formulation):
    """In one walk of all rewards: their sums and differences, in closed form."""
    paid = {kind: dreamt(dream_of(formulation, StepReward(kind))) for kind in KINDS}
    saved, ends, costs = paid["incremental"]
    assert (np.abs(saved.sum(axis=0)) > 1e-3).any()
    terminal = paid["terminal"][0]
    np.testing.assert_allclose(terminal.sum(axis=0), saved.sum(axis=0), atol=1e-3)
    assert not terminal[~ends].any()
    inside = np.isfinite(costs)
    assert inside.any()
    np.testing.assert_array_equal(paid["runtime"][0][inside], -costs[inside])
    memory = dreamt(dream_of(formulation, StepReward("weighted", alpha=0.0, beta=1.0)))[0]
    np.testing.assert_allclose(paid["weighted"][0], 0.8 * saved + 0.2 * memory, atol=1e-4)
    assert np.abs(memory).sum() > 0


@pytest.mark.parametrize("kind", ["terminal", "incremental"])
def test_after_a_horizon_nothing_is_expected_of_what_is_paid_at_the_end(formulation: Formulation, kind: str):
    """PPO asks the critic what would have come after a truncated step: of the others."""
    env, generator = dream_of(formulation, StepReward(kind)).env(seed=1), torch.Generator().manual_seed(2)
    env.reset()
    cut = [info["TimeLimit.truncated"] for _ in range(HORIZON) for info in env.step(drawn(env, generator))[3] if info]
    assert any(cut) == (kind == "incremental")


@pytest.mark.parametrize(("quantity", "every"), [("memory", 1), ("latency", 1), ("latency", 2), ("latency", None)])
def test_what_it_counts_beside_the_price_is_read_off_the_rollouts(
    formulation: Formulation, quantity: str, every: int | None
):
    """More is known of the steps that were taken than the mean of all tells, also where few of them are measured."""
    reward = StepReward({"memory": "weighted", "latency": "end_to_end"}[quantity])
    dream, truth = dream_of(formulation, reward, every), formulation.collected(timed())
    told, known = read_back(dream, truth, quantity)
    assert known.std() > 1e-3
    assert np.mean((told - known) ** 2) < 0.7 * known.var()


def read_back(dream: Dream[Any], rollouts: Any, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """What a dream tells of the steps of rollouts, in the states in which these took them, and what they did."""
    env: Any = dream.env(seed=0)
    states = env.start_states(torch.arange(len(dream.starts.initial)))
    if isinstance(rollouts, Rollouts):
        action = torch.from_numpy(np.concatenate([episode.action for episode in rollouts.episodes]))
        known = np.concatenate([getattr(episode, f"{quantity}_saved") for episode in rollouts.episodes])
    else:
        pairs = [pair for one in rollouts.episodes for pair in zip(one.states, one.steps, strict=False)]
        _, _, number = token_world().births.joined(rollouts.tokens, dream.model.read(rollouts))
        token = number[torch.tensor([state.token[step.chosen] for state, step in pairs])]
        action = ((states["token"] == token[:, None]) & (states["count"] > 0)).int().argmax(dim=1)
        known = np.array([getattr(step, f"{quantity}_saved") for _, step in pairs])
    return env._beside(states, action).numpy(), known


def test_rollouts_that_do_not_tell_of_it_are_refused(formulation: Formulation):
    with pytest.raises(InputError, match="do not tell what steps save of the latency: collect them with reward=end_to"):
        formulation.dream(formulation.collected(None), StepReward("end_to_end"))
