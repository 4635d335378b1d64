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
    """One output of one node."""

    node: int
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which nobody needs here


class Payload(Protocol):
    """What only the ONNX boundary understands: a weight's data or an opaque node's original text.

    `digest` identifies the content across processes.
    """

    @property
    def digest(self) -> str: ...


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operator application, or a leaf (`Input`, `Weight`).

    `types` and `names` have one entry an output; a type of None is a value that is no tensor (a sequence, an
    optional) or of which nothing is known. Names are hints for export and never part of a graph's identity.
    `constant` says that the value is known when the model is loaded: it costs nothing at run time.
    `label` is the node's own name in the model that it came from, a hint as well, and `remarks` are what else that
    says of the node for people and tools, which belongs to the ONNX boundary.
    `signature` is a 64-bit digest of everything but the operands, names, label and remarks.
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
