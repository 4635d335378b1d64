"""A policy with the networks that it is trained by: the one that is fitted, tuned and saved.

    policy = TaughtGuide(model, ChainConfig(), trained_on, RuleMeans.of(rollouts).taken)
    policy.save(folder)                  world_model.safetensors, world_model.json, encoder.onnx, policy.json
                                         and of a controller: controller.safetensors, .json and .onnx
    policy.guide.search(library, rewriter, cost_model)

The invariant: the encoder beside the weights is what these compute, and equal policies give equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.guide import (
    ENCODER,
    POINTER,
    POLICY,
    VERSION,
    Guide,
    description,
    digest,
    shipped_folder,
)
from rlflow.agents.match_level.guide_process import OnnxPointer
from rlflow.agents.match_level.guided_chains import ChainConfig
from rlflow.agents.match_level.onnx_encoder import onnx_encoder
from rlflow.agents.match_level.onnx_pointer import onnx_pointer
from rlflow.agents.match_level.token_reader import OnnxReader
from rlflow.onnx_io.saving import save_model
from rlflow.world_model.match_level.model import MatchLevelModel

WEIGHTS, CONTROLLER_WEIGHTS = "world_model.safetensors", "controller.safetensors"
_DECIMALS = 4  # of a share of matches


@dataclass(frozen=True)
class TaughtGuide:
    """A world model over match tokens, and all that makes a `Guide` of it. controller: None if there is none."""

    model: MatchLevelModel
    chains: ChainConfig
    trained_on: Mapping[str, Any] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    controller: MatchLevelController | None = None

    @cached_property
    def guide(self) -> Guide:
        """The policy as it searches."""
        pointer = None if self.controller is None else OnnxPointer.of(onnx_pointer(self.controller))
        return Guide(OnnxReader.of(onnx_encoder(self.model)), self.chains, self.trained_on, self.shares, pointer)

    def tuned(self, model: MatchLevelModel, graphs: Sequence[str], **others: Any) -> TaughtGuide:
        """Return the policy after its model has gone on learning on these graphs; others: fields that changed, too."""
        tuned_on = [*self.trained_on.get("tuned_on", ()), *graphs]
        return replace(self, model=model, trained_on={**self.trained_on, "tuned_on": tuned_on}, **others)

    def save(self, folder: Path) -> None:
        """Write the files of a policy, each whole or not at all."""
        self.model.save(folder)
        save_model(onnx_encoder(self.model), folder / ENCODER)
        files = [ENCODER, WEIGHTS]
        if self.controller is not None:
            self.controller.save(folder)
            save_model(onnx_pointer(self.controller), folder / POINTER)
            files += [POINTER, CONTROLLER_WEIGHTS]
        content = {
            "version": VERSION,
            "sha256": {file: digest(folder / file) for file in files},
            "chains": _own(self.chains),
            "trained_on": self.trained_on,
            "shares": {rule: round(share, _DECIMALS) for rule, share in sorted(self.shares.items())},
        }
        POLICY.describe(content, folder)

    @classmethod
    def load(cls, folder: Path) -> TaughtGuide:
        """Read what `save` wrote. `InputError` as `Guide.load`."""
        description(folder, WEIGHTS)
        guide, controller = Guide.load(folder), None
        if guide.pointer is not None:
            description(folder, CONTROLLER_WEIGHTS)
            controller = MatchLevelController.load(folder)
        return cls(MatchLevelModel.load(folder), guide.chains, guide.trained_on, guide.shares, controller)


def shipped() -> TaughtGuide:
    """Return the policy that ships with the library."""
    with shipped_folder() as folder:
        return TaughtGuide.load(folder)


def _own(chains: ChainConfig) -> dict[str, Any]:
    """Return the settings that are not today's defaults, so that a policy that has none goes with any later ones."""
    usual = asdict(ChainConfig())
    return {name: value for name, value in asdict(chains).items() if value != usual[name]}
