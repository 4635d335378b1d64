"""Torch's two exporters in the opsets that people use, with sizes closed or open."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import onnx
import torch
from torch import Tensor

from support.exports.architecture import Architecture, Positional


class RefusedError(Exception):
    """Torch does not export this architecture so."""


@dataclass(frozen=True)
class Export:
    """A model with the sizes of its open dimensions in the example that it was exported with: all that it must run at,
    as exporters freeze sizes that they take for constants.
    """

    name: str
    model: onnx.ModelProto
    sizes: Mapping[str, int]


@dataclass(frozen=True)
class Exporter:
    """`is_new` is the exporter by torch.export, which knows opsets from 18 on; the older one traces and scripts."""

    opset: int
    is_new: bool = False
    is_open: bool = False

    @property
    def name(self) -> str:
        kind = f"torch_export_{self.opset}" if self.is_new else f"torchscript_{self.opset}"
        return f"{kind}_open" if self.is_open else kind

    def __call__(self, architecture: Architecture) -> Export:
        """`RefusedError` with torch's reason."""
        with _silence():
            module, inputs = architecture.build()
        arguments: dict[str, Any] = {"input_names": list(inputs), "opset_version": self.opset, "dynamo": self.is_new}
        if self.is_new:
            arguments |= {"dynamic_shapes": self._dynamic_shapes(architecture, module, inputs), "verbose": False}
        else:
            arguments["dynamic_axes"] = dict(architecture.open_axes) if self.is_open else None
        file = io.BytesIO()
        with _silence(), torch.no_grad():
            try:
                program = torch.onnx.export(module, tuple(inputs.values()), None if self.is_new else file, **arguments)
            except Exception as error:  # of any class at all
                raise RefusedError(f"{type(error).__name__}: {str(error).strip().splitlines()[0]}") from error
        model = program.model_proto if self.is_new else onnx.load_from_string(file.getvalue())
        return Export(f"{architecture.name}.{self.name}", model, sizes_in(model, inputs))

    def _dynamic_shapes(self, architecture: Architecture, module: object, inputs: Mapping[str, Tensor]) -> Any:
        if not self.is_open:
            return None
        axes = (architecture.open_axes.get(name, {}) for name in inputs)
        shapes = tuple({axis: torch.export.Dim.DYNAMIC for axis in each} for each in axes)
        return (shapes,) if isinstance(module, Positional) else shapes  # one entry for *arguments


def sizes_in(model: onnx.ModelProto, inputs: Mapping[str, Tensor]) -> dict[str, int]:
    """Of the open dimensions by the names that the model has for them."""
    return {
        dimension.dim_param: inputs[value.name].shape[axis]
        for value in model.graph.input
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim)
        if dimension.dim_param
    }


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Exporters warn of what they take for constants, and of how they will be in the future."""
    disabled = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


OLD = tuple(Exporter(opset) for opset in (9, 11, 13, 14, 16, 18, 20))
OPEN = Exporter(17, is_open=True)
NEW = Exporter(18, is_new=True)
NEW_AND_OPEN = Exporter(20, is_new=True, is_open=True)
EXPORTERS = (*OLD, OPEN, NEW, NEW_AND_OPEN)
