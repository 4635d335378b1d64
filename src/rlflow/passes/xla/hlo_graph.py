"""An HLO graph as a graph of `rlflow.ir`, so that the encoders of ONNX graphs read it as well.

    %add.3 = f32[4,8] add(%dot.1, %broadcast.2)     Node("add", (Ref(7), Ref(9)), {}, (float32[4, 8],), ("add.3",))

The entry computation becomes the graph; a computation that it calls (a loop's body, a sort's comparator) is not looked
into. Parameters are `Input` nodes, constants `Weight` nodes. Tuples have no nodes: an operation that returns one has
several outputs, one a leaf of the tuple, and one that reads one has them as operands.

Invariant: operations keep XLA's order and their opcodes are the graph's operators.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from jaxlib import _hlo  # type: ignore[attr-defined]  # it comes without stubs

from rlflow.errors import GraphError
from rlflow.ir.graph import Graph, Header, make_graph
from rlflow.ir.node import INPUT, WEIGHT, AttributeValue, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.passes.xla.facts import opcode_name

OPSET = 18
"""The header of a graph asks for one; no operator here belongs to it."""

_DTYPES: Mapping[str, str] = {
    "pred": "bool",
    "bf16": "bfloat16",
    "c64": "complex64",
    "c128": "complex128",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"s{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
_SHAPE = re.compile(r"(\w+)\[([\d,<=]*)\]")
_ATTRIBUTE = re.compile(r"(\w+)=(\{[^{}]*\}|[^,\s{}]+)")
_ENTRY = re.compile(r"^ENTRY %?([\w.\-]+).*?^  ROOT %?([\w.\-]+) =", re.MULTILINE | re.DOTALL)
_REMARKS = {"metadata", "backend_config", "frontend_attributes"}
_NAME = re.compile(r"%[\w.\-]+")


@dataclass(frozen=True)
class _Literal:
    """The content of a constant as far as XLA prints it, which elides large ones."""

    digest: str


def graph_of(module: _hlo.HloModule) -> Graph:
    """Return the entry computation of a module."""
    nodes: dict[int, Node] = {}
    values: dict[str, tuple[Ref, ...]] = {}
    types: dict[str, _Type] = {}
    parameters: dict[int, int] = {}
    computation, root = _entry(module)
    for instruction in computation.instructions():
        line = _Line.of(instruction)
        name, types[instruction.name] = instruction.name, line.type
        operands = [operand.name for operand in instruction.operands()]
        if line.opcode == "tuple":
            values[name] = tuple(ref for operand in operands for ref in values[operand])
        elif line.opcode == "get-tuple-element":
            start, stop = types[operands[0]].leaves_of(int(str(line.attributes["index"])))
            values[name] = values[operands[0]][start:stop]
        else:
            identifier = len(nodes)
            nodes[identifier] = _node(line, name, [ref for operand in operands for ref in values[operand]])
            values[name] = tuple(Ref(identifier, index) for index in range(len(line.type.leaves)))
            if line.opcode == "parameter":
                parameters[int(line.content)] = identifier
    inputs = [parameters[number] for number in sorted(parameters)]
    outputs = values[root]
    return make_graph(nodes, inputs, outputs, [f"output{i}" for i in range(len(outputs))], Header(OPSET))


def _entry(module: _hlo.HloModule) -> tuple[_hlo.HloComputation, str]:
    """Return the entry computation and the name of its root, which the text of a module alone tells."""
    found = _ENTRY.search(module.to_string())
    for computation in module.computations():
        if found and computation.name == found[1]:
            return computation, found[2]
    raise GraphError("the HLO module has no entry computation")


def _node(line: _Line, name: str, operands: Sequence[Ref]) -> Node:
    leaves = line.type.leaves
    names = (name,) if len(leaves) == 1 else tuple(f"{name}.{index}" for index in range(len(leaves)))
    if line.opcode == "parameter":
        return Node(INPUT, (), {}, leaves, names)
    if line.opcode == "constant":
        literal = _Literal(blake2b(line.content.encode(), digest_size=16).hexdigest())
        return Node(WEIGHT, (), {}, leaves, names, constant=True, payload=literal)
    return Node(line.opcode, tuple(operands), line.attributes, leaves, names)


@dataclass(frozen=True)
class _Type:
    """The type of an instruction: its tensors in order, and how many of them belong to each element of a tuple."""

    leaves: tuple[TensorType | None, ...]
    widths: tuple[int, ...]

    def leaves_of(self, element: int) -> tuple[int, int]:
        start = sum(self.widths[:element])
        return start, start + self.widths[element]


@dataclass(frozen=True)
class _Line:
    """An instruction as it is written: %name = type opcode(content), attributes."""

    type: _Type
    opcode: str
    content: str
    attributes: Mapping[str, AttributeValue]

    @staticmethod
    def of(instruction: _hlo.HloInstruction) -> _Line:
        right = instruction.to_string().partition(" = ")[2]
        end = _end_of(right, 0) if right.startswith("(") else right.index(" ")
        opcode = opcode_name(instruction.opcode)
        opening = right.index("(", end)
        closing = _end_of(right, opening)
        attributes = _attributes(right[closing:])
        return _Line(_type(right[:end].strip()), opcode, right[opening + 1 : closing - 1], attributes)


def _attributes(text: str) -> dict[str, AttributeValue]:
    """Read `, key=value` pairs; names of computations say nothing, as they change with every pass."""
    return {key: _NAME.sub("%", value) for key, value in _ATTRIBUTE.findall(text) if key not in _REMARKS}


def _type(text: str) -> _Type:
    if not text.startswith("("):
        return _Type((_tensor(text),), (1,))
    elements = [_type(element) for element in _split(text[1:-1])]
    leaves = tuple(leaf for element in elements for leaf in element.leaves)
    return _Type(leaves, tuple(len(element.leaves) for element in elements))


def _tensor(text: str) -> TensorType | None:
    found = _SHAPE.match(text)
    if not found:
        return None  # a token
    dimensions = tuple(int(dimension.lstrip("<=")) for dimension in found[2].split(",") if dimension)
    return TensorType(_DTYPES.get(found[1], found[1]), dimensions)


def _split(text: str) -> list[str]:
    """Split a list at its own commas, not at those of shapes, layouts and inner tuples."""
    parts, depth, start = [], 0, 0
    text = re.sub(r"/\*.*?\*/", "", text)
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def _end_of(text: str, opening: int) -> int:
    """Return the place behind the bracket that closes the one at `opening`."""
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place + 1
    raise GraphError(f"unbalanced brackets in the HLO instruction {text[:80]!r}")
