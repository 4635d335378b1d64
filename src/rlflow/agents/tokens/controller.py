"""C over match tokens: a trained policy that points at a kind of match, in a dream and on real graphs alike."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from rlflow.agents import controller_files
from rlflow.agents.pointing_controller import PointingController
from rlflow.agents.tokens.config import CmaEsConfig, TokenControllerConfig
from rlflow.agents.tokens.linear_pointer import LinearPointer
from rlflow.agents.tokens.pointer_policy import PointerPolicy
from rlflow.world_model.settings import read_config
from rlflow.world_model.tokens.model import TokenWorldModel
from rlflow.world_model.tokens.observation import TokenLayout

_CONFIGS = {"maskable_ppo": TokenControllerConfig, "cma_es": CmaEsConfig}


@dataclass(frozen=True)
class TokenControllerArguments:
    """All that is needed to build the network again; stored as JSON beside the weights.

    embedding: the width of a token's embedding. The kind of config says which network it is, and what trained it.
    """

    embedding: int
    library_hash: str
    config: TokenControllerConfig | CmaEsConfig

    @classmethod
    def of(cls, model: TokenWorldModel, config: TokenControllerConfig | CmaEsConfig) -> TokenControllerArguments:
        """Return the arguments of a controller that sees tokens through this world model."""
        known = model.arguments
        return cls(known.config.encoder_width, known.library_hash, config)


@dataclass(frozen=True)
class TokenController(PointingController):
    """A policy over kinds of matches, with what it was made of. An observation has K kinds, K may be any number."""

    policy: PointerPolicy | LinearPointer
    arguments: TokenControllerArguments

    def save(self, folder: Path) -> None:
        """Write `controller.safetensors` and `controller.json`; equal policies give equal bytes."""
        trained_by = next(name for name, kind in _CONFIGS.items() if type(self.arguments.config) is kind)
        description = {"trained_by": trained_by, **dataclasses.asdict(self.arguments)}
        controller_files.save(self.policy, description, folder)

    @classmethod
    def load(cls, folder: Path) -> TokenController:
        """Read what `save` wrote. Raises InputError where the folder holds no controller."""
        return cls(*controller_files.load(folder, _arguments_of, new_policy))


def _arguments_of(description: dict[str, Any]) -> TokenControllerArguments:
    description["config"] = read_config(_CONFIGS[description.pop("trained_by")], description["config"])
    return TokenControllerArguments(**description)


def new_policy(arguments: TokenControllerArguments) -> PointerPolicy | LinearPointer:
    """Return an untrained policy of the right shape; its spaces tell of one kind, but it acts on any number."""
    if isinstance(arguments.config, CmaEsConfig):
        return LinearPointer(arguments.embedding)
    size = TokenLayout(1, arguments.embedding).size
    learning_rate = arguments.config.learning_rate
    return PointerPolicy(
        spaces.Box(-np.inf, np.inf, (size,), np.float32),
        spaces.Discrete(2),
        lambda _: learning_rate,
        **policy_settings(arguments.embedding, arguments.config),
    )


def policy_settings(embedding: int, config: TokenControllerConfig) -> dict[str, Any]:
    """Return the keyword arguments of `PointerPolicy`."""
    return {"embedding": embedding, "width": config.width, "terminate_bias": config.terminate_bias}
