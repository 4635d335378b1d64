"""C: a trained policy that acts on (z, h, counts, cost), in a dream and on real graphs alike."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces

from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.factored_policy import FactoredPolicy
from rlflow.agents.policy_controller import PolicyArguments, PolicyController
from rlflow.nn.masking import perturbed
from rlflow.world_model.graph_level.latent_state import ObservationLayout, layout_of
from rlflow.world_model.graph_level.model import GraphLevelModel


@dataclass(frozen=True)
class ControllerArguments(PolicyArguments):
    """The rules that a network acts with, the layout of what it sees, and its settings."""

    rule_ids: tuple[str, ...]
    library_hash: str
    max_locations: int
    layout: ObservationLayout
    config: ControllerConfig

    @classmethod
    def of(cls, model: GraphLevelModel, config: ControllerConfig) -> "ControllerArguments":
        """Return the arguments of a controller that sees graphs through this world model."""
        known = model.arguments
        return cls(known.rule_ids, known.library_hash, known.max_locations, layout_of(model), config)

    def new_policy(self) -> FactoredPolicy:
        """Return an untrained policy of the right shape."""
        return FactoredPolicy(
            spaces.Box(-np.inf, np.inf, (self.layout.size,), np.float32),
            spaces.MultiDiscrete([len(self.rule_ids) + 1, self.max_locations]),
            lambda _: self.config.learning_rate,
            **self.policy_settings(),
        )

    def policy_settings(self) -> dict[str, Any]:
        """Return the keyword arguments of `FactoredPolicy`."""
        return {
            "layout": self.layout,
            "width": self.config.width,
            "rule_embedding": self.config.rule_embedding,
            "terminate_bias": self.config.terminate_bias,
        }


@dataclass(frozen=True)
class Controller(PolicyController):
    """A policy, with the stable ids of the rules that its actions stand for."""

    policy: FactoredPolicy
    arguments: ControllerArguments
    arguments_kind: ClassVar = ControllerArguments

    @torch.no_grad()
    def likeliest(
        self, observation: np.ndarray, number: int, generator: torch.Generator | None = None
    ) -> list[tuple[int, int]]:
        """Return up to `number` valid (rule, location), the most probable first, as `PolicyController` does."""
        rules = torch.arange(len(self.arguments.rule_ids))
        distribution = self.policy.distribution(torch.from_numpy(observation).expand(len(rules), -1))
        rule = distribution.rule_log_probability[0, :-1, None]
        pair = torch.where(torch.isfinite(rule), rule + distribution.location_log_probability(rules), -torch.inf)
        score = pair.flatten() if generator is None else perturbed(pair.flatten(), generator)
        values, indices = score.topk(min(number, len(score)))
        locations = pair.shape[1]
        return [divmod(int(i), locations) for value, i in zip(values, indices, strict=True) if torch.isfinite(value)]
