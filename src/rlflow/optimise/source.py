"""The model that `rlflow.optimise` is given: read and checked once, whatever is done with it later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnx import ModelProto

from rlflow.onnx_io import copy_model, load_model, require_valid, save_model
from rlflow.onnx_io.data_place import is_outside, place_of
from rlflow.onnx_io.external_data import settle
from rlflow.onnx_io.reads import parse_read, reading


@dataclass(frozen=True)
class Source:
    """A valid model and where it came from.

    Its weights are in memory if they fit into one message. `file` is None for a model that was in memory; others are
    `beside` it with weights of the model. `read` is what its caller reads of its outputs, which are no others then, and
    is empty for all of them.
    """

    model: ModelProto
    file: Path | None = None
    beside: frozenset[Path] = frozenset()
    read: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: ModelProto | Path | str | Source) -> Source:
        """Read a model, unless that was done. `InputError` or `ModelFormatError` in one sentence for what is none."""
        if isinstance(model, Source):
            return model
        if isinstance(model, ModelProto):
            require_valid(model)
            return cls(model)
        file = Path(model)
        loaded = load_model(file)
        beside = frozenset(place_of(weight).path for weight in loaded.graph.initializer if is_outside(weight))
        settle(loaded)
        return cls(loaded, file, beside)

    def reading(self, read: Sequence[str]) -> Source:
        """Return the model with the outputs that these texts name, such as `logits[:, -1]`; itself for no text.

        `InputError` for what cannot be read.
        """
        if not read:
            return self
        return replace(self, model=reading(self.model, [parse_read(text) for text in read]), read=tuple(read))

    @property
    def name(self) -> str:
        """The file as the user named it."""
        return "a model in memory" if self.file is None else str(self.file)

    @property
    def argument(self) -> str:
        """The model as a command takes it, in whatever folder it runs; "" for one that no command reads as it is."""
        if self.read:
            return ""
        return "MODEL" if self.file is None else str(self.file.absolute())

    def save(self, path: Path | str) -> None:
        """Write the model as it came, byte for byte where one file holds all of it. Errors as `save_model`."""
        if self.file is None or self.beside or self.read:
            save_model(self.model, path)
        else:
            copy_model(self.file, path)
