"""Every environment over a process: Gymnasium's and Stable-Baselines3's checks, masks, ends, refusals, replay."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.env_checker import check_env as check_env_for_sb3
from support.formulations import ENVIRONMENTS, match_class_env, substitution_env
from support.walks import REWRITER

from rlflow.environments import CandidateConfig, EnvironmentConfig, MatchClassConfig, ProcessEnv, RewardConfig
from rlflow.errors import InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.show.frame import HEIGHT, WIDTH
from rlflow.trajectory.replay import replay

Make = Callable[..., ProcessEnv[Any]]
SETTINGS = {
    "match classes": MatchClassConfig,
    "rule and location": EnvironmentConfig,
    "candidates": CandidateConfig,
}


@pytest.fixture(params=sorted(ENVIRONMENTS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(name: str) -> Make:
    return ENVIRONMENTS[name]


def actions(env: ProcessEnv[Any]) -> Iterator[Any]:
    """All actions; terminate is the last but for what stands beside it."""
    space = env.action_space
    if isinstance(space, spaces.Discrete):
        return iter(range(int(space.n)))
    return product(*(range(int(size)) for size in space.nvec))  # type: ignore[attr-defined]


def terminate(env: ProcessEnv[Any]) -> Any:
    return next(action for action in actions(env) if env.choice(action) is None)


def missing(env: ProcessEnv[Any]) -> Any:
    """An action that cannot be taken; where all K candidates are there, a number of none."""
    choices = env.process.choices(env.state)
    return next((a for a in actions(env) if (choice := env.choice(a)) is not None and choice not in choices), -1)


def walk(env: ProcessEnv[Any], steps: int, seed: int = 0) -> list[tuple[str, float, float]]:
    """A drawn episode: hashes, rewards and runtimes of its steps."""
    rng, seen = np.random.default_rng(seed), []
    env.reset(seed=seed)
    for _ in range(steps):
        choices = [*env.process.choices(env.state)]
        _, reward, terminated, _, info = env.step(choices[int(rng.integers(len(choices)))])
        assert not terminated
        assert info["valid"]
        seen.append((env.state.hash, reward, info["runtime_ms"]))
    return seen


@pytest.mark.parametrize("observed", [substitution_env, match_class_env])
def test_the_checker_of_stable_baselines3_is_satisfied(observed: Make) -> None:
    """It knows no spaces of graphs, so that candidates are trained on by name (`agents.real_episodes`)."""
    check_env_for_sb3(observed(), warn=False)


def test_every_unmasked_action_can_be_taken_and_no_other(name: str, make: Make) -> None:
    """All actions at one state, after two drawn steps; a masked one is refused, an unmasked one leads elsewhere."""
    limit = {"rule and location": {"max_locations": 4}, "candidates": {"max_candidates": 60}}.get(name, {})
    env, valid = make(config=SETTINGS[name](max_steps=9, **limit)), 0
    walk(env, 2)
    known = {*env.process.choices(env.state)}
    for action in actions(env):
        if (choice := env.choice(action)) is None:
            continue
        if len(env.trajectory().steps) != 2 or len(env._begun.taken) > 7:
            walk(env, 2)
        before = env.graph
        _, reward, terminated, _, info = env.step(action)
        assert not terminated
        assert info["valid"] == (choice in known)
        assert (env.graph is before) == (reward == -100.0) == (choice not in known)
        valid += info["valid"]
    assert valid == len(known) > 10
    walk(env, 2)
    mask = env.action_masks()
    if isinstance(env.action_space, spaces.Discrete):
        assert np.flatnonzero(mask).tolist() == [*sorted(known), len(mask) - 1]
    else:
        rules = len(env.library.rules)
        assert {*np.flatnonzero(mask[:rules])} == {rule for rule, _ in known}
        assert {*np.flatnonzero(mask[rules + 1 :])} == {location for _, location in known}
        assert mask[rules]


def test_observations_are_in_their_space_along_an_episode(make: Make) -> None:
    env, rng = make(), np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    for _ in range(6):
        assert env.observation_space.contains(observation)
        choices = [*env.process.choices(env.state)]
        observation, *_ = env.step(choices[int(rng.integers(len(choices)))])


def test_the_same_seed_gives_the_same_episode(make: Make) -> None:
    """In one environment, whose memory of another episode must not show, and in two."""
    env = make()
    first = walk(env, 8, seed=3)
    assert walk(env, 8, seed=4) != first
    assert walk(env, 8, seed=3) == walk(make(), 8, seed=3) == first


def test_the_record_replays_and_rewards_add_up(make: Make) -> None:
    """With a refused action, which is not in the record. Not vacuous: the price changes on the way."""
    env = make()
    seen = walk(env, 8)
    env.step(missing(env))
    trajectory = env.trajectory()
    assert (trajectory.seed, trajectory.library) == (0, env.library.hash)
    assert [(step.hash, step.reward, step.runtime_ms) for step in trajectory.steps] == seen
    *_, last = replay(env._begun.visited[0].graph, trajectory, REWRITER)
    assert structural_hash(last) == env.state.hash
    start_ms, rewards = trajectory.start_runtime_ms, [reward for _, reward, _ in seen]
    assert sum(rewards) == pytest.approx(100.0 * (start_ms - env.state.runtime_ms) / start_ms, abs=1e-9)
    assert len({round(reward, 9) for reward in rewards}) > 3


def test_terminate_ends_at_no_price_and_pays_the_terminal_reward(make: Make) -> None:
    env = make(reward_config=RewardConfig(kind="terminal"))
    seen = walk(env, 6)
    graph = env.graph
    _, last, terminated, truncated, info = env.step(terminate(env))
    assert (terminated, truncated, info["valid"], env.graph is graph) == (True, False, True, True)
    assert [reward for _, reward, _ in seen] == [0.0] * 6
    start_ms = env.trajectory().start_runtime_ms
    assert last == pytest.approx(100 * (start_ms - env.state.runtime_ms) / start_ms)
    assert last != 0


@pytest.mark.parametrize("reward", ["incremental", "terminal"])
def test_the_horizon_truncates(name: str, make: Make, reward: str) -> None:
    env = make(config=SETTINGS[name](max_steps=4), reward_config=RewardConfig(kind=reward))
    seen = walk(env, 3)
    _, last, terminated, truncated, _ = env.step(next(iter(env.process.choices(env.state))))
    assert (terminated, truncated) == (False, True)
    start_ms = env.trajectory().start_runtime_ms
    total = 100 * (start_ms - env.state.runtime_ms) / start_ms
    assert sum(earned for _, earned, _ in seen) + last == pytest.approx(total, abs=1e-9)


def test_a_measured_reward_is_a_constant_between_measurements(make: Make) -> None:
    """Every third step would be measured: before that nothing is, and X-RLflow's small constant is paid."""
    env = make(reward_config=RewardConfig("end_to_end", every=3, between=0.1))
    assert [reward for _, reward, _ in walk(env, 2)] == [0.1, 0.1]
    assert env.reward.figures()["measurements"] == 0


