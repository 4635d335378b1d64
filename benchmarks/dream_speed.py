"""Throughput of both dreams: imagined steps a second without a policy, and with PPO's policy and updates.

Prints one JSON object. The models are untrained and of the default size, as fast as fitted ones. The pooled dream has
20 rules that always match and 200 locations; the one over match tokens begins with 55 classes of matches, and a rewrite
has ten in its birth set, as on a GPT-2 of two layers. Run on a quiet machine:
`OMP_NUM_THREADS=1 python benchmarks/dream_speed.py`.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from rlflow.agents.dream_training import train_in_dream
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.dream import GraphLevelDream
from rlflow.agents.match_level.dream import MatchLevelDream
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.representation.vocabulary import PADDING, Vocabulary
from rlflow.world_model.dream_env import DreamEnv
from rlflow.world_model.graph_level.dream_env import Starts
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig
from rlflow.world_model.graph_level.mdn_rnn import State
from rlflow.world_model.graph_level.model import GraphLevelModel, WorldModelArguments
from rlflow.world_model.match_level.imagination import ClassStates
from rlflow.world_model.match_level.match_deltas import NONE, MatchDeltas
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig, MatchLevelModelConfig
from rlflow.world_model.match_level.model import MatchLevelModel, MatchLevelModelArguments
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.match_level.starts import TokenStarts
from rlflow.world_model.match_level.token_encoder import TokenReading

RULES, LOCATIONS = 20, 200
TOKENS, SETS, STARTS, KINDS, LISTED = 8000, 2000, 1000, 55, 10
TARGETS = {
    "pooled": {"dream_steps_per_s": 5_000.0, "ppo_steps_per_s": 1_500.0},
    "tokens": {"dream_steps_per_s": 10_000.0, "ppo_steps_per_s": 3_000.0},
}
OnRound = Callable[..., None]


def untrained_model() -> tuple[GraphLevelModel, Starts]:
    """A world model in which episodes run to the horizon, and the state in which they start."""
    torch.manual_seed(0)
    arguments = WorldModelArguments(
        rule_ids=tuple(f"rule-{index}" for index in range(RULES)),
        library_hash="",
        max_locations=LOCATIONS,
        vocabulary=Vocabulary((PADDING, *map(str, range(49))), tuple(map(str, range(16)))),
        config=GraphLevelModelConfig(),
    )
    model = GraphLevelModel(arguments).eval().requires_grad_(False)
    torch.nn.init.constant_(model.memory.terminated_table.weight, -100.0)
    hidden = (torch.zeros(1, 256), torch.zeros(1, 256))
    starts = Starts(
        State(torch.zeros(1, 32), torch.full((1, RULES), 100.0), torch.full((1,), 100.0)),
        hidden,
        torch.ones(1, dtype=torch.bool),
    )
    return model, starts


def token_dream(num_envs: int) -> MatchLevelDream:
    """A dream over tokens drawn at random: one match of each birth set is born, the others turn if they are there."""
    generator = torch.Generator().manual_seed(0)

    def below(bound: int, *shape: int) -> torch.Tensor:
        return torch.randint(bound, shape, generator=generator)

    torch.manual_seed(0)
    vocabulary = Vocabulary((PADDING, *map(str, range(49))), tuple(map(str, range(16))))
    model = (
        MatchLevelModel(MatchLevelModelArguments(vocabulary, "", MatchLevelModelConfig())).eval().requires_grad_(False)
    )
    last = model.memory.gone[-1]
    assert isinstance(last, torch.nn.Linear)
    last.bias[0] = 100.0  # nothing ends but the class that is chosen: the classes hardly run out

    largest, config = model.arguments.config.largest_birth_set, MatchLevelDreamConfig(num_envs=num_envs)
    listed = torch.arange(largest) < LISTED
    sets = MatchDeltas(
        parent=below(TOKENS, SETS),
        taken=torch.ones(SETS, dtype=torch.int64),
        seen=torch.ones(SETS),
        token=torch.where(listed, below(TOKENS, SETS, largest), NONE),
        before=torch.where(listed & (torch.arange(largest) > 0), below(TOKENS, SETS, largest), NONE),
        count=torch.where(listed, 1, 0).expand(SETS, -1).clone(),
        distance=below(FAR_AWAY, SETS, largest, largest).to(torch.int8),
    )
    embedding = torch.randn(TOKENS, model.arguments.config.encoder_width, generator=generator)
    columns = {name: torch.zeros(TOKENS) for name in TokenReading._fields} | {"embedding": embedding}
    knowledge = PrecomputedModel.of(model.memory, TokenReading(**columns), sets, config.candidates)

    places = config.max_kinds
    percent = torch.full((STARTS,), 100.0)
    states = ClassStates(
        token=below(TOKENS, STARTS, places),
        count=(1 + below(12, STARTS, places)) * (torch.arange(places) < KINDS),
        distance=below(FAR_AWAY + 1, STARTS, places, places).to(torch.int8),
        near=below(FAR_AWAY + 1, STARTS, places).to(torch.int8),
        cost=percent,
        begun=percent,
        unit=torch.ones(STARTS),
    )
    return MatchLevelDream(model, TokenStarts(states, torch.ones(STARTS, dtype=torch.bool)), config, knowledge)


def steps_per_s(env: DreamEnv, act: Callable[[], np.ndarray], steps: int = 300) -> float:
    """The environment's `step` alone, under valid actions that take no time to choose."""
    env.reset()
    for _ in range(20):
        env.step(act())
    start = time.perf_counter()
    for _ in range(steps):
        env.step(act())
    return steps * env.num_envs / (time.perf_counter() - start)


