"""Random inputs that a model can really run on: right type, right shape, indices inside their tables."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto

from rlflow.errors import InputError, RLFlowError

DEFAULT_DIMENSION = 2
# Small, and never 0: integer division by zero kills the process inside onnxruntime.
_PLAIN_INTEGERS = (1, 5)
_UNKNOWN_TABLE_ROWS = 2
_MOST_ELEMENTS = 2**26  # half a gigabyte while it is drawn

# Operators that hand their indices on unchanged, with the operands that carry them (None: all).
_CARRIERS: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(
        (
            "Identity",
            "Cast",
            "Reshape",
            "Squeeze",
            "Unsqueeze",
            "Flatten",
            "Transpose",
            "Slice",
            "Expand",
            "Tile",
        ),
        (0,),
    ),
    "Where": (1, 2),
    "Concat": None,
}
# Operators that look rows up: pairs of (operand of the table, operand of the indices).
_LOOKUPS: dict[str, tuple[tuple[int, int], ...]] = {
    "Gather": ((0, 1),),
    "GatherElements": ((0, 1),),
    "GatherND": ((0, 1),),
    "ScatterElements": ((0, 1),),
    "ScatterND": ((0, 1),),
    "EmbedLayerNormalization": ((2, 0), (3, 8), (4, 1)),
}
_MIN_OVER_AXES = ("GatherND", "ScatterND")


def required_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """Graph inputs that the caller must feed: those without an initialiser of their name."""
    initialised = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initialised]


def symbolic_dimensions(model: ModelProto) -> list[str]:
    """Names of the symbolic dimensions of the required inputs, in order of appearance."""
    names = [
        dimension.dim_param
        for value in required_inputs(model)
        for dimension in value.type.tensor_type.shape.dim
        if dimension.dim_param
    ]
    return list(dict.fromkeys(names))


def dimensions_of(model: ModelProto, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Values of symbolic dimensions by name, from whole shapes of inputs by name.

    Raises InputError for an input that the model does not have, another rank, a size that is not positive or not the
    declared one, and for a dimension that gets two values.
    """
    declared = {value.name: value.type.tensor_type.shape.dim for value in required_inputs(model)}
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        if name not in declared:
            raise InputError(f"the model has no input {name!r}; it has: {', '.join(declared) or 'none'}")
        if len(shape) != len(declared[name]):
            raise InputError(f"input {name!r} has {len(declared[name])} dimensions, not {len(shape)}")
        for place, (size, dimension) in enumerate(zip(shape, declared[name], strict=True)):
            known = dimension.dim_value if dimension.HasField("dim_value") else sizes.get(dimension.dim_param, size)
            if size < 1 or size != known:
                wanted = known if known != size else "positive"
                raise InputError(f"dimension {place} of input {name!r} is {size}, it must be {wanted}")
            if dimension.dim_param:
                sizes[dimension.dim_param] = size
    return sizes


def draw_inputs(
    model: ModelProto,
    rng: np.random.Generator,
    dimensions: Mapping[str, int] | None = None,
    *,
    default_dimension: int = DEFAULT_DIMENSION,
) -> dict[str, np.ndarray]:
    """One array for each required input of `model`.

    Floats are standard normal. Integers that reach the indices of a Gather (or another look-up), also through
    Cast, Reshape and the like, are uniform over the rows of the smallest table that they index; inputs with
    "mask" in their name are 0/1 with a random prefix of ones along the last axis, so that no row is fully
    masked; other integers are uniform in 1..4, booleans are fair. Symbolic dimensions take their value from
    `dimensions` by name, all others (and dimensions without a name) are `default_dimension`.

    Raises InputError for a name in `dimensions` that the model does not have, RLFlowError for an input that
    is no numeric tensor, or of a size that no tensor has or that would fill the memory.
    """
    sizes = dict(dimensions or {})
    if unknown := sorted(set(sizes) - set(symbolic_dimensions(model))):
        known = ", ".join(symbolic_dimensions(model)) or "none"
        raise InputError(f"the model has no symbolic dimension {', '.join(unknown)}; it has: {known}")
    rows = _table_rows(model.graph)
    return {
        value.name: _draw(value.name, _dtype(value), _shape(value, sizes, default_dimension), rows, rng)
        for value in required_inputs(model)
    }


