"""Gymnasium environments; importing this package registers them.

Gymnasium 1 loads no plug-ins, so either import this package first, or name it:
`gymnasium.make("rlflow.environments:rlflow/Substitution-v0")`, Candidates-v0 or PassOrdering-v0.
"""

from rlflow.environments.rewards import RewardConfig as RewardConfig
from rlflow.extras import needs

with needs("learn", "rlflow.environments"):
    import gymnasium

    from rlflow.environments.candidate_env import CandidateEnv as CandidateEnv
    from rlflow.environments.candidate_process import CandidateConfig as CandidateConfig
    from rlflow.environments.process_env import ProcessEnv as ProcessEnv
    from rlflow.environments.substitution_env import EnvironmentConfig as EnvironmentConfig
    from rlflow.environments.substitution_env import SubstitutionEnv as SubstitutionEnv

SUBSTITUTION = "rlflow/Substitution-v0"
CANDIDATES = "rlflow/Candidates-v0"
PASS_ORDERING = "rlflow/PassOrdering-v0"
_PROCESS_ENV = "rlflow.environments.make:process_env"
_MADE_BY: dict[str, tuple[str, dict[str, str]]] = {
    SUBSTITUTION: (_PROCESS_ENV, {"formulation": "substitution"}),
    CANDIDATES: (_PROCESS_ENV, {"formulation": "candidates"}),
    PASS_ORDERING: ("rlflow.passes.environment.pass_ordering_env:pass_ordering_env", {}),
}


def register() -> None:
    """Make the environments known to `gymnasium.make`."""
    for name, (factory, settings) in _MADE_BY.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=factory, kwargs=settings)


register()
