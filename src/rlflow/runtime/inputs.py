"""Random inputs that a model can really run on: of the right type and shape, with indices inside their tables.

An operator tells what the input that it reads is for (`rlflow.runtime.input_domains`): the second input of a Gather
from 50,000 rows is drawn from 0 to 49,999, the operand of a Log above 0. Floats without such a use are standard
normal.

Invariant: one generator draws all inputs in the model's order, so that a seed and the sizes determine them.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import ModelProto, ValueInfoProto

from rlflow.errors import InputError, RLFlowError
from rlflow.onnx_io.shapes.inference import dimension_names
from rlflow.ops.use import NO_USE, Use
from rlflow.runtime.input_domains import uses_of

DEFAULT_DIMENSION = 2
# Small, and never 0: integer division by zero kills the process inside onnxruntime.
_PLAIN_INTEGERS = (1, 5)
_MOST_ELEMENTS = 2**26  # half a gigabyte while it is drawn


def required_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """Return the graph inputs that the caller must feed: those without an initialiser of their name."""
    initialised = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initialised]


def symbolic_dimensions(model: ModelProto) -> list[str]:
    """Return the names of the symbolic dimensions of the required inputs, in order of appearance."""
    names = [
        dimension.dim_param
        for value in required_inputs(model)
        for dimension in value.type.tensor_type.shape.dim
        if dimension.dim_param
    ]
    return list(dict.fromkeys(names))


def dimensions_of(model: ModelProto, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return the sizes of dynamic dimensions by name (`dimension_names`), from whole shapes of inputs by name.

    Raises `InputError` for an input that the model does not have, for another rank, for a size that is not positive,
    not the declared one or beyond ONNX's 63 bits, and for a dimension that gets two sizes.
    """
    declared = {value.name: value.type.tensor_type.shape.dim for value in required_inputs(model)}
    called = {value.name: dimension_names(value) for value in required_inputs(model)}
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        if name not in declared:
            raise InputError(f"the model has no input {name!r}; it has: {', '.join(declared) or 'none'}")
        if len(shape) != len(declared[name]):
            raise InputError(f"input {name!r} has {len(declared[name])} dimensions, not {len(shape)}")
        for place, (size, dimension) in enumerate(zip(shape, declared[name], strict=True)):
            symbol = called[name][place]
            known = sizes.get(symbol, size) if symbol else dimension.dim_value
            if not 0 < size < 2**63 or size != known:
                wanted = known if known != size else "positive and below 2**63"
                raise InputError(f"dimension {place} of input {name!r} is {size}, it must be {wanted}")
            if symbol:
                sizes[symbol] = size
    return sizes


def draw_inputs(
    model: ModelProto,
    rng: np.random.Generator,
    dimensions: Mapping[str, int] | None = None,
    *,
    default_dimension: int = DEFAULT_DIMENSION,
    uses: Mapping[str, Use] | None = None,
) -> dict[str, np.ndarray]:
    """Draw one array for each required input of `model`, by name.

    The operators that read an input tell which values make sense (`rlflow.runtime.input_domains`, or `uses` by name):

    - the shape of a result is the one that the model declares for it;
    - what indexes a table is uniform over its rows, a class over its classes, a length over its steps;
    - a mask is 0/1 with a random prefix of ones along the last axis, so that no row is fully masked; so is an input
      with "mask" in its name;
    - bytes that are turned into floats, pixels and quantised numbers, are uniform over their type;
    - other integers are uniform in 1..4, booleans are fair;
    - floats are standard normal, as normalised images are, but uniform in a domain with two ends, log-normal beyond
      the end of a domain with one (positive where a Log or Sqrt reads them), and of either sign but not near zero where
      they divide.

    Dynamic dimensions take their size from `dimensions` by name; all others are `default_dimension`.

    Raises `InputError` for a name in `dimensions` that the model does not have, `RLFlowError` for an input that is no
    numeric tensor, has a negative dimension, or has more than 2**26 elements.
    """
    sizes = dict(dimensions or {})
    called = {name for value in required_inputs(model) for name in dimension_names(value)}
    if unknown := sorted(set(sizes) - called):
        known = ", ".join(symbolic_dimensions(model)) or "none"
        raise InputError(f"the model has no symbolic dimension {', '.join(unknown)}; it has: {known}")

    known_uses = uses_of(model) if uses is None else uses
    drawn = {}
    for value in required_inputs(model):
        use, shape = use_of(value.name, known_uses), _shape(value, sizes, default_dimension)
        if use.sizes is not None and shape == (len(use.sizes),):
            wanted = [d if isinstance(d, int) else sizes.get(d, default_dimension) for d in use.sizes]
            drawn[value.name] = np.array(wanted, _dtype(value))
        else:
            drawn[value.name] = _draw(use, shape, _dtype(value), rng)
    return drawn


def use_of(name: str, uses: Mapping[str, Use]) -> Use:
    """Return what an input is for. A mask may be read by operators that say nothing of its values; its name does."""
    use = uses.get(name, NO_USE)
    return use | Use(is_mask=True) if "mask" in name.lower() else use


def _draw(use: Use, shape: tuple[int, ...], dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(_values(use, shape, dtype, rng), dtype)  # numpy's arithmetic turns a 0-d array into a number


def _values(use: Use, shape: tuple[int, ...], dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    # The order matters: an index or a mask is more specific than the type that it has.
    if use.index is not None and dtype.kind != "b":
        return rng.integers(*use.index, shape, endpoint=True)
    if use.is_mask:
        return _prefix_mask(shape, rng)
    if use.is_complement:
        return 1 - _prefix_mask(shape, rng)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape)
    if dtype.kind == "f":
        return _real(use, shape, rng)
    if use.is_whole and dtype.itemsize == 1 and not use.is_divisor:
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, endpoint=True)
    return rng.integers(*_PLAIN_INTEGERS, shape)


def _real(use: Use, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    low, high = use.domain
    if math.isfinite(low) and math.isfinite(high):
        return rng.uniform(low, high, shape)
    # In a domain with one finite end, values lie e**(normal / 2), about 1, beyond that end.
    values = rng.standard_normal(shape)
    if math.isfinite(low):
        return low + np.exp(values / 2)
    if math.isfinite(high):
        return high - np.exp(values / 2)
    return rng.choice((-1.0, 1.0), shape) * np.exp(values / 2) if use.is_divisor else values


def _prefix_mask(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw a 0/1 array, int64, with at least one leading 1 in each row along the last axis."""
    if not shape or not shape[-1]:
        return np.ones(shape, np.int64)
    lengths = rng.integers(1, shape[-1] + 1, (*shape[:-1], 1))
    return np.less(np.arange(shape[-1]), lengths).astype(np.int64)


def _dtype(value: ValueInfoProto) -> np.dtype:
    variant = value.type.WhichOneof("value")
    if variant != "tensor_type":
        raise RLFlowError(f"input {value.name!r} is a {variant or 'value of no type'}; only tensors can be drawn")
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
        sizes.get(name, default) if name else dimension.dim_value
        for name, dimension in zip(dimension_names(value), value.type.tensor_type.shape.dim, strict=True)
    )
    if min(shape, default=0) < 0 or math.prod(shape) > _MOST_ELEMENTS:
        raise RLFlowError(f"input {value.name!r} has shape {list(shape)}; no values of this shape can be drawn")
    return shape
