"""Drawn shapes and attributes: what is particular to an operator, to an attribute's name, or nothing but its type."""

from collections.abc import Callable
from typing import Any

from onnx import TensorProto, helper
from onnx.defs import OpSchema

from support.opset_changes.drawing import Draw, code_of, random_types

_TYPES = OpSchema.AttrType

_IMAGES = """AveragePool Conv ConvTranspose DeformConv DepthToSpace GlobalAveragePool GlobalLpPool GlobalMaxPool
GroupNormalization InstanceNormalization LRN LpPool MaxPool MaxRoiPool MaxUnpool RoiAlign SpaceToDepth""".split()


def draw_shape(d: Draw) -> None:
    """Let the draw have a shape that its operator takes."""
    operator = d.schema.name
    if operator in _IMAGES:
        flat = ("DeformConv", "DepthToSpace", "MaxRoiPool", "RoiAlign", "SpaceToDepth")
        axes = 2 if operator in flat else d.count(1, 3)
        size = (2, 4, 6) if operator in ("DepthToSpace", "SpaceToDepth") else (3, 4, 5, 7)
        channels = d.one_of((4, 8)) if operator in ("DepthToSpace", "GroupNormalization") else d.count(1, 4)
        d.shape = (d.count(1, 2), channels, *(d.one_of(size) for _ in range(axes)))
    elif operator in ("Det", "EyeLike"):
        size = d.count(1, 3)
        d.shape = (*d.counts(1, 3, d.count(0, 2)), size, size) if operator == "Det" else (size, d.count(1, 4))
    elif operator == "DFT":
        d.shape = (*d.counts(1, 4, d.count(2, 4)), d.count(1, 2))
    elif operator in ("Upsample", "Resize") and d.chance(0.7):
        d.shape = (1, d.count(1, 2), d.count(2, 5), d.count(2, 5))
    elif operator == "Reshape" and d.chance(0.3):
        d.shape = (*d.shape[:2], 0)
    elif d.chance(0.03):
        d.shape = (*d.shape[:1], 0, *d.shape[2:])


def draw_attributes(d: Draw) -> None:
    """Give the draw the attributes that its schema requires, and some of the others."""
    for name, schema in sorted(d.schema.attributes.items()):
        if not schema.required and not d.chance(0.45):
            continue
        value = (_OF_OPERATOR.get((d.schema.name, name)) or _OF_NAME.get(name) or _OF_TYPE.get(schema.type, _none))(d)
        if value is not None:
            d.attributes[name] = value


def _none(d: Draw) -> None:
    return None


def _spatial(low: int, high: int, copies: int = 1) -> Callable[[Draw], list[int]]:
    return lambda d: d.counts(low, high, copies * max(d.rank - 2, 1))


def _pads(d: Draw) -> list[int]:
    return [0] * 2 * (d.rank - 2) if d.chance(0.2) else d.counts(0, 2, 2 * max(d.rank - 2, 1))


def _axes(d: Draw) -> list[int]:
    axes = d.rng.permutation(d.rank)[: d.count(0, d.rank)]
    return [int(axis) - d.rank * d.chance(0.4) for axis in axes]


def _tensor(d: Draw) -> TensorProto:
    """A tensor of one element for ConstantOfShape; of any shape for Constant."""
    # A schema does not say of which types an attribute's tensor may be; those of the output are.
    dtype = d.one_of(sorted(d.types.values()))
    shape = (1,) if d.schema.name == "ConstantOfShape" else d.shape
    values = d.values(shape, dtype)
    members = [str(v) for v in values.flat] if dtype == "string" else values.ravel()
    return helper.make_tensor("value", code_of(dtype), shape, members)


def _sparse(d: Draw) -> object:
    values = helper.make_tensor("value", TensorProto.FLOAT, [2], [1.0, 2.0])
    return helper.make_sparse_tensor(values, helper.make_tensor("indices", TensorProto.INT64, [2], [0, 2]), [4])


