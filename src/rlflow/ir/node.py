"""A node of the computation graph, and how nodes name each other's results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple, Protocol

from rlflow.ir.tensor_type import TensorType

INPUT = "Input"
WEIGHT = "Weight"
LEAVES = frozenset({INPUT, WEIGHT})

AttributeValue = int | float | str | bytes | tuple["AttributeValue", ...]
Attributes = Mapping[str, AttributeValue]


class Ref(NamedTuple):
    """A value: one output of one node."""

    node: int
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which nobody needs here


class Payload(Protocol):
    """Content that only the ONNX boundary understands: a weight's data, or the original text of an opaque node.

    `digest` identifies the content across processes.
    """

    @property
    def digest(self) -> str: ...


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operator application, or a leaf (`Input`, `Weight`).

    - `types`, `names`: one entry an output. A type of None stands for a value that is no tensor (a sequence, an
      optional) or of which nothing is known. Names are hints for export and never part of a graph's identity.
    - `constant`: the value is known when the model is loaded, and costs nothing at run time.
    - `payload`: the data of a weight, or the text of a node that is carried verbatim (opaque).
    - `label`: the node's own name in the model that it came from, a hint as well.
    - `remarks`: further notes of that model for people and tools, which belong to the ONNX boundary.
    - `sources`: the ids of the nodes that it reads, each once, in the order of its operands.
    - `signature`: a digest of everything but operands, names, label and remarks; it fits into an int64.
    """

    op: str
    inputs: tuple[Ref | None, ...]
    attributes: Attributes
    types: tuple[TensorType | None, ...]
    names: tuple[str, ...]
    constant: bool = False
    payload: Payload | None = None
    signature: int = 0
    sources: tuple[int, ...] = field(default=())
    label: str = ""
    remarks: object = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(dict.fromkeys(r.node for r in self.inputs if r is not None)))
        if not self.signature:
            object.__setattr__(self, "signature", _signature(self))

    @property
    def is_opaque(self) -> bool:
        return self.payload is not None and self.op not in LEAVES

    def with_inputs(self, inputs: tuple[Ref | None, ...]) -> Node:
        return self._copy(inputs, self.names)

    def with_names(self, names: tuple[str, ...]) -> Node:
        return self._copy(self.inputs, names)

    def _copy(self, inputs: tuple[Ref | None, ...], names: tuple[str, ...]) -> Node:
        return Node(
            self.op,
            inputs,
            self.attributes,
            self.types,
            names,
            self.constant,
            self.payload,
            self.signature,
            label=self.label,
            remarks=self.remarks,
        )


def _signature(node: Node) -> int:
    content = (
        node.op,
        sorted(node.attributes.items()),
        tuple(str(t) for t in node.types),
        tuple(r is None for r in node.inputs),
        node.payload.digest if node.payload is not None else "",
    )
    return int.from_bytes(blake2b(repr(content).encode(), digest_size=8).digest(), "little") >> 3
