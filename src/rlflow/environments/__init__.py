"""Gymnasium environments; importing this package registers them.

Gymnasium 1 loads no plug-ins, so either import this package first, or name it:
`gymnasium.make("rlflow.environments:rlflow/Substitution-v0")`.
"""

from rlflow.environments.rewards import RewardConfig as RewardConfig
from rlflow.extras import needs

with needs("learn", "rlflow.environments"):
    import gymnasium

    from rlflow.environments.substitution_env import EnvironmentConfig as EnvironmentConfig
    from rlflow.environments.substitution_env import SubstitutionEnv as SubstitutionEnv

SUBSTITUTION = "rlflow/Substitution-v0"


def register() -> None:
    """Make the environments known to `gymnasium.make`."""
    if SUBSTITUTION not in gymnasium.registry:
        gymnasium.register(SUBSTITUTION, entry_point="rlflow.environments.make:substitution_env")


register()
