"""Agents that order the passes of the toy compiler, trained for a moment."""

from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.passes.agents.dreamt import DreamtAgent, train_in_dream
from rlflow.passes.agents.pass_agent_config import DreamtConfig, PassAgentConfig
from rlflow.passes.agents.training import PassAgent, train
from rlflow.passes.environment.pass_ordering_env import PassOrderingConfig
from rlflow.passes.transitions import Transitions
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig
from support.toy_compiler import SafeToyCompiler

EPISODE = PassOrderingConfig(max_steps=6)
SMALL = {"num_envs": 4, "width": 16, "total_steps": 256}
ROLLOUTS = {"n_steps": 16}
SETTINGS = {
    "ppo": {**ROLLOUTS, "batch_size": 32, "n_epochs": 4},
    "maskable_ppo": {**ROLLOUTS, "batch_size": 32, "n_epochs": 4},
    "trpo": ROLLOUTS | {"batch_size": 32},
    "a2c": ROLLOUTS,
    "dqn": {"learning_starts": 32, "buffer_size": 500, "batch_size": 16},
    "qr_dqn": {"learning_starts": 32, "buffer_size": 500, "batch_size": 16},
}


def trained(algorithm: str = "maskable_ppo", seed: int = 0, **settings: object) -> tuple[Transitions, PassAgent]:
    transitions = Transitions(SafeToyCompiler())
    return transitions, trained_on(transitions, algorithm, seed, **settings)


def trained_on(
    transitions: Transitions, algorithm: str = "maskable_ppo", seed: int = 0, **settings: object
) -> PassAgent:
    chosen = {"settings": SETTINGS.get(algorithm), **SMALL, **settings}
    config = PassAgentConfig(algorithm=algorithm, **chosen)  # type: ignore[arg-type]
    return train(config, transitions, ["cc", "cab"], EPISODE, seed=seed)


DREAMT = DreamtConfig(
    episodes=100,
    world_model=GraphLevelModelConfig(
        latent=16,
        encoder_width=16,
        encoder_layers=2,
        encoder_epochs=15,
        encoder_batch=32,
        encoder_learning_rate=5e-3,
        hidden=32,
        mixtures=2,
        head_width=32,
        max_count_change=1,
        epochs=50,
        learning_rate=4e-3,
        location_embedding=2,
    ),
    dream=GraphLevelDreamConfig(num_envs=16, max_steps=EPISODE.max_steps, pessimism=0.25),
    controller=ControllerConfig(
        total_steps=16000, steps_per_update=16, batch_size=128, width=32, learning_rate=2e-3, discount=0.95
    ),
)


def dreamt(seed: int = 0, config: DreamtConfig = DREAMT) -> tuple[Transitions, DreamtAgent]:
    transitions = Transitions(SafeToyCompiler())
    return transitions, train_in_dream(config, transitions, ["cc", "cab"], EPISODE, seed=seed)
