"""Throughput of the dream: imagined steps a second without a policy, and with PPO's policy and updates.

Prints one JSON object. The model is untrained and of the default size, as fast as a fitted one; 20 rules that
always match and 200 locations. Run on a quiet machine: `OMP_NUM_THREADS=1 python benchmarks/dream_speed.py`.
"""

import json
import sys
import time

import numpy as np
import torch

from rlflow.agents.pooled.config import ControllerConfig
from rlflow.agents.pooled.dream_training import train_in_dream
from rlflow.representation.vocabulary import PADDING, Vocabulary
from rlflow.world_model.pooled.config import DreamConfig, WorldModelConfig
from rlflow.world_model.pooled.dream_env import PooledDreamEnv, Starts
from rlflow.world_model.pooled.mdn_rnn import State
from rlflow.world_model.pooled.model import WorldModel, WorldModelArguments

RULES, LOCATIONS = 20, 200
TARGETS = {"dream_steps_per_s": 5_000.0, "ppo_steps_per_s": 1_500.0}


def untrained_model() -> tuple[WorldModel, Starts]:
    """A world model in which episodes run to the horizon, and the state in which they start."""
    torch.manual_seed(0)
    arguments = WorldModelArguments(
        rule_ids=tuple(f"rule-{index}" for index in range(RULES)),
        library_hash="",
        max_locations=LOCATIONS,
        vocabulary=Vocabulary((PADDING, *map(str, range(49))), tuple(map(str, range(16)))),
        config=WorldModelConfig(),
    )
    model = WorldModel(arguments).eval().requires_grad_(False)
    torch.nn.init.constant_(model.memory.terminated_table.weight, -100.0)
    hidden = (torch.zeros(1, 256), torch.zeros(1, 256))
    starts = Starts(
        State(torch.zeros(1, 32), torch.full((1, RULES), 100.0), torch.full((1,), 100.0)),
        hidden,
        torch.ones(1, dtype=torch.bool),
    )
    return model, starts


def dream_steps_per_s(num_envs: int, steps: int = 300) -> float:
    """`PooledDreamEnv.step` alone, under fixed valid actions."""
    dream = PooledDreamEnv(*untrained_model(), DreamConfig(num_envs=num_envs), seed=0)
    dream.reset()
    actions = np.zeros((num_envs, 2), dtype=np.int64)
    for _ in range(20):
        dream.step(actions)
    start = time.perf_counter()
    for _ in range(steps):
        dream.step(actions)
    return steps * num_envs / (time.perf_counter() - start)


def ppo_steps_per_s(num_envs: int, updates: int = 6) -> float:
    """Dream, policy and updates of the default controller; the first update is warm-up."""
    dream = DreamConfig(num_envs=num_envs)
    per_update = num_envs * ControllerConfig().steps_per_update
    finished: list[float] = []
    config = ControllerConfig(total_steps=updates * per_update)
    model, starts = untrained_model()
    train_in_dream(model, starts, dream, config, seed=0, on_update=lambda *_: finished.append(time.perf_counter()))
    return (updates - 1) * per_update / (finished[-1] - finished[0])


def main() -> None:
    """Measure both for two batch sizes; the targets are for the default one."""
    torch.set_num_threads(1)
    sizes = (DreamConfig().num_envs, 2 * DreamConfig().num_envs)
    figures = {
        str(size): {"dream_steps_per_s": dream_steps_per_s(size), "ppo_steps_per_s": ppo_steps_per_s(size)}
        for size in sizes
    }
    default = figures[str(sizes[0])]
    report = {
        "threads": torch.get_num_threads(),
        "by_num_envs": figures,
        "targets": TARGETS,
        "ratio_to_target": {name: default[name] / target for name, target in TARGETS.items()},
    }
    json.dump(report, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
