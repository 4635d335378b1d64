"""Gymnasium environments; importing this package registers them.

Gymnasium 1 loads no plug-ins, so either import this package first, or name it:
`gymnasium.make("rlflow.environments:rlflow/Substitution-v0")`. Names are those of `SUBSTITUTION` and the like below.
"""

from collections.abc import Mapping
from typing import Any

from rlflow.environments.rewards import RewardConfig as RewardConfig
from rlflow.extras import needs

with needs("learn", "rlflow.environments"):
    import gymnasium

    from rlflow.environments.candidate_env import CandidateEnv as CandidateEnv
    from rlflow.environments.candidate_process import CandidateConfig as CandidateConfig
    from rlflow.environments.make import make_vec as make_vec
    from rlflow.environments.match_class_env import MatchClassEnv as MatchClassEnv
    from rlflow.environments.match_class_process import MatchClassConfig as MatchClassConfig
    from rlflow.environments.process_env import ProcessEnv as ProcessEnv
    from rlflow.environments.substitution_env import EnvironmentConfig as EnvironmentConfig
    from rlflow.environments.substitution_env import SubstitutionEnv as SubstitutionEnv

SUBSTITUTION = "rlflow/Substitution-v0"
RULE_AND_LOCATION = "rlflow/RuleAndLocation-v0"
CANDIDATES = "rlflow/Candidates-v0"
PASS_ORDERING = "rlflow/PassOrdering-v0"
KNOWN_OPTIMA: Mapping[str, tuple[str, float]] = {
    "rlflow/TinyChain-v0": ("tiny_chain", 90.746),
    "rlflow/TinyMerge-v0": ("tiny_merge", 17.530),
    "rlflow/TinyScale-v0": ("tiny_scale", 54.957),
    "rlflow/TinyTranspose-v0": ("tiny_transpose", 85.342),
}
"""Environments of one model each: what the best graph saves of its price, in percent, rounded down, is their
`reward_threshold`. Equality saturation proves that no rewriting by our rules saves more at analytic prices.
"""
_PROCESS_ENV = "rlflow.environments.make:process_env"
_MADE_BY: Mapping[str, tuple[str, dict[str, Any]]] = {
    SUBSTITUTION: (_PROCESS_ENV, {"formulation": "match classes"}),
    RULE_AND_LOCATION: (_PROCESS_ENV, {"formulation": "rule and location"}),
    CANDIDATES: (_PROCESS_ENV, {"formulation": "candidates"}),
    PASS_ORDERING: ("rlflow.passes.environment.pass_ordering_env:pass_ordering_env", {}),
}


def register() -> None:
    """Make the environments known to `gymnasium.make`."""
    for name, (factory, settings) in _MADE_BY.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=factory, kwargs=settings)
    for name, (model, saved_percent) in KNOWN_OPTIMA.items():
        if name not in gymnasium.registry:
            settings = {"formulation": "match classes", "model": model}
            gymnasium.register(name, entry_point=_PROCESS_ENV, reward_threshold=saved_percent, kwargs=settings)


register()
