"""One node of an operator, drawn: a shape, element types, attributes and inputs that its schema admits.

Most operators do with what is drawn for any: `attributes.py` and `inputs.py` hold what is particular to some. A draw
need not be valid, as ONNX Runtime refuses what is not. The same seed draws the same node in each mood, which
is the kind of numbers that it is fed with.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from onnx.defs import OpSchema

from rlflow.onnx_io.element_type import element_type

Value = Any
"""An array, a list of arrays (a sequence), or None: an input that is left out."""

MOODS = ("normal", "halves", "special", "below zero")
_SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 65504.0, -1e4, 1e-30, 0.5, 2.5)
_OPTION = OpSchema.FormalParameterOption
_ONNX_NAMES = {"float": "float32", "double": "float64"}
_MOST_DIMENSION = 4
_MOST_RANK = 5
_NUMPY_HAS = ("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64")
_COMMON, _COMMON_BYTES = ("float32", "int64"), ("uint8", "int8")
_UNDRAWN = ("complex64", "complex128")


class Draw:
    """A node in the making; `rng` draws its structure, `numbers` the values of its inputs."""

    def __init__(self, schema: OpSchema, seed: int, mood: str) -> None:
        self.schema = schema
        self.rng = np.random.default_rng(seed)
        self.numbers = np.random.default_rng([seed, MOODS.index(mood)])
        self.mood = mood
        self.types = {c.type_param_str: self._type(c.allowed_type_strs) for c in schema.type_constraints}
        self.shape = tuple(self.rng.integers(1, _MOST_DIMENSION + 1, self.rng.integers(0, _MOST_RANK + 1)).tolist())
        self.attributes: dict[str, Any] = {}
        self.outputs = self._outputs()

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def one_of(self, values: Sequence[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def count(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def counts(self, low: int, high: int, number: int) -> list[int]:
        return [self.count(low, high) for _ in range(number)]

    @property
    def rank(self) -> int:
        return len(self.shape)

    def axis(self) -> int:
        return self.count(-self.rank, max(self.rank - 1, 0))

    def chosen_axis(self, default: int = 0) -> int:
        """The axis that the attributes name."""
        return int(self.attributes.get("axis", default))

    def raise_rank(self, least: int = 1) -> None:
        """Let the draw have no fewer axes than this, and its axis be one of them."""
        if self.rank < least:
            self.shape = tuple(self.counts(1, _MOST_DIMENSION, least))
            if "axis" in self.attributes:
                self.attributes["axis"] = self.axis()

    def type_of(self, place: int) -> str:
        """The element type of an input, in numpy's name."""
        text = self.schema.inputs[min(place, len(self.schema.inputs) - 1)].type_str
        return self.types[text] if text in self.types else _plain(text)

    def default_inputs(self) -> list[Value]:
        """All of the same shape, but for dimensions that are broadcast."""
        inputs: list[Value] = []
        for place, formal in enumerate(self.schema.inputs):
            if formal.option == _OPTION.Variadic:
                inputs += [self.tensor(place) for _ in range(self.one_of((1, 2, 3, 10)))]
            else:
                inputs.append(None if formal.option == _OPTION.Optional and self.chance() else self.tensor(place))
        return inputs

    def tensor(self, place: int, shape: Sequence[int] | None = None) -> Value:
        """Values for an input; without a shape, of the draw's own, of which another input may lack some axes."""
        dtype = self.type_of(place)
        if shape is None:
            shape = self.shape
            if place and self.chance(0.4):
                shape = tuple(1 if self.chance(0.4) else d for d in shape)[self.count(0, self.rank) :]
        if dtype.startswith("seq "):
            return [self.values(shape, element_of(dtype)) for _ in range(self.count(1, 3))]
        return self.values(shape, element_of(dtype))

    def optional(self, place: int, shape: Sequence[int] | None = None) -> Value:
        return self.tensor(place, shape) if self.chance() else None

    def values(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        """Numbers in the mood of the draw; of a type that numpy has not, as float32."""
        if dtype == "string":
            return np.array([f"{n}" for n in self.numbers.integers(-3, 9, shape).flat], dtype=object).reshape(shape)
        if dtype == "bool":
            return np.asarray(self.numbers.random(shape) < 0.5)
        if np.dtype(fed_as(dtype)).kind in "iu":
            low = 0 if dtype.startswith("u") else -4 if self.mood != "special" else -7
            high = -1 if self.mood == "below zero" and low else 8
            return np.asarray(self.numbers.integers(low, high, shape)).astype(dtype)
        numbers = self.numbers.standard_normal(shape) * 2
        match self.mood:
            case "halves":
                numbers = np.round(numbers * 2) / 2
            case "special":
                numbers = np.where(self.numbers.random(shape) < 0.5, self.numbers.choice(_SPECIAL, shape), numbers)
            case "below zero":
                numbers = -np.abs(numbers)
        with np.errstate(over="ignore"):
            return np.asarray(numbers).astype(fed_as(dtype))

    def indices(self, shape: Sequence[int], size: int, dtype: str = "int64", low: int | None = None) -> np.ndarray:
        """Indices along an axis of this size, from its end as well."""
        return np.asarray(self.numbers.integers(-size if low is None else low, max(size, 1), shape)).astype(dtype)

    def _type(self, allowed: Sequence[str]) -> str:
        names = sorted({_plain(text) for text in allowed})
        drawn = [name for name in names if element_of(name) not in _UNDRAWN and "(" not in name]
        common = [name for name in ("float32", "int64") if name in drawn] or [
            n for n in ("uint8", "int8") if n in drawn
        ]
        if common and self.chance(0.4):
            return str(self.one_of([name for name in common if name in drawn]))
        return str(self.one_of(drawn or names))

    def _outputs(self) -> list[str]:
        formal = self.schema.outputs
        if formal and formal[-1].option == _OPTION.Variadic:
            return [f"o{place}" for place in range(self.one_of((1, 2, 3, 10)))]
        least = sum(f.option == _OPTION.Single for f in formal)
        names = [f"o{place}" for place in range(self.count(least, len(formal)) if self.chance() else least)]
        return [name if place < least or self.chance(0.8) else "" for place, name in enumerate(names)]


Inputs = Callable[[Draw], list[Value]]


def fed_as(dtype: str) -> str:
    """The type in which numpy holds values of an element type: float32 where it has none of that name."""
    return dtype if dtype in _NUMPY_HAS or dtype.removeprefix("u") in _NUMPY_HAS else "float32"


def integers(*values: int) -> np.ndarray:
    """Sizes, axes or indices as an input: one row of int64."""
    return np.array(values, np.int64)


def code_of(dtype: str) -> int:
    return element_type(dtype)


def random_types() -> list[int]:
    """Element types that an operator is asked to make."""
    return [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64]


def _plain(text: str) -> str:
    """`tensor(float)` as numpy names it, `seq(tensor(float))` with "seq " in front; all else as it is."""
    name = re.sub(r"tensor\((\w+)\)", lambda found: _ONNX_NAMES.get(found[1], found[1]), text)
    return re.sub(r"^(seq|optional)\((\w+)\)$", r"\1 \2", name)


def element_of(dtype: str) -> str:
    """The element type of a tensor, or of those in a sequence or an optional."""
    return dtype.rpartition(" ")[2]


def schemas() -> dict[str, list[OpSchema]]:
    """All schemas of ai.onnx, by operator, in the order of their opsets."""
    found: dict[str, list[OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            found.setdefault(schema.name, []).append(schema)
    return {name: sorted(found[name], key=lambda s: s.since_version) for name in sorted(found)}
