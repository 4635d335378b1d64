"""A trained policy over candidate graphs, with all that it takes to act on any graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from rlflow.agents.candidates.candidate_config import CandidateNetworkConfig
from rlflow.agents.candidates.candidate_policy import CandidatePolicy
from rlflow.agents.candidates.memory import CandidateMemory, PriceScale
from rlflow.agents.policy_controller import PolicyArguments, PolicyController
from rlflow.environments.candidate_process import CandidateConfig, CandidateProcess
from rlflow.representation.candidate_arrays import CandidateWriter, todays_candidate_vocabulary
from rlflow.representation.vocabulary import Vocabulary

_STATES = 64  # that a policy remembers where it only acts
NAMES = spaces.Box(np.iinfo(np.int64).min, np.iinfo(np.int64).max, (1,), np.int64)
"""What is observed: the name of a state."""


@dataclass(frozen=True)
class CandidateControllerArguments(PolicyArguments):
    """The reading of graphs, the choice of candidates, and the settings of a network.

    vocabulary: what it reads graphs in. library_hash: the rules of its training. episodes: how candidates are chosen.
    """

    vocabulary: Vocabulary
    library_hash: str
    episodes: CandidateConfig
    network: CandidateNetworkConfig

    @classmethod
    def of(
        cls, library_hash: str, episodes: CandidateConfig, network: CandidateNetworkConfig
    ) -> CandidateControllerArguments:
        """Return the arguments of a new network, in today's vocabulary."""
        return cls(todays_candidate_vocabulary(), library_hash, episodes, network)

    def new_policy(self) -> CandidatePolicy:
        """Return an untrained policy of the right shape."""
        actions = spaces.Discrete(self.episodes.max_candidates + 1)
        return CandidatePolicy(NAMES, actions, lambda _: 0.0, **self.policy_settings(_STATES))

    def policy_settings(self, capacity: int) -> dict[str, Any]:
        """Return the keyword arguments of `CandidatePolicy`, which remembers so many states."""
        writer = CandidateWriter(self.vocabulary, reach=self.network.attention_layers)
        return {"memory": CandidateMemory(writer, capacity), "config": self.network}


@dataclass(frozen=True)
class CandidateController(PolicyController):
    """A policy over candidates, with what it was made of. An observation is the name of a state, see `observe`."""

    policy: CandidatePolicy
    arguments: CandidateControllerArguments
    arguments_kind: ClassVar = CandidateControllerArguments

    def scale(self, process: CandidateProcess) -> PriceScale | None:
        """Return the scale in which the policy sees the prices of a process; None if it does not see any."""
        return PriceScale.of(process) if self.arguments.network.priced else None
