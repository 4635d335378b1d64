"""The environment of candidates: spaces, masks, ends, invalid actions, replay, and Gymnasium's own checks."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from support.detours import COST, detour_rules, detours
from support.token_worlds import small_graph
from support.walks import LIBRARY, REWRITER

from rlflow.cost.analytic import AnalyticCost
from rlflow.environments import CANDIDATES, CandidateConfig, CandidateEnv
from rlflow.environments.rewards import RewardConfig
from rlflow.errors import InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.trajectory.replay import replay


def make(reward: RewardConfig | None = None, **settings: int) -> CandidateEnv:
    config = CandidateConfig(**{"max_candidates": 12, "max_steps": 6, **settings})
    parts = (small_graph(), LIBRARY, AnalyticCost())
    return CandidateEnv(*parts, config=config, reward_config=reward, rewriter=REWRITER, render_mode="ansi")


def drawn(env: CandidateEnv, rng: np.random.Generator) -> int:
    """A candidate that there is."""
    return int(rng.choice(np.flatnonzero(env.action_masks()[:-1])))


@pytest.mark.parametrize("model", ["bert", "tiny_merge"])
def test_the_checker_of_gymnasium_is_satisfied(model: str) -> None:
    """Every warning but the one on unbounded features (which are logarithms, without a natural bound)."""
    made = gymnasium.make(CANDIDATES, model=small_graph() if model == "bert" else model, max_candidates=5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(made.unwrapped)
    texts = [str(w.message) for w in caught]
    assert [t for t in texts if "infinity" not in t] == []


def test_what_is_observed_is_in_the_space_and_says_what_there_is() -> None:
    env, rng = make(), np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    for _ in range(4):
        assert observation in env.observation_space
        state = env.process.at(env.graph)
        assert len(observation["candidates"]) == len(state.candidates) == env.action_masks().sum() - 1
        shown = [observation["current"], *observation["candidates"]]
        for graph, instance in zip([env.graph, *state.graphs], shown, strict=True):
            assert len(instance.nodes) == len(graph.inputs) + len(graph.order)
            assert len(instance.edges) == len(instance.edge_links) == len(graph.layout.operands)
        observation, *_ = env.step(drawn(env, rng))


def test_an_episode_replays_and_its_rewards_are_what_the_price_lost() -> None:
    """Twice with one seed. Not vacuous: the price changes on the way, up and down."""
    seen = []
    for _ in range(2):
        env, rng, earned = make(), np.random.default_rng(3), []
        env.reset(seed=1)
        truncated = False
        while not truncated:
            _, reward, terminated, truncated, info = env.step(drawn(env, rng))
            assert not terminated
            earned.append(reward)
        trajectory = env.trajectory()
        assert len(trajectory.steps) == 6
        *_, last = replay(small_graph(), trajectory, REWRITER)
        assert structural_hash(last) == structural_hash(env.graph)
        saved = 100.0 * (env.process.start_ms - info["runtime_ms"]) / env.process.start_ms
        assert sum(earned) == pytest.approx(saved, abs=1e-9)
        assert len({np.sign(reward) for reward in earned}) > 1
        seen.append((earned, trajectory))
    assert seen[0] == seen[1]


def test_terminate_ends_and_what_is_not_there_changes_nothing() -> None:
    env = make(max_candidates=500)
    env.reset()
    before = structural_hash(env.graph)
    missing = int(np.flatnonzero(~env.action_masks())[0])
    _, reward, terminated, truncated, info = env.step(missing)
    assert (reward, terminated, truncated, info["valid"]) == (-100.0, False, False, False)
    _, reward, terminated, truncated, info = env.step(env.terminate)
    assert (reward, terminated, truncated, info["valid"]) == (0.0, True, False, True)
    assert structural_hash(env.graph) == before
    assert env.trajectory().steps == ()


def test_what_is_cut_off_is_counted() -> None:
    """K = 3 of many, and K enough for all; a merged rewrite is counted as alike."""
    few, all_of_them = make(max_candidates=3), make(max_candidates=5000)
    counts = sum(REWRITER.matches(small_graph()).counts)
    for env in (few, all_of_them):
        _, info = env.reset()
        shown = int(env.action_masks().sum()) - 1
        assert shown + info["matches_beyond_limit"] + info["matches_alike"] == counts
    assert few.reset()[1]["matches_beyond_limit"] > 0
    assert all_of_them.reset()[1]["matches_beyond_limit"] == 0


def test_the_picture_names_what_can_be_done() -> None:
    env = CandidateEnv(detours(), detour_rules(), COST, render_mode="ansi")
    env.reset()
    (candidate,) = env.process.start().candidates
    assert candidate.match.rule.name in env.render()
    assert CandidateEnv(detours(), detour_rules(), COST).render() is None


def test_it_refuses_what_it_cannot_do() -> None:
    with pytest.raises(InputError, match="reset"):
        make().action_masks()
    with pytest.raises(InputError, match="render mode"):
        CandidateEnv(detours(), detour_rules(), COST, render_mode="human")
    with pytest.raises(InputError, match="max_candidates must be at least 1, not 0"):
        CandidateConfig(max_candidates=0)


def test_a_reward_that_is_given_is_paid_and_tells_what_it_took() -> None:
    """By price at the end alone; stopping is an end, and so is the horizon."""
    env = make(RewardConfig(kind="terminal"))
    env.reset()
    start_ms = env.process.start_ms
    paid = [env.step(0)[1], env.step(0)[1]]
    assert paid == [0.0, 0.0]
    saved = env.process.percent(start_ms - env.process.evaluator.runtime_ms(env.graph))
    assert saved != 0.0
    assert env.step(env.terminate)[1] == pytest.approx(saved)


def test_a_measured_reward_is_a_constant_between_measurements() -> None:
    """Every third step would be measured: before that nothing is, and X-RLflow's small constant is paid."""
    env = make(RewardConfig("end_to_end", every=3, between=0.1))
    env.reset()
    for _ in range(2):
        _, reward, _, _, info = env.step(0)
        assert reward == 0.1
        assert info["measurements"] == 0
