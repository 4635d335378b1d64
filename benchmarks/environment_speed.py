"""Steps a second of a masked random agent in rlflow/Substitution-v0; prints JSON rows of schemas/bench.schema.json.

    python benchmarks/environment_speed.py [--seconds 20]

Beside each figure stands a control from the same seconds: the same episodes replayed, which is their rewrites, matches
and hashes alone; side by side, one environment. Episodes and controls take turns, so that a slow minute slows both.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np

from rlflow.environments import SUBSTITUTION, MatchClassEnv, make_vec
from rlflow.environments.class_observations import OBSERVATIONS
from rlflow.trajectory.replay import replay

MODELS = ("tiny_chain", "tiny_transpose", "bert_tiny", "bert")
MAX_STEPS = 30
SIDE_BY_SIDE = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each row, its control included")
    seconds = parser.parse_args().seconds
    rows = [alone(model, observation, seconds) for model in MODELS for observation in OBSERVATIONS]
    rows += [side_by_side(model, seconds) for model in MODELS[1:3]]
    json.dump(rows, sys.stdout, indent=1)
    sys.stdout.write("\n")


def alone(model: str, observation: str, seconds: float) -> dict[str, Any]:
    """Episodes in one environment, beside the replay of each."""
    env, rng = made(model, observation), np.random.default_rng(0)

    def episode() -> int:
        return len(list(actions(env, rng)))

    def control() -> int:
        *_, last = replay(env._begun.visited[0].graph, env.trajectory(), env.process.evaluator.rewriter)
        assert last.order
        return len(env._begun.taken)

    label = f"steps/{model}, {observation}"
    return row(label, "the same episodes replayed", *taking_turns(episode, control, seconds))


def side_by_side(model: str, seconds: float) -> dict[str, Any]:
    """Episodes in processes side by side, beside those in one environment."""
    one, rng = made(model, "choices"), np.random.default_rng(0)
    envs = make_vec(SUBSTITUTION, SIDE_BY_SIDE, model=model, max_steps=MAX_STEPS)
    state: dict[str, Any] = {"info": envs.reset(seed=0)[1]}

    def steps() -> int:
        for _ in range(MAX_STEPS):
            chosen = [drawn(mask, rng) for mask in state["info"]["action_mask"]]
            *_, state["info"] = envs.step(np.array(chosen))
        return SIDE_BY_SIDE * MAX_STEPS

    figures = taking_turns(steps, lambda: len(list(actions(one, rng))), seconds)
    envs.close()
    return row(f"steps/{model}, {SIDE_BY_SIDE} side by side", "one environment", *figures)


def made(model: str, observation: str) -> MatchClassEnv:
    env = gymnasium.make(SUBSTITUTION, model=model, observation=observation, max_steps=MAX_STEPS).unwrapped
    assert isinstance(env, MatchClassEnv)
    return env


def actions(env: MatchClassEnv, rng: np.random.Generator) -> Iterator[int]:
    """Play an episode of drawn classes, until none is left or the horizon, and yield its actions."""
    _, info = env.reset()
    ended = False
    while not ended:
        action = drawn(info["action_mask"], rng)
        *_, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
        yield action


def drawn(mask: np.ndarray, rng: np.random.Generator) -> int:
    """A class, as long as there is one, else terminate."""
    classes = np.flatnonzero(mask[:-1])
    return int(rng.choice(classes)) if classes.size else len(mask) - 1


def taking_turns(work: Callable[[], int], control: Callable[[], int], seconds: float) -> tuple[float, float, int]:
    """Steps a second of both, which return how many they took, and the steps of the first."""
    work()  # what is imported and made once
    taken, spent = [0, 0], [0.0, 0.0]
    while sum(spent) < seconds:
        for which, action in enumerate((work, control)):
            start = time.perf_counter()
            taken[which] += action()
            spent[which] += time.perf_counter() - start
    return taken[0] / spent[0], taken[1] / spent[1], taken[0]


def row(name: str, baseline: str, steps_per_s: float, control_per_s: float, cases: int) -> dict[str, Any]:
    return {
        "name": name,
        "value": round(steps_per_s, 1),
        "unit": "1/s",
        "baseline": baseline,
        "baseline_value": round(control_per_s, 1),
        "cases": cases,
    }


if __name__ == "__main__":
    main()
