"""The world model: V and M, with the rules that they were fitted on."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError
from rlflow.representation.action_space import ActionSpace
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.config import WorldModelConfig, read_config
from rlflow.world_model.graph_encoder import GraphEncoder
from rlflow.world_model.mdn_rnn import MDNRNN


@dataclass(frozen=True)
class WorldModelArguments:
    """All that the weights need to be given a network again; stored beside them as JSON."""

    rule_ids: tuple[str, ...]
    library_hash: str
    max_locations: int
    vocabulary_size: int
    num_features: int
    config: WorldModelConfig

    @classmethod
    def of(cls, rollouts: Rollouts, config: WorldModelConfig) -> "WorldModelArguments":
        """For a model that is to be fitted on rollouts."""
        return cls(
            rule_ids=rollouts.rule_ids,
            library_hash=rollouts.library_hash,
            max_locations=rollouts.action_space.max_locations,
            vocabulary_size=rollouts.vocabulary_size,
            num_features=rollouts.graphs[0].features.shape[1],
            config=config,
        )


class WorldModel(nn.Module):
    """V (`encoder`) and M (`memory`)."""

    def __init__(self, arguments: WorldModelArguments) -> None:
        super().__init__()
        self.arguments = arguments
        config = arguments.config
        self.encoder = GraphEncoder(
            vocabulary_size=arguments.vocabulary_size,
            num_features=arguments.num_features,
            width=config.encoder_width,
            layers=config.encoder_layers,
            latent=config.latent,
        )
        self.memory = MDNRNN(len(arguments.rule_ids), arguments.max_locations, config)

    @property
    def action_space(self) -> ActionSpace:
        """Rules and locations of the rollouts."""
        return ActionSpace(len(self.arguments.rule_ids), self.arguments.max_locations)

    def save(self, folder: Path) -> None:
        """Write `world_model.safetensors` and `world_model.json`; equal models give equal bytes."""
        with written_whole(folder / "world_model.safetensors") as draft:
            save_model(self, str(draft))
        description = dataclasses.asdict(self.arguments)
        (folder / "world_model.json").write_text(json.dumps(description, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "WorldModel":
        """Read what `save` wrote, ready for use. Raises InputError where the folder holds no world model."""
        try:
            description = json.loads((folder / "world_model.json").read_text())
            description["rule_ids"] = tuple(description["rule_ids"])
            description["config"] = read_config(WorldModelConfig, description["config"])
            model = cls(WorldModelArguments(**description))
            load_model(model, str(folder / "world_model.safetensors"))
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            raise InputError(f"world model: {folder} cannot be read ({error}); run fit_world_model") from error
        return model.eval().requires_grad_(False)