def _draw(
    name: str, dtype: np.dtype, shape: tuple[int, ...], rows: Mapping[str, int], rng: np.random.Generator
) -> np.ndarray:
    if "mask" in name.lower():
        return _prefix_mask(shape, rng).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    low, high = (0, rows[name]) if name in rows else _PLAIN_INTEGERS
    return rng.integers(low, high, shape).astype(dtype)


def _prefix_mask(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if not shape or not shape[-1]:
        return np.ones(shape)
    lengths = rng.integers(1, shape[-1] + 1, (*shape[:-1], 1))
    return np.arange(shape[-1]) < lengths


def _dtype(value: ValueInfoProto) -> np.dtype:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise RLFlowError(f"input {value.name!r} is a {kind or 'value of no type'}; only tensors can be drawn")
    element = value.type.tensor_type.elem_type
    name = onnx.TensorProto.DataType.Name(element)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element) if element else np.dtype(object)
    if dtype.kind not in "biuf" or dtype.name.lower() != _numpy_name(name):
        raise RLFlowError(f"input {value.name!r} has type {name}; no values of this type can be drawn")
    return dtype


def _numpy_name(onnx_name: str) -> str:
    return {"FLOAT": "float32", "DOUBLE": "float64"}.get(onnx_name, onnx_name.lower())


def _shape(value: ValueInfoProto, sizes: Mapping[str, int], default: int) -> tuple[int, ...]:
    shape = tuple(
        dimension.dim_value if dimension.HasField("dim_value") else sizes.get(dimension.dim_param, default)
        for dimension in value.type.tensor_type.shape.dim
    )
    if min(shape, default=0) < 0 or prod(shape) > _MOST_ELEMENTS:
        raise RLFlowError(f"input {value.name!r} has shape {list(shape)}; no values of this shape can be drawn")
    return shape


def _table_rows(graph: GraphProto) -> dict[str, int]:
    """Rows of the smallest table that each input indexes; inputs that index nothing are absent."""
    shapes = _known_shapes(graph)
    origins = {value.name: {value.name} for value in graph.input}
    rows: dict[str, int] = {}
    for node in _nodes(graph):
        for name, limit in _lookups(node, shapes, origins):
            rows[name] = min(limit, rows.get(name, limit))
        carried = _carried(node)
        for output in node.output[:1]:
            origins[output] = set().union(*(origins.get(name, set()) for name in carried))
    return rows


def _lookups(
    node: NodeProto, shapes: Mapping[str, tuple[int, ...]], origins: Mapping[str, set[str]]
) -> Iterator[tuple[str, int]]:
    for table, index in _LOOKUPS.get(node.op_type, ()):
        if max(table, index) < len(node.input):
            limit = _rows(node, shapes.get(node.input[table]))
            for name in origins.get(node.input[index], ()):
                yield name, limit


def _rows(node: NodeProto, shape: tuple[int, ...] | None) -> int:
    if not shape:
        return _UNKNOWN_TABLE_ROWS
    if node.op_type in _MIN_OVER_AXES:
        return min(shape)
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
    return shape[axis] or _UNKNOWN_TABLE_ROWS


def _carried(node: NodeProto) -> list[str]:
    operands = _CARRIERS.get(node.op_type, ())
    return list(node.input) if operands is None else [node.input[i] for i in operands if i < len(node.input)]


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """All nodes, those of a subgraph before the node that holds it (they see its outer scope by name)."""
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body)
        yield node


def _known_shapes(graph: GraphProto) -> dict[str, tuple[int, ...]]:
    """Shapes by value name, 0 where a dimension is not known."""
    shapes = {value.name: _static(value.type) for value in (*graph.input, *graph.value_info)}
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.HasField("t"):
                shapes[node.output[0]] = tuple(attribute.t.dims)
    return shapes | {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}


def _static(type_: TypeProto) -> tuple[int, ...]:
    return tuple(max(dimension.dim_value, 0) for dimension in type_.tensor_type.shape.dim)
