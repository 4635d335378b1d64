"""Learned things on disk: weights as safetensors, and as JSON all that is needed to build the network again.

    WORLD_MODEL.save(model, model.arguments, folder)          world_model.safetensors, world_model.json
    model, arguments = WORLD_MODEL.load(folder, MatchLevelModelArguments, MatchLevelModel)

No pickles: reading a network runs no code. Rules, operators and features are named, so that a network is read by name,
whatever the order in today's code. The invariant: equal networks give equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import Tensor, nn

from rlflow.atomic_file import written_whole
from rlflow.described import Described
from rlflow.settings import read_config

A = TypeVar("A", bound="Arguments")
N = TypeVar("N", bound=nn.Module)


@dataclass(frozen=True)
class Arguments:
    """All that is needed to build a network again; a subclass has the fields."""

    def description(self) -> dict[str, Any]:
        """Return the arguments as JSON has them."""
        return asdict(self)

    @classmethod
    def of_description(cls, description: dict[str, Any]) -> Self:
        """Return the arguments that `description` describes."""
        return read_config(cls, description)


@dataclass(frozen=True)
class Bundle(Described):
    """A kind of learned thing: weights beside the JSON, each file written whole or not at all."""

    unreadable: ClassVar[tuple[type[Exception], ...]] = (*Described.unreadable, SafetensorError)

    def save(self, network: nn.Module, arguments: Arguments, folder: Path) -> None:
        """Write the weights of a network, and the arguments that it was built of."""
        with self._written(folder) as draft:
            save_model(network, str(draft))  # not save_file: it refuses shared tensors
        self.describe(arguments.description(), folder)

    def load(self, folder: Path, kind: type[A], network_of: Callable[[A], N]) -> tuple[N, A]:
        """Read what `save` wrote: the network, frozen, and its arguments.

        network_of: returns an untrained network of the right shape. `InputError` if there is no such network.
        """
        with self.reading(folder):
            arguments = kind.of_description(self.description(folder))
            network = network_of(arguments)
            self.restore(network, folder)
        return network.eval().requires_grad_(False), arguments

    def restore(self, network: nn.Module, folder: Path) -> None:
        """Give a network of the right shape the weights that `save` wrote."""
        load_model(network, str(self._weights(folder)))

    def save_tensors(self, tensors: Mapping[str, Tensor], folder: Path) -> None:
        """Write tensors that no network holds."""
        with self._written(folder) as draft:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, draft)

    def tensors(self, folder: Path) -> dict[str, Tensor]:
        """Return what `save_tensors` wrote."""
        return load_file(self._weights(folder))

    def _weights(self, folder: Path) -> Path:
        return folder / f"{self.stem}.safetensors"

    @contextmanager
    def _written(self, folder: Path) -> Iterator[Path]:
        with written_whole(self._weights(folder)) as draft:
            yield draft
            draft.chmod(0o644)  # safetensors lets nobody but the owner read it


WORLD_MODEL = Bundle("world_model", "world model", "run fit_world_model")
CONTROLLER = Bundle("controller", "controller", "run train_controller")
