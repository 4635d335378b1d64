"""ONNX Runtime sessions on the CPU, in the two settings in which RLFlow states every comparison.

"as_written" runs the nodes of the model as they are (graph optimisation off), "deployed" lets the runtime fuse and fold
them first (ORT_ENABLE_ALL), as users do:

    session = open_session(Path("model.onnx"), "deployed", threads=1)
    outputs = run(session, {"x": x})

Invariant: a model that is given is never changed. Weights too large for a protobuf message are written to a temporary
file, which the runtime maps into memory, so that its name may be gone as soon as the session stands.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
import onnx
import onnxruntime as ort
from google.protobuf.message import DecodeError, EncodeError
from onnx import ModelProto, TensorProto

from rlflow.errors import InputError, RLFlowError
from rlflow.onnx_io.external_data import MESSAGE_LIMIT_BYTES, inside_bytes, outside_bytes, within_reach
from rlflow.runtime.scratch import scratch_folder, without_scratch

Setting = Literal["as_written", "deployed"]
SETTINGS: tuple[Setting, ...] = get_args(Setting)
Session = ort.InferenceSession
_Sparse = ort.capi.onnxruntime_pybind11_state.SparseTensor

_LEVELS = {
    "as_written": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "deployed": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
# Below this, constants stay inside the model as the runtime writes it.
_SPILL_FROM_BYTES = 1024
_FATAL_SEVERITY = 4  # errors are raised, and need not be printed as well


def open_session(
    model: ModelProto | Path,
    setting: Setting,
    threads: int = 1,
    *,
    inline_limit_bytes: int = MESSAGE_LIMIT_BYTES,
    entries: Mapping[str, str] = MappingProxyType({}),
    switched_off: Collection[str] = (),
    profile_prefix: str = "",
) -> ort.InferenceSession:
    """Open `model` on the CPU provider.

    `setting` is "as_written" (graph optimisation off) or "deployed" (ORT_ENABLE_ALL), docs/decisions.md, 12.
    `threads` is the number of threads inside an operator; operators run one after another. Weights in files are mapped
    by the runtime, as are those inside the model where they exceed `inline_limit_bytes`, from a temporary file.
    `entries` are further entries of the session's configuration, and `switched_off` graph optimisers that do not run,
    both in the runtime's own names. With a `profile_prefix`, the session writes a profile to a file of that beginning
    (`runtime/profile.py`). `model` is never changed.

    Raises `InputError` for an unknown setting or thread number, `RLFlowError` when the runtime refuses the model.
    """
    options = _options(setting, threads)
    for name, value in entries.items():
        options.add_session_config_entry(name, value)
    if profile_prefix:
        options.enable_profiling, options.profile_file_prefix = True, profile_prefix
    return _open(model, options, inline_limit_bytes, switched_off)


def fused_model(model: ModelProto | Path, setting: Setting = "deployed") -> ModelProto:
    """Return `model` as the runtime rewrites it before running it (fused nodes, folded constants), weights inlined.

    The result holds operators of the runtime's own domains and is specific to this machine's kernels.
    Raises `RLFlowError` when the runtime refuses the model.
    """
    with scratch_folder() as folder:
        options = _options(setting, threads=1)
        options.optimized_model_filepath = str(folder / "fused.onnx")
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "fused.weights")
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_min_size_in_bytes", str(_SPILL_FROM_BYTES)
        )
        _open(model, options, MESSAGE_LIMIT_BYTES)
        return onnx.load(options.optimized_model_filepath)


def run(session: ort.InferenceSession, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run a session; return the outputs by name, in the model's order, sparse ones dense.

    Raises `RLFlowError` when the runtime stops.
    """
    names = [output.name for output in session.get_outputs()]
    try:
        values: Sequence[Any] = [_dense(value) for value in session.run(names, dict(inputs))]
    except Exception as error:
        drawn = ", ".join(f"{name} {_described(value)}" for name, value in inputs.items())
        raise RLFlowError(f"ONNX Runtime could not run the model on inputs {drawn}: {_first_line(error)}") from error
    return dict(zip(names, values, strict=True))


def _described(value: Any) -> str:
    """Return the type of an input, which may be a sequence."""
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__


def structure_of(model: ModelProto | Path) -> ModelProto:
    """Return the model without weights in other files. Raises `InputError` for a file that is no ONNX model."""
    if not isinstance(model, Path):
        return model
    try:
        return onnx.load(model, load_external_data=False)
    except (OSError, DecodeError) as error:
        raise InputError(f"cannot read {model} as an ONNX model: {_first_line(error)}") from error


def weight_bytes(model: ModelProto) -> int:
    """Return the bytes that the top-level initialisers occupy, from their types and shapes."""
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


def _open(
    model: ModelProto | Path, options: ort.SessionOptions, inline_limit_bytes: int, switched_off: Collection[str] = ()
) -> ort.InferenceSession:
    if isinstance(model, Path):
        if not model.is_file():
            raise InputError(f"no model file at {model}")
        return _load(str(model), options, str(model), switched_off)
    where = f"graph {model.graph.name!r}"
    if inside_bytes(model) <= inline_limit_bytes and not outside_bytes(model):
        return _load(_serialise(model, where), options, where, switched_off)
    # The runtime maps the weights file into memory, so the name may go once the session stands.
    with scratch_folder() as folder:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder.anchor)
        return _load(_serialise(within_reach(model, folder / "weights"), where), options, where, switched_off)


def _load(
    source: str | bytes, options: ort.SessionOptions, where: str, switched_off: Collection[str]
) -> ort.InferenceSession:
    try:
        return ort.InferenceSession(
            source, options, providers=["CPUExecutionProvider"], disabled_optimizers=list(switched_off)
        )
    except Exception as error:
        message = f"ONNX Runtime {ort.__version__} could not load {where}: {_first_line(error)}"
        raise RLFlowError(without_scratch(message)) from error


def _serialise(model: ModelProto, where: str) -> bytes:
    try:
        return bytes(model.SerializeToString())
    except (EncodeError, ValueError) as error:
        raise RLFlowError(f"{where} cannot be written as one ONNX file: {_first_line(error)}") from error


def _dense(value: Any) -> Any:
    """Make a sparse tensor an array: the runtime returns one where a sparse constant is an output."""
    if not isinstance(value, _Sparse):
        return value
    dense = np.zeros(value.dense_shape(), value.values().dtype)
    dense.reshape(-1)[value.get_coo_data().indices()] = value.values()  # linear, however the constant writes them
    return dense


def _tensor_bytes(tensor: TensorProto) -> int:
    if tensor.data_type in (TensorProto.STRING, TensorProto.UNDEFINED):
        return int(tensor.ByteSize())
    itemsize = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return int(math.prod(tensor.dims) * itemsize)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