def _choice(*values: Any) -> Callable[[Draw], Any]:
    return lambda d: d.one_of(values)


def _target(d: Draw) -> int | str:
    known = {name for name in d.types.values()} | {"float32", "float64", "int32", "int64", "bool"}
    name = d.one_of(sorted(d.types["T2"].split() if d.chance(0.7) else known))
    return TensorProto.DataType.Name(code_of(name)) if d.schema.since_version < 6 else code_of(name)


def _recurrent_activations(d: Draw) -> list[str]:
    ways = 2 if d.attributes.get("direction") == "bidirectional" else 1
    number = {"RNN": 1, "GRU": 2, "LSTM": 3}[d.schema.name] * ways
    return [d.one_of(("Sigmoid", "Tanh", "Relu", "HardSigmoid", "Elu", "Softsign", "Softplus")) for _ in range(number)]


_MODES = {
    "DepthToSpace": ("DCR", "CRD"),
    "SpaceToDepth": ("DCR", "CRD"),
    "Pad": ("constant", "reflect", "edge", "wrap"),
    "Resize": ("nearest", "linear", "cubic"),
    "RoiAlign": ("avg", "max"),
    "Upsample": ("nearest", "linear"),
}
_COORDINATES = (
    "half_pixel",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
    "half_pixel_symmetric",
)

