"""The world model: V and M, with the names of the rules, operators and features that they were fitted on."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from rlflow.errors import InputError
from rlflow.representation.action_space import ActionSpace
from rlflow.representation.rollouts import Rollouts
from rlflow.representation.vocabulary import Vocabulary
from rlflow.world_model.bundle import WORLD_MODEL, Arguments
from rlflow.world_model.graph_level.graph_encoder import GraphEncoder
from rlflow.world_model.graph_level.graph_level_config import GraphLevelModelConfig
from rlflow.world_model.graph_level.mdn_rnn import MDNRNN

_REMEDY = "fit it on them with fit_world_model"


@dataclass(frozen=True)
class WorldModelArguments(Arguments):
    """All that is needed to build the network again; stored as JSON beside the weights.

    Rules, operators and features are named, so that a model is read by name: graphs that it is to see are written in
    its `vocabulary`, whatever operators and features there are by then, and in whatever order.
    """

    rule_ids: tuple[str, ...]
    library_hash: str
    max_locations: int
    vocabulary: Vocabulary
    config: GraphLevelModelConfig

    @classmethod
    def of(cls, rollouts: Rollouts, config: GraphLevelModelConfig) -> "WorldModelArguments":
        """Return the arguments of a model that is to be fitted on these rollouts."""
        return cls(
            rule_ids=rollouts.rule_ids,
            library_hash=rollouts.library_hash,
            max_locations=rollouts.action_space.max_locations,
            vocabulary=rollouts.vocabulary,
            config=config,
        )


class GraphLevelModel(nn.Module):
    """V (`encoder`) and M (`memory`)."""

    def __init__(self, arguments: WorldModelArguments) -> None:
        super().__init__()
        self.arguments = arguments
        config = arguments.config
        self.encoder = GraphEncoder(
            vocabulary_size=len(arguments.vocabulary.operators),
            num_features=len(arguments.vocabulary.features),
            width=config.encoder_width,
            layers=config.encoder_layers,
            latent=config.latent,
        )
        self.memory = MDNRNN(len(arguments.rule_ids), arguments.max_locations, config)

    @property
    def action_space(self) -> ActionSpace:
        """Rules and locations of the rollouts."""
        return ActionSpace(len(self.arguments.rule_ids), self.arguments.max_locations)

    def latents(self, rollouts: Rollouts) -> Tensor:
        """Encode the rollouts' graphs, z (G, Z). `InputError` if these are of other rules or in another vocabulary."""
        known, given = self.arguments.vocabulary, rollouts.vocabulary
        if known != given:
            difference = known.describe_difference(given)
            raise InputError(f"the rollouts are in another vocabulary than the world model's, {difference}: {_REMEDY}")
        if self.arguments.rule_ids != rollouts.rule_ids:
            raise InputError(f"the rollouts are of other rules than the world model: {_REMEDY}")
        return self.encoder.encode(rollouts.graphs)

    def save(self, folder: Path) -> None:
        """Write `world_model.safetensors` and `world_model.json`; equal models give equal bytes."""
        WORLD_MODEL.save(self, self.arguments, folder)

    @classmethod
    def load(cls, folder: Path) -> "GraphLevelModel":
        """Read what `save` wrote, ready for use. Raises InputError where the folder holds no world model."""
        model, _ = WORLD_MODEL.load(folder, WorldModelArguments, GraphLevelModel)
        return model
