"""Agents that order the passes of the toy compiler, trained for a moment."""

from rlflow.agents.passes.config import PassAgentConfig
from rlflow.agents.passes.training import PassAgent, train
from rlflow.environments.pass_ordering_env import PassOrderingConfig
from rlflow.passes.transitions import Transitions
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
    chosen = {"settings": SETTINGS.get(algorithm), **SMALL, **settings}
    config = PassAgentConfig(algorithm=algorithm, **chosen)  # type: ignore[arg-type]
    return transitions, train(config, transitions, ["cc", "cab"], EPISODE, seed=seed)