_OF_OPERATOR: dict[tuple[str, str], Callable[[Draw], Any]] = {
    **{(operator, "mode"): _choice(*modes) for operator, modes in _MODES.items()},
    ("RoiAlign", "coordinate_transformation_mode"): _choice("half_pixel", "output_half_pixel"),
    ("GridSample", "mode"): lambda d: d.one_of(
        ("bilinear", "nearest", "bicubic") if d.schema.since_version < 20 else ("linear", "nearest", "cubic")
    ),
    ("BitShift", "direction"): _choice("LEFT", "RIGHT"),
    ("Scan", "directions"): _none,
    ("Pad", "pads"): lambda d: d.counts(-1, 2, 2 * d.rank),
    ("Pad", "paddings"): lambda d: d.counts(-1, 2, 2 * d.rank),
    ("Unsqueeze", "axes"): _choice([0], [1], [0, 1], [-1], [1, 2], [0, -1]),
    ("Reshape", "shape"): _choice([-1], [0, -1], [1, -1]),
    ("TopK", "k"): _choice(1, 2),
    ("Upsample", "scales"): lambda d: [d.one_of((1.0, 1.5, 2.0)) for _ in d.shape],
    ("Split", "split"): lambda d: [d.one_of((1, 1, 2)) for _ in d.outputs],
    ("Split", "num_outputs"): lambda d: len(d.outputs),
    ("GlobalLpPool", "p"): _choice(1, 2, 3),
    ("SplitToSequence", "keepdims"): _choice(0, 1),
    ("RandomNormal", "shape"): _choice([2, 3], [4]),
    ("RandomUniform", "shape"): _choice([2, 3], [4]),
    ("Bernoulli", "seed"): _choice(1.0, 2.0),
    ("Dropout", "seed"): _choice(1, 7),
    ("RNN", "clip"): _choice(0.5, 2.0),
    ("Cast", "to"): _target,
}
_OF_NAME: dict[str, Callable[[Draw], Any]] = {
    "activation_alpha": _none,
    "activation_beta": _none,
    "activations": _recurrent_activations,
    "auto_pad": _choice("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "axes": _axes,
    "axis": Draw.axis,
    "batch_axis": _choice(0, 1),
    "batch_dims": _choice(0, 0, 1),
    "block_size": _choice(0, 2),
    "blocksize": _choice(1, 2),
    "body": _none,
    "clip": _choice(0.5, 2.0),
    "consumed_inputs": _none,
    "coordinate_transformation_mode": _choice(*_COORDINATES),
    "cubic_coeff_a": _choice(-0.5, -0.75),
    "dilations": _spatial(1, 2),
    "direction": _choice("forward", "reverse", "bidirectional"),
    "dtype": lambda d: d.one_of(random_types()),
    "end": _choice(-2, -1, 0, 1, 2, 9),
    "epsilon": _choice(1e-5, 0.1),
    "equation": _none,
    "extrapolation_value": _choice(0.0, 7.0, -1.0),
    "group": _choice(1, 2, 3),
    "hidden_size": lambda d: 3,
    "high": _choice(1.0, 2.0),
    "ignore_index": _choice(-5, -1, 0, 1, 3),
    "k": _choice(-1, 0, 1, 2),
    "keep_aspect_ratio_policy": _choice("stretch", "not_larger", "not_smaller"),
    "kernel_shape": _spatial(1, 3),
    "kv_num_heads": lambda d: 2,
    "left_window_size": _choice(-1, 0, 1),
    "low": _choice(-1.0, 0.0),
    "momentum": _choice(0.5, 0.9),
    "nearest_mode": _choice("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    "num_groups": _choice(1, 2, 4),
    "num_scan_inputs": lambda d: 1,
    "output_dtype": lambda d: d.one_of((TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT8)),
    "output_height": _choice(1, 2, 3),
    "output_padding": _spatial(0, 1),
    "output_shape": lambda d: d.counts(3, 9, max(d.rank - 2, 1)),
    "output_width": _choice(1, 2, 3),
    "p": _choice(1, 2, 3),
    "padding_mode": _choice("zeros", "border", "reflection"),
    "pads": _pads,
    "perm": lambda d: d.rng.permutation(d.rank).tolist(),
    "pooled_shape": lambda d: d.counts(1, 2, 2),
    "precision": lambda d: d.one_of((TensorProto.FLOAT, TensorProto.FLOAT16)),
    "q_num_heads": _choice(2, 4),
    "qk_matmul_output_mode": _choice(0, 1, 2, 3),
    "ratio": _choice(0.0, 0.25, 0.5),
    "reduction": lambda d: d.one_of(
        ("none", "add", "mul", "max", "min") if d.schema.name.startswith("Scatter") else ("none", "sum", "mean")
    ),
    "right_window_size": _choice(-1, 0, 1),
    "round_mode": _choice("up", "down", "nearest"),
    "sample_size": _choice(1, 3),
    "sampling_ratio": _choice(0, 1, 2),
    "scale": _choice(0.5, 2.0),  # of a normal distribution; ONNX Runtime aborts at 0
    "seed": _choice(1.0, 2.0),
    "size": _choice(1, 3, 5),
    "softcap": _choice(0.0, 2.0),
    "softmax_precision": lambda d: d.one_of((TensorProto.FLOAT, TensorProto.FLOAT16)),
    "sparse_value": _sparse,
    "spatial": _choice(1),  # ONNX Runtime 1.32 crashes at 0
    "spatial_scale": _choice(0.25, 0.5, 1.0),
    "start": _choice(-2, -1, 0, 1, 2),
    "stash_type": lambda d: d.one_of((TensorProto.FLOAT, TensorProto.FLOAT16)),
    "storage_order": _choice(0, 0, 1),
    "strides": _spatial(1, 3),
    "time_axis": _choice(0, 1),
    "to": lambda d: code_of(d.one_of(sorted(d.types.values()))),
    "type": lambda d: helper.make_tensor_type_proto(TensorProto.FLOAT, [2]),
    "value": _tensor,
}
_OF_TYPE: dict[Any, Callable[[Draw], Any]] = {
    _TYPES.INT: _choice(0, 1),
    _TYPES.INTS: _choice([], [1, 2], [-1], [0]),
    _TYPES.FLOAT: _choice(0.0, 0.5, 1.0, 2.0, -1.0),
    _TYPES.FLOATS: _choice([], [0.5, 1.0], [-2.0]),
    _TYPES.STRING: _choice("text", ""),
    _TYPES.STRINGS: _choice([], ["text", "more"]),
}