def updated_steps_per_s(train: Callable[[OnRound], object], per_update: int) -> float:
    """Dream, policy and updates; the first update is warm-up."""
    finished: list[float] = []
    train(lambda *_: finished.append(time.perf_counter()))
    return (len(finished) - 1) * per_update / (finished[-1] - finished[0])


def pooled_figures(num_envs: int, updates: int = 6) -> dict[str, float]:
    """Both figures of the dream of one vector, with the default controller."""
    model, starts = untrained_model()
    dream = GraphLevelDream(model, starts, GraphLevelDreamConfig(num_envs=num_envs))
    actions = np.zeros((num_envs, 2), dtype=np.int64)
    per_update = num_envs * ControllerConfig().steps_per_update
    config = ControllerConfig(total_steps=updates * per_update)

    def train(on_update: OnRound) -> object:
        return train_in_dream(dream, config, seed=0, on_round=on_update)

    return {
        "dream_steps_per_s": steps_per_s(dream.env(seed=0), lambda: actions),
        "ppo_steps_per_s": updated_steps_per_s(train, per_update),
    }


def token_figures(num_envs: int, updates: int = 12) -> dict[str, float]:
    """Both figures of the dream over match tokens, with the default controller."""
    dream = token_dream(num_envs)
    env = dream.env(seed=0)
    per_update = num_envs * MatchLevelControllerConfig().steps_per_update
    config = MatchLevelControllerConfig(total_steps=updates * per_update)
    return {
        "dream_steps_per_s": steps_per_s(env, lambda: (env.states["count"] > 0).int().argmax(dim=1).numpy()),
        "ppo_steps_per_s": updated_steps_per_s(
            lambda on_round: train_in_dream(dream, config, seed=0, on_round=on_round), per_update
        ),
    }


def main() -> None:
    """Measure both dreams for two batch sizes; the targets are for the default one."""
    torch.set_num_threads(1)
    measured: dict[str, tuple[int, Callable[[int], dict[str, float]]]] = {
        "pooled": (GraphLevelDreamConfig().num_envs, pooled_figures),
        "tokens": (MatchLevelDreamConfig().num_envs, token_figures),
    }
    report: dict[str, Any] = {"threads": torch.get_num_threads()}
    for name, (size, figures_of) in measured.items():
        figures = {str(number): figures_of(number) for number in (size, 2 * size)}
        ratios = {figure: figures[str(size)][figure] / target for figure, target in TARGETS[name].items()}
        report[name] = {"by_num_envs": figures, "targets": TARGETS[name], "ratio_to_target": ratios}
    json.dump(report, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
