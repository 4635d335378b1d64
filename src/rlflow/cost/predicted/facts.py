"""The facts of one node on which its time depends: sizes, operations, and the runs in which it moves memory.

    reader = FactReader({"batch": 8})
    node = graph.nodes[identifier]
    reader.facts(graph, node, node.inputs).product       # Product(batch=1, m=128, n=768, k=768)

The kind of a node follows from its operator's traits and attributes, never from its name, so that an operator that is
added to the library has a kind from the first day.

Invariant: all figures are whole numbers that follow from types and attributes alone, so that no library of mathematics
and no order of operands can change them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod

from rlflow.ir.dimension import size_of
from rlflow.ir.graph import Graph
from rlflow.ir.node import Attributes, Node, Ref
from rlflow.ir.tensor_type import TensorType, item_size
from rlflow.ops.registry import NO_TRAITS, OPERATORS, TRAITS
from rlflow.ops.traits import Fusion

Shape = tuple[int, ...]

_MAX_REMEMBERED = 200_000
BLOCK_CHANNELS = 16
"""Channels that ONNX Runtime's blocked layout keeps together on AVX-512; on AVX2 it is 8 (`runtime/blocks.py`)."""
_ALIGNED = 4  # channels that can be reordered
_TILE_ROWS, _TILE_COLUMNS = 6, 16  # of a product, which its kernel computes at once


class Kind(StrEnum):
    """The kinds of nodes by what they do to memory and arithmetic."""

    PRODUCT = "product"
    CONVOLUTION = "convolution"
    WINDOW = "window"
    """A pool: a window slides over an image."""
    ELEMENTWISE = "elementwise"
    ROWS = "rows"
    """Adds up along axes: reductions, normalisations, softmax."""
    MOVEMENT = "movement"
    VIEW = "view"
    OTHER = "other"
    """Nothing is known of it but its operands and results."""


@dataclass(frozen=True, slots=True)
class Product:
    """`batch` products of (m, k) by (k, n) matrices; a matrix that serves the whole batch makes it one product."""

    batch: int
    m: int
    n: int
    k: int

    @property
    def padded_flops(self) -> int:
        """The operations where the result is padded to whole tiles of the kernel."""
        rows, columns = _padded(self.m, _TILE_ROWS), _padded(self.n, _TILE_COLUMNS)
        return 2 * self.batch * rows * columns * self.k


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution; `positions` are those of its results in one image, `kernel` those of its window, `block` the
    channels that the processor's blocked layout keeps together.
    """

    batch: int
    channels_in: int
    channels_out: int
    groups: int
    kernel: int
    stride: int
    dilation: int
    positions: int
    block: int = BLOCK_CHANNELS

    @property
    def is_depthwise(self) -> bool:
        return 1 < self.groups == self.channels_in

    @property
    def is_blocked(self) -> bool:
        """True if ONNX Runtime computes it in its blocked layout, filters being constant (`cost/blocked_layout.py`)."""
        read, made = self.channels_in // self.groups, self.channels_out // self.groups
        if self.groups == 1:
            return read < self.block or read % _ALIGNED == 0
        if read == made == 1:
            return self.channels_out % _ALIGNED == 0
        return read % self.block == made % self.block == 0

    @property
    def columns(self) -> int:
        """The elements of the image laid out by windows, which a convolution becomes a product with."""
        return self.batch * self.positions * self.kernel * self.channels_in

    @property
    def padded_flops(self) -> int:
        """The operations as one product for each group, where its result is padded to whole tiles of the kernel."""
        read, made = self.channels_in // self.groups, self.channels_out // self.groups
        product = Product(self.batch * self.groups, made, self.positions, read * self.kernel)
        return product.padded_flops


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Shapes and bytes of operands and results, and what the node's kind adds.

    - `flops`: floating-point operations; 0 of a node that is not understood.
    - `run`: elements that lie together before and after a movement; 0 of other kinds.
    - `row`: elements along which a node of kind "rows" adds up; 0 of other kinds.
    - `inexact`, `exponential`: the operator's traits, which tell costly functions.
    - `whole`: True where whole numbers stand for floats.
    """

    op: str
    kind: Kind
    commutative: bool
    operands: tuple[Shape, ...]
    operand_bytes: tuple[int, ...]
    results: tuple[Shape, ...]
    result_bytes: tuple[int, ...]
    flops: int = 0
    product: Product | None = None
    convolution: Convolution | None = None
    run: int = 0
    row: int = 0
    inexact: bool = False
    exponential: bool = False
    whole: bool = False

    def of_bytes(self, result_bytes: tuple[int, ...]) -> NodeFacts:
        """Return the facts of the kernel that reads bytes in the place of floats, and writes so many."""
        operand_bytes = tuple(map(prod, self.operands))
        return replace(
            self, op=f"{self.op} of bytes", operand_bytes=operand_bytes, result_bytes=result_bytes, whole=True
        )

    @property
    def elements(self) -> int:
        """The elements of all results."""
        return sum(map(prod, self.results))

    @property
    def moved_bytes(self) -> int:
        """The bytes of all operands and results."""
        return sum(self.operand_bytes) + sum(self.result_bytes)


