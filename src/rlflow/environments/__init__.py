"""Gymnasium environments; importing this package registers them."""

import gymnasium

from rlflow.environments.rewards import RewardConfig as RewardConfig
from rlflow.environments.substitution_env import EnvironmentConfig as EnvironmentConfig
from rlflow.environments.substitution_env import SubstitutionEnv as SubstitutionEnv

SUBSTITUTION = "rlflow/Substitution-v0"


def register() -> None:
    """Make the environments known to `gymnasium.make`; also called by Gymnasium's plug-in mechanism."""
    if SUBSTITUTION not in gymnasium.registry:
        gymnasium.register(SUBSTITUTION, entry_point="rlflow.environments.make:substitution_env")


register()
