"""ONNX Runtime sessions on the CPU, in the two settings in which RLFlow states every comparison."""

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import onnx
import onnxruntime as ort
from google.protobuf.message import DecodeError, EncodeError, Message
from onnx import ModelProto, TensorProto

from rlflow.errors import InputError, RLFlowError

Setting = Literal["as_written", "deployed"]
SETTINGS: tuple[Setting, ...] = get_args(Setting)

# protobuf refuses messages of 2 GiB; the margin is for everything that is not a weight.
INLINE_LIMIT_BYTES = 2**31 - 2**24
# Weights below this stay inside the spilled file: onnxruntime reads small constants (shapes, axes) early.
_SPILL_FROM_BYTES = 1024

_LEVELS = {
    "as_written": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "deployed": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_FATAL_SEVERITY = 4  # errors are raised: nobody wants them printed, too
_MessageT = TypeVar("_MessageT", bound=Message)


def open_session(
    model: ModelProto | Path,
    setting: Setting,
    threads: int = 1,
    *,
    inline_limit_bytes: int = INLINE_LIMIT_BYTES,
) -> ort.InferenceSession:
    """Open `model` on the CPU provider.

    `setting` is "as_written" (graph optimisation off) or "deployed" (ORT_ENABLE_ALL), paper.md section 6.
    `threads` is the number of threads inside an operator; operators run one after another. A model whose
    weights exceed `inline_limit_bytes` reaches the runtime through a temporary folder of external data.
    `model` is never changed.

    Raises InputError on an unknown setting or thread number, RLFlowError when the runtime refuses the model.
    """
    return _open(model, _options(setting, threads), inline_limit_bytes)


def fused_model(model: ModelProto | Path, setting: Setting = "deployed") -> ModelProto:
    """`model` as the runtime rewrites it before it runs (fused nodes, folded constants), weights inlined.

    The result holds operators of the runtime's own domains and is specific to this machine's kernels.
    Raises RLFlowError when the runtime refuses the model.
    """
    with tempfile.TemporaryDirectory(prefix="rlflow-", ignore_cleanup_errors=True) as folder:
        options = _options(setting, threads=1)
        options.optimized_model_filepath = str(Path(folder, "fused.onnx"))
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "fused.weights")
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_min_size_in_bytes", str(_SPILL_FROM_BYTES)
        )
        _open(model, options, INLINE_LIMIT_BYTES)
        return onnx.load(options.optimized_model_filepath)


def run(session: ort.InferenceSession, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs by name, in the model's order. Raises RLFlowError when the runtime stops on these inputs."""
    names = [output.name for output in session.get_outputs()]
    try:
        values: Sequence[Any] = session.run(names, dict(inputs))
    except Exception as error:
        drawn = ", ".join(f"{name} {value.dtype}{list(value.shape)}" for name, value in inputs.items())
        raise RLFlowError(f"ONNX Runtime could not run the model on inputs {drawn}: {_first_line(error)}") from error
    return dict(zip(names, values, strict=True))


def structure_of(model: ModelProto | Path) -> ModelProto:
    """The model's graph, without weights that lie in other files. Raises InputError when the file is no ONNX
    model.
    """
    if not isinstance(model, Path):
        return model
    try:
        return onnx.load(model, load_external_data=False)
    except (OSError, DecodeError) as error:
        raise InputError(f"cannot read {model} as an ONNX model: {_first_line(error)}") from error


def weight_bytes(model: ModelProto) -> int:
    """Bytes that the top-level initialisers occupy, from their types and shapes."""
    return sum(_tensor_bytes(tensor) for tensor in model.graph.initializer)


def _options(setting: Setting, threads: int) -> ort.SessionOptions:
    if setting not in _LEVELS:
        raise InputError(f"unknown runtime setting {setting!r}; choose one of {', '.join(SETTINGS)}")
    if threads < 1:
        raise InputError(f"threads is {threads}; a session needs at least 1")
    options = ort.SessionOptions()
    options.graph_optimization_level = _LEVELS[setting]
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL_SEVERITY
    return options


def _open(model: ModelProto | Path, options: ort.SessionOptions, inline_limit_bytes: int) -> ort.InferenceSession:
    if isinstance(model, Path):
        if not model.is_file():
            raise InputError(f"no model file at {model}")
        return _load(str(model), options, where=str(model))
    where = f"graph {model.graph.name!r}"
    if weight_bytes(model) <= inline_limit_bytes:
        return _load(_serialise(model, where), options, where)
    # The runtime maps the weights file into memory, so the name may go once the session stands.
    with tempfile.TemporaryDirectory(prefix="rlflow-", ignore_cleanup_errors=True) as folder:
        return _load(str(_spill(model, Path(folder), where)), options, where)


def _load(source: str | bytes, options: ort.SessionOptions, where: str) -> ort.InferenceSession:
    try:
        return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise RLFlowError(f"ONNX Runtime {ort.__version__} could not load {where}: {_first_line(error)}") from error


def _serialise(model: ModelProto, where: str) -> bytes:
    try:
        return bytes(model.SerializeToString())
    except (EncodeError, ValueError) as error:
        raise RLFlowError(f"{where} cannot be written as one ONNX file: {_first_line(error)}") from error


def _spill(model: ModelProto, folder: Path, where: str) -> Path:
    """Write `model` to `folder` with its large weights in a file beside it; no copy of the model is made."""
    slim = _copy_without(model, "graph")
    slim.graph.CopyFrom(_copy_without(model.graph, "initializer"))
    with Path(folder, "weights").open("wb") as weights:
        for tensor in model.graph.initializer:
            slim.graph.initializer.append(_spilled(tensor, weights))
    path = Path(folder, "model.onnx")
    path.write_bytes(_serialise(slim, where))
    return path


def _spilled(tensor: TensorProto, weights: Any) -> TensorProto:
    if not tensor.HasField("raw_data") or _tensor_bytes(tensor) < _SPILL_FROM_BYTES:
        return tensor
    reference = _copy_without(tensor, "raw_data")
    reference.data_location = TensorProto.EXTERNAL
    entries = {"location": "weights", "offset": weights.tell(), "length": weights.write(tensor.raw_data)}
    for key, value in entries.items():
        reference.external_data.add(key=key, value=str(value))
    return reference


def _copy_without(message: _MessageT, skipped: str) -> _MessageT:
    copy: _MessageT = type(message)()
    for field, value in message.ListFields():
        if field.name == skipped:
            continue
        if field.is_repeated:
            getattr(copy, field.name).extend(value)
        elif field.message_type is not None:
            getattr(copy, field.name).CopyFrom(value)
        else:
            setattr(copy, field.name, value)
    return copy


def _tensor_bytes(tensor: TensorProto) -> int:
    if tensor.data_type in (TensorProto.STRING, TensorProto.UNDEFINED):
        return int(tensor.ByteSize())
    itemsize = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return int(math.prod(tensor.dims) * itemsize)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