class FactReader:
    """Reads the facts of nodes, each once; dynamic dimensions have the sizes given, or 1."""

    def __init__(self, dimensions: Mapping[str, int] | None = None, block: int = BLOCK_CHANNELS) -> None:
        self._dimensions, self._block = dict(dimensions or {}), block
        self._known: dict[tuple[Node, int], NodeFacts] = {}

    def facts(self, graph: Graph, node: Node, operands: Sequence[Ref | None]) -> NodeFacts:
        """Return the facts of a node with these operands, which are its own or one more.

        A node object always has operands of the same types.
        """
        known = self._known.get((node, len(operands)))
        if known is None:
            types = [None if ref is None else self.sized(graph.type_of(ref)) for ref in operands]
            known = _facts(node, types, [self.sized(t) for t in node.types], self._block)
            if len(self._known) >= _MAX_REMEMBERED:
                self._known.clear()
            self._known[node, len(operands)] = known
        return known

    def sized(self, tensor_type: TensorType | None) -> TensorType:
        """Return the type with a size for every dimension; one of which nothing is known has no bytes."""
        if tensor_type is None or tensor_type.shape is None:
            return TensorType("unknown" if tensor_type is None else tensor_type.dtype, (0,))
        if tensor_type.is_static:
            return tensor_type
        sizes = (size_of(dimension, self._dimensions) for dimension in tensor_type.shape)
        return TensorType(tensor_type.dtype, tuple(1 if size is None else size for size in sizes))


def _facts(node: Node, operands: Sequence[TensorType | None], results: Sequence[TensorType], block: int) -> NodeFacts:
    given = [t for t in operands if t is not None]
    kind, traits = _kind_of(node), TRAITS.get(node.op, NO_TRAITS)
    operator = None if node.is_opaque else OPERATORS.get(node.op)
    inputs, outputs = [_shape(t) for t in given], [_shape(t) for t in results]
    return NodeFacts(
        node.op,
        kind,
        operator is not None and operator.commutative,
        tuple(inputs),
        tuple(prod(s) * item_size(t.dtype) for s, t in zip(inputs, given, strict=True)),
        tuple(outputs),
        tuple(prod(s) * item_size(t.dtype) for s, t in zip(outputs, results, strict=True)),
        operator.flops(node.attributes, given, results) if operator is not None else 0,
        _product(node.attributes, inputs, outputs[0]) if kind == Kind.PRODUCT else None,
        _convolution(node.attributes, inputs, outputs[0], block) if kind == Kind.CONVOLUTION else None,
        _run(node.attributes, inputs[:1] if traits.selects else inputs, outputs) if kind == Kind.MOVEMENT else 0,
        _row(node.attributes, inputs[0], outputs[0]) if kind == Kind.ROWS and inputs else 0,
        traits.inexact,
        traits.exponential,
    )


def _kind_of(node: Node) -> Kind:
    traits = TRAITS.get(node.op, NO_TRAITS)
    if node.is_opaque or node.op not in OPERATORS:
        return Kind.ELEMENTWISE if traits.elementwise else Kind.OTHER
    if traits.view:
        return Kind.VIEW
    if traits.windowed:
        return Kind.CONVOLUTION if "group" in node.attributes else Kind.WINDOW
    if Fusion.PRODUCT in traits.fusion or "transA" in node.attributes:
        return Kind.PRODUCT
    if traits.elementwise:
        return Kind.ELEMENTWISE
    if traits.accumulates:
        return Kind.ROWS
    return Kind.OTHER if traits.typed_like_operand else Kind.MOVEMENT


def _shape(tensor_type: TensorType) -> Shape:
    return tuple(d for d in tensor_type.shape or () if isinstance(d, int))


def _product(attributes: Attributes, operands: Sequence[Shape], result: Shape) -> Product:
    a, b = operands[:2]
    k = a[-2] if attributes.get("transA") and len(a) > 1 else a[-1]
    n = (b[-2] if attributes.get("transB") else b[-1]) if len(b) > 1 else 1
    rows = prod(result) // max(n, 1)
    m = result[-2] if len(b) > 2 and len(result) > 1 else rows
    return Product(rows // max(m, 1), m, n, k)


def _convolution(attributes: Attributes, operands: Sequence[Shape], result: Shape, block: int) -> Convolution:
    weight, groups = operands[1], attributes["group"]
    assert isinstance(groups, int)
    strides, dilations = (_ints(attributes.get(name, ())) for name in ("strides", "dilations"))
    return Convolution(
        batch=result[0],
        channels_in=weight[1] * groups,
        channels_out=weight[0],
        groups=groups,
        kernel=prod(weight[2:]),
        stride=prod(strides),
        dilation=prod(dilations),
        positions=prod(result[2:]),
        block=block,
    )


def _ints(value: object) -> Shape:
    return tuple(v for v in value if isinstance(v, int)) if isinstance(value, tuple) else ()


def _run(attributes: Attributes, operands: Sequence[Shape], results: Sequence[Shape]) -> int:
    """Return the elements that stay together, in the worst of the operands and results."""
    permutation = _ints(attributes.get("perm", ()))
    if permutation and operands:
        return _kept_run(permutation, operands[0])
    pairs = [(a, b) for a in operands for b in results] or [((1,), (1,))]
    return min(_common_run(a, b) for a, b in pairs)


def _kept_run(permutation: Shape, shape: Shape) -> int:
    """Return the product of the last dimensions that a transposition leaves in place."""
    run = 1
    for axis in range(len(shape) - 1, -1, -1):
        if permutation[axis] != axis:
            break
        run *= shape[axis]
    return run


def _common_run(a: Shape, b: Shape) -> int:
    """Return the elements that lie together in a tensor and in a part of it: equal dimensions, from the last one on,
    and the smaller of the first that differ."""
    run = 1
    for first, second in zip(reversed(a), reversed(b), strict=False):
        run *= min(first, second)
        if first != second:
            break
    return run


def _row(attributes: Attributes, operand: Shape, result: Shape) -> int:
    if prod(result) < prod(operand):
        return prod(operand) // max(prod(result), 1)
    axis = attributes.get("axis", -1)
    return operand[axis] if isinstance(axis, int) and -len(operand) <= axis < len(operand) else prod(operand[1:])


def _padded(size: int, tile: int) -> int:
    return -(-size // tile) * tile
