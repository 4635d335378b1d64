"""The definition of an operator: all that the library knows of it, in one place.

    Operator(
        "Sqrt",
        infer=...,      # types of the operands -> types of the results
        evaluate=...,   # its meaning, over floats and over the finite field alike
        since=6,
        arity=(1, 1),
        flops=elementwise_flops(1),
        traits=Traits(elementwise=True, fusion=Fusion.POINTWISE, uses=(defined_on(0.0, inf),)),
    )

`traits` are what cost models, comparisons and the generation of rules ask (`ops/traits.py`), `onnx` is how a model
writes the operator (`ops/onnx_form.py`). So a new operator is an entry in the file of its family and a test.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from rlflow.errors import TypeInferenceError
from rlflow.ir.dimension import is_at_most, plus
from rlflow.ir.node import Attributes, AttributeValue
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.algebra import Algebra
from rlflow.ops.domain import Array, Domain
from rlflow.ops.onnx_form import PLAIN, OnnxForm
from rlflow.ops.traits import Traits

Types = Sequence[TensorType]
Infer = Callable[[Attributes, Types], tuple[TensorType, ...]]
Evaluate = Callable[[Domain, Attributes, Sequence[Array]], tuple[Array, ...]]
Flops = Callable[[Attributes, Types, Types], int]


def elementwise_flops(per_element: int) -> Flops:
    """Return the work of an operator that does so many operations for each element of its results."""
    return lambda attributes, inputs, outputs: per_element * sum(t.elements for t in outputs)


def no_flops(attributes: Attributes, inputs: Types, outputs: Types) -> int:
    """Return the work of an operator that computes nothing."""
    return 0


@dataclass(frozen=True)
class Operator:
    """An operator in its canonical form, in which parameters (shapes, axes, sizes) are attributes.

    `name` carries the domain, but for ai.onnx: com.microsoft.FusedMatMul. `since` is the first version of the domain
    whose operator means what is written here; `arity` bounds the operands; `defaults` are filled in at import, so that
    equal nodes look equal. A rule that writes the operator must name the `required` attributes, which have no default,
    and may name the `optional` ones. `algebra` is what it asks of elements. `attribute_groups` are attributes that say
    one thing together, by what they say: rules are generalised over them.
    """

    name: str
    infer: Infer
    evaluate: Evaluate
    since: int
    arity: tuple[int, int]
    traits: Traits
    flops: Flops = no_flops
    defaults: Mapping[str, AttributeValue] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    commutative: bool = False
    algebra: Algebra = Algebra.NUMBERS
    onnx: OnnxForm = PLAIN
    attribute_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def domain(self) -> str:
        """The domain of the name, empty for ai.onnx."""
        return self.name.rpartition(".")[0]

    @property
    def op_type(self) -> str:
        """The name within its domain, as ONNX calls it."""
        return self.name.rpartition(".")[2]


def only(attributes: Attributes, names: Collection[str], operator: str) -> None:
    """Raise `TypeInferenceError` if there are attributes besides these: what they change is not understood."""
    unknown = sorted(attributes.keys() - names)
    if unknown:
        raise TypeInferenceError(f"{operator}: the attributes {unknown} are not understood")


def same_dtype(types: Types, operator: str) -> str:
    """Return the one element type of all operands."""
    dtypes = {t.dtype for t in types}
    if len(dtypes) != 1:
        raise TypeInferenceError(f"{operator}: operands of different element types {sorted(dtypes)}")
    return dtypes.pop()


def shape_of(t: TensorType, operator: str) -> tuple[Dimension, ...]:
    """Return the shape of an operand, whose rank must be known."""
    if t.shape is None:
        raise TypeInferenceError(f"{operator}: an operand of unknown rank")
    return t.shape


def same_dimension(a: Dimension, b: Dimension, operator: str) -> Dimension:
    """The dimension that both must be; a number tells more than a symbol, a symbol more than nothing."""
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise TypeInferenceError(f"{operator}: dimensions {a} and {b} must be equal")
    if isinstance(a, int):
        return a
    if isinstance(b, int) or a is None:
        return b
    return a if b is None or a == b else None


def broadcast(shapes: Sequence[tuple[Dimension, ...]], operator: str) -> tuple[Dimension, ...]:
    """ONNX's multidirectional broadcasting. Two different symbols may be 1 at run time: their result is
    unknown.
    """
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(_broadcast_dimension(set(column), operator) for column in zip(*padded, strict=True))


def _broadcast_dimension(dimensions: set[Dimension], operator: str) -> Dimension:
    proper = dimensions - {1}
    if not proper:
        return 1
    numbers = [d for d in proper if isinstance(d, int)]
    if len(numbers) > 1:
        raise TypeInferenceError(f"{operator}: dimensions {sorted(numbers)} do not broadcast")
    if numbers:
        return numbers[0]
    if len(proper) == 1:
        return proper.pop()
    # min(n, 64) fits n only where it is n: there, 64 elements are spread over none but 64
    return next((a for a in proper if all(a == b or is_at_most(b, a) for b in proper)), None)


def normal_axis(axis: AttributeValue, rank: int, operator: str) -> int:
    """The axis counted from the front."""
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise TypeInferenceError(f"{operator}: axis {axis!r} of a tensor of rank {rank}")
    return axis % rank


def ints(value: AttributeValue) -> tuple[int, ...]:
    """An attribute that is a list of integers."""
    if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
        raise TypeInferenceError(f"expected a list of integers, got {value!r}")
    return value  # type: ignore[return-value]


def static_size(shape: Sequence[Dimension]) -> int | None:
    """Return the number of elements, None where a dimension is not known."""
    return prod(d for d in shape if isinstance(d, int)) if all(isinstance(d, int) for d in shape) else None


def product(dimensions: Sequence[Dimension]) -> Dimension:
    """The dimension that several make together; a symbol survives beside ones."""
    dynamic = [d for d in dimensions if not isinstance(d, int)]
    numbers = prod(d for d in dimensions if isinstance(d, int))
    if not dynamic or numbers == 0:
        return numbers
    return dynamic[0] if numbers == len(dynamic) == 1 else None


def total(dimensions: Sequence[Dimension]) -> Dimension:
    """The dimension that several make end to end; a symbol grows by numbers."""
    dynamic = [d for d in dimensions if not isinstance(d, int)]
    numbers = sum(d for d in dimensions if isinstance(d, int))
    if not dynamic:
        return numbers
    (symbol, *others) = dynamic
    return plus(symbol, numbers) if isinstance(symbol, str) and not others else None
