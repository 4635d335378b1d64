"""XLA's passes on ONNX models, which torch-mlir writes as StableHLO: the backend "xla-onnx" of the pass-ordering gym.

    backend = XlaOnnxBackend()
    start = backend.load("zoo/bert?layers=1&hidden=16&heads=2&intermediate=24")     or a file with static shapes

A model's inputs become the parameters of the program, in their order; its weights become constants, and are carried in
every payload. torch-mlir does not know every operator: what it refuses is an `InputError` with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qsl

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto

from rlflow import zoo
from rlflow.errors import InputError
from rlflow.extras import MissingExtraError
from rlflow.onnx_io import read_model
from rlflow.passes.backend import Source
from rlflow.passes.xla.backend import XlaBackend
from rlflow.runtime.inputs import required_inputs

_ZOO = "zoo/"
_PIPELINE = "builtin.module(torch-onnx-to-torch-backend-pipeline,torch-backend-to-stablehlo-backend-pipeline)"
_ENTRY = "main"  # the function that XLA compiles
_TRANSFORMER = {"hidden": 16, "heads": 2, "intermediate": 24}
_DECODER = {**_TRANSFORMER, "vocabulary": 20, "positions": 16, "sequence": 8}

_OTHERS: tuple[tuple[str, Mapping[str, object]], ...] = (
    *(("bert", {**_DECODER, "layers": layers}) for layers in (2, 3)),
    *(("gpt2", {**_DECODER, "layers": layers}) for layers in (2, 3)),
    *(("nasrnn", {"steps": steps, "hidden": 12}) for steps in (1, 3)),
    *(("vit", {**_TRANSFORMER, "layers": layers, "patch": 8, "image": 24, "classes": 10}) for layers in (2, 3)),
    ("resnet18", {"image": 32, "classes": 10, "width": 2}),
    ("mobilenet_v2", {"image": 32, "classes": 10, "width": 2}),
)
"""Models of the zoo that are listed beside those of its own small settings."""

_NOT_LISTED = frozenset({"loop", "yolo_v5", "inception_v3", "nasnet_a"})
"""torch-mlir refuses the first two; the others have a thousand operations, or megabytes of weights."""


class XlaOnnxBackend(XlaBackend):
    """Passes of XLA on models of RLFlow's zoo, by name, and on ONNX files.

    Raises `InputError` if torch-mlir is not installed, or where `XlaBackend` does.
    """

    name = "xla-onnx"

    def __init__(self) -> None:
        if find_spec("torch_mlir") is None:
            raise MissingExtraError(
                "the xla-onnx backend needs torch_mlir, which is not installed: pip install 'rlflow[xla-onnx]'"
            )
        super().__init__()

    def sources(self) -> tuple[Source, ...]:
        """Models of the zoo that torch-mlir converts and that a pass is quick on; a model is its own family."""
        small = [(name, zoo.describe(name).small) for name in zoo.names() if name not in _NOT_LISTED]
        return tuple(Source(_name(name, settings), name) for name, settings in (*small, *_OTHERS))

    def _stablehlo(self, source: str | bytes) -> bytes:
        return as_program(model_of(source))


def model_of(source: str | bytes) -> ModelProto:
    """Return a model of the zoo by name, one in a file, or one that is the content of a file.

    Raises `InputError` if there is none, or if it cannot be read.
    """
    if isinstance(source, str) and source.startswith(_ZOO) and not Path(source).exists():
        name, _, query = source.removeprefix(_ZOO).partition("?")
        return zoo.build(name, **{setting: _value(text) for setting, text in parse_qsl(query, keep_blank_values=True)})
    try:
        return onnx.load_model_from_string(source) if isinstance(source, bytes) else read_model(source)
    except (DecodeError, InputError) as error:
        where = "the content given" if isinstance(source, bytes) else source
        raise InputError(
            f"cannot read {where} as an ONNX model, and names are {_ZOO}NAME?SETTING=..: {error}"
        ) from None


def as_program(model: ModelProto) -> bytes:
    """Return a model as StableHLO text. Raises `InputError` if its shapes are not static or torch-mlir refuses it."""
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras.onnx_importer import ModelInfo, NodeImporter
    from torch_mlir.passmanager import PassManager

    _check_static(model)
    typed = onnx.shape_inference.infer_shapes(model, data_prop=True)
    typed.graph.name = _ENTRY
    try:
        with ir.Context() as context:
            torch_dialect.register_dialect(context)
            info = ModelInfo(typed)
            module = info.create_module(context=context).operation
            NodeImporter.define_function(info.main_graph, module).import_all()
            PassManager.parse(_PIPELINE).run(module)
            return str(module.get_asm(enable_debug_info=False)).encode()
    except Exception as error:  # the importer raises what it likes, the pipeline an MLIRError
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"torch-mlir cannot write the model {model.graph.name!r} as StableHLO: {reason}") from error


def _check_static(model: ModelProto) -> None:
    for value in required_inputs(model):
        if not all(dimension.HasField("dim_value") for dimension in value.type.tensor_type.shape.dim):
            raise InputError(
                f"input {value.name!r} has a dimension without a size, and XLA wants all sizes: give the model with "
                "static shapes"
            )


def _name(name: str, settings: Mapping[str, object]) -> str:
    query = "&".join(f"{setting}={value}" for setting, value in settings.items())
    return f"{_ZOO}{name}?{query}" if query else f"{_ZOO}{name}"


def _value(text: str) -> int | bool | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if text.isascii() and text.isdigit() else text
