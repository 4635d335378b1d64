"""C over match tokens: a trained policy that points at a class of match, in a dream and on real graphs alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from gymnasium import spaces

from rlflow.agents.match_level.linear_pointer import LinearPointer
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig
from rlflow.agents.match_level.pointer_policy import PointerPolicy
from rlflow.agents.policy_controller import PolicyArguments, PolicyController
from rlflow.settings import read_config
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.observation import TokenLayout

_CONFIGS = {"maskable_ppo": MatchLevelControllerConfig, "cma_es": CmaEsConfig}


@dataclass(frozen=True)
class MatchLevelControllerArguments(PolicyArguments):
    """The width of a token's embedding, and settings, whose kind says which network it is and what trained it.

    max_steps: the horizon of the episodes that it was trained in, and of those that it plays: choices.
    """

    embedding: int
    library_hash: str
    max_steps: int
    config: MatchLevelControllerConfig | CmaEsConfig

    @classmethod
    def of(
        cls, model: MatchLevelModel, config: MatchLevelControllerConfig | CmaEsConfig, max_steps: int
    ) -> MatchLevelControllerArguments:
        """Return the arguments of a controller that sees tokens through this world model."""
        known = model.arguments
        return cls(known.config.encoder_width, known.library_hash, max_steps, config)

    def description(self) -> dict[str, Any]:
        """Return the arguments as JSON has them, which names the kind of config."""
        trained_by = next(name for name, config in _CONFIGS.items() if type(self.config) is config)
        return {"trained_by": trained_by, **super().description()}

    @classmethod
    def of_description(cls, description: dict[str, Any]) -> Self:
        """Return the arguments that `description` describes."""
        trained_by, others = description["trained_by"], {k: v for k, v in description.items() if k != "trained_by"}
        return read_config(cls, others | {"config": read_config(_CONFIGS[trained_by], description["config"])})

    def new_policy(self) -> PointerPolicy | LinearPointer:
        """Return an untrained policy of the right shape; its spaces have one class, but it acts on any number."""
        if isinstance(self.config, CmaEsConfig):
            return LinearPointer(self.embedding)
        size = TokenLayout(1, self.embedding).size
        learning_rate = self.config.learning_rate
        return PointerPolicy(
            spaces.Box(-np.inf, np.inf, (size,), np.float32),
            spaces.Discrete(2),
            lambda _: learning_rate,
            embedding=self.embedding,
            config=self.config,
        )


@dataclass(frozen=True)
class MatchLevelController(PolicyController):
    """A policy over classes of matches, with what it was made of. An observation has K classes, K may be any number."""

    policy: PointerPolicy | LinearPointer
    arguments: MatchLevelControllerArguments
    arguments_kind: ClassVar = MatchLevelControllerArguments