def test_undo_goes_back_and_what_follows_is_the_same(make: Make) -> None:
    """A refused action and two steps are taken back one by one; the same steps give the same again."""
    env = make()
    seen, steps = walk(env, 5), env.trajectory().steps
    observed = [flat(env.process.observe(state)) for state in env._begun.visited]
    env.step(missing(env))
    assert flat(env.undo()[0]) == observed[5]
    assert flat(env.undo()[0]) == observed[4]
    observation, info = env.undo()
    assert (flat(observation), info["runtime_ms"]) == (observed[3], seen[2][2])
    left = env.trajectory().steps
    assert 0 < len(left) < len(steps)
    assert left == steps[: len(left)]
    for _ in range(3):
        env.undo()
    with pytest.raises(InputError, match="no step to undo"):
        env.undo()
    assert walk(env, 5) == seen


def test_a_fork_goes_its_own_way(make: Make) -> None:
    env = make()
    walk(env, 2)
    other, before = env.fork(), env.trajectory()
    choice = next(iter(env.process.choices(env.state)))
    other.step(choice)
    assert env.trajectory() == before
    assert len(other._begun.taken) == 3
    env.step(choice)
    assert env.trajectory() == other.trajectory()
    assert env.state.hash == other.state.hash
    assert env.np_random.integers(1000) == other.np_random.integers(1000)
    env.reset()
    assert len(other._begun.taken) == 3


def flat(observation: Any) -> list[bytes]:
    """All arrays of an observation, to be compared to the bit."""
    if isinstance(observation, np.ndarray):
        return [observation.tobytes()]
    parts = observation.values() if isinstance(observation, dict) else observation
    return [content for part in parts for content in flat(part)]


def test_the_picture_shows_the_graph_and_what_can_be_done(make: Make) -> None:
    env = make(render_mode="ansi")
    walk(env, 1)
    text = env.render()
    assert text == env.render()
    assert env.state.hash in text
    place = env.process.location(env.state, next(iter(env.process.choices(env.state))))
    assert env.library.rules[place.rule].name in text
    silent = make()
    silent.reset()
    assert silent.render() is None


def test_a_film_has_pictures_of_one_size_that_change_with_the_graph(make: Make) -> None:
    env = make(render_mode="rgb_array")
    env.reset()
    first = env.render()
    env.step(next(iter(env.process.choices(env.state))))
    second = env.render()
    assert first.shape == second.shape == (HEIGHT, WIDTH, 3)
    assert first.dtype == np.uint8
    assert (first != 255).any()
    assert (first != second).any()


@pytest.mark.parametrize(
    "call", [lambda e: e.step(next(actions(e))), lambda e: e.trajectory(), lambda e: e.undo(), lambda e: e.fork()]
)
def test_nothing_comes_before_reset(make: Make, call: Callable[[ProcessEnv[Any]], Any]) -> None:
    with pytest.raises(InputError, match=r"call reset\(\)"):
        call(make())
    with pytest.raises(InputError, match=r"call reset\(\)"):
        make().action_masks()


def test_an_unknown_render_mode_is_refused(make: Make) -> None:
    with pytest.raises(InputError, match="there is no render mode 'human': choose one of ansi, rgb_array"):
        make(render_mode="human")
