"""A graph as text that people can read and compare, and that can be read back.

One line a node, with its operands, attributes, and the name and type of each output:

    opset 17
    %0 = Input "x": float32[batch, 4]
    %1 = Weight @5d41402abc "w": float32[4, 8] constant
    %2 = MatMul(%0, %1) "m": float32[batch, 8]
    %3 = Split(%2) {axis=-1, split=(4, 4)} "a": float32[batch, 4], "b": float32[batch, 4]
    inputs %0
    outputs "a" = %3, "b" = %3.1

Domains beside ai.onnx follow the opset, as in domain "com.microsoft" 1; "?" is an operand, dimension or type that is
absent or not known. Weights and opaque nodes appear by the digest of their content, which stays in the model.

Invariant: nodes are numbered in the order in which they are computed, so that graphs of the same structure have the
same text but for names, and `from_text(to_text(graph), graph)` has the structural hash of `graph`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from rlflow.errors import GraphError
from rlflow.ir.graph import Graph, Header, make_graph
from rlflow.ir.node import LEAVES, AttributeValue, Node, Payload, Ref
from rlflow.ir.tensor_type import Dimension, TensorType

_T = TypeVar("_T")
# A quoted string, a punctuation mark, or a word; `_BARE_SYMBOL` needs no quotes and does not look like a number.
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[][(){},:=@%?]|[^][(){},:=@%?\s"]+)')
_BARE_SYMBOL = re.compile(r"[^][(){},:=@%?\s\"\d-][^][(){},:=@%?\s\"]*")


@dataclass(frozen=True, eq=False)
class UnknownPayload:
    """Content of which the text gives only the digest.

    A graph that holds it can be matched, rewritten and hashed, but not exported.
    """

    digest: str

    def array(self) -> np.ndarray:
        """Raise `GraphError`, always: there are no values."""
        raise GraphError(
            f"the values of weight {self.digest} are not in the text: read it with `like`, a graph of the same model"
        )


def to_text(graph: Graph) -> str:
    """Return the text form, ending in a newline."""
    places = {identifier: place for place, identifier in enumerate(_listing(graph))}
    lines = [f"opset {graph.header.opset}"]
    lines += [f"domain {_quoted(d)} {version}" for d, version in sorted(graph.header.domains.items())]
    lines += [_node_line(identifier, graph.nodes[identifier], places) for identifier in places]
    lines.append(" ".join(["inputs", *(f"%{places[i]}" for i in graph.inputs)]))
    outputs = (
        f"{_quoted(name)} = {_ref(ref, places)}" for name, ref in zip(graph.output_names, graph.outputs, strict=True)
    )
    return "\n".join([*lines, "outputs " + ", ".join(outputs)]) + "\n"


def from_text(text: str, like: Graph | None = None) -> Graph:
    """Read the graph that `to_text` wrote; nodes are numbered as in the text.

    Weights, opaque nodes and the header are taken from `like`, a graph of the same model; without it they are known by
    their digest alone. Raises `GraphError` naming the first line that cannot be read.
    """
    payloads = {} if like is None else {n.payload.digest: n.payload for n in like.nodes.values() if n.payload}
    reader = _Reader(payloads)
    for number, line in enumerate(text.split("\n"), 1):
        try:
            reader.line(_Tokens(line))
        except (GraphError, KeyError, ValueError) as error:
            raise GraphError(f"line {number} of the graph cannot be read ({error}): {line.strip()[:80]}") from None
    return reader.graph(None if like is None else like.header)


def _listing(graph: Graph) -> list[int]:
    """List all nodes, operands first: the inputs, then the rest as the outputs need them."""
    listed = dict.fromkeys(graph.inputs)  # a dict as an ordered set
    for ref in graph.outputs:
        stack = [ref.node]
        while stack:
            waiting = [s for s in graph.nodes[stack[-1]].sources if s not in listed]
            if waiting:
                stack.extend(reversed(waiting))
            else:
                listed.setdefault(stack.pop())
    return list(listed)


def _node_line(identifier: int, node: Node, places: Mapping[int, int]) -> str:
    parts = [f"%{places[identifier]} = {node.op}"]
    if node.op not in LEAVES:
        operands = ("?" if ref is None else _ref(ref, places) for ref in node.inputs)
        parts[0] += f"({', '.join(operands)})"
    if node.attributes:
        attributes = (f"{name}={_value(value)}" for name, value in sorted(node.attributes.items()))
        parts.append("{" + ", ".join(attributes) + "}")
    if node.payload is not None:
        parts.append(f"@{node.payload.digest}")
    results = (f"{_quoted(name)}: {_type(type_)}" for name, type_ in zip(node.names, node.types, strict=True))
    parts.append(", ".join(results))
    if node.constant:
        parts.append("constant")
    if node.label:
        parts.append(f"label {_quoted(node.label)}")
    return " ".join(parts)


def _ref(ref: Ref, places: Mapping[int, int]) -> str:
    return f"%{places[ref.node]}" + (f".{ref.index}" if ref.index else "")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _value(value: AttributeValue) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_value, value))})"
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _type(tensor_type: TensorType | None) -> str:
    if tensor_type is None:
        return "?"
    if tensor_type.shape is None:
        return tensor_type.dtype
    return f"{tensor_type.dtype}[{', '.join(map(_dimension, tensor_type.shape))}]"


def _dimension(dimension: Dimension) -> str:
    if dimension is None:
        return "?"
    if isinstance(dimension, int) or _BARE_SYMBOL.fullmatch(dimension):
        return str(dimension)
    return _quoted(dimension)


class _Tokens:
    """A line of text, cut into words, quoted strings and punctuation, and read from left to right."""

    def __init__(self, line: str) -> None:
        self._tokens = _TOKEN.findall(line)
        self._next = 0

    @property
    def ahead(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.ahead
        if not token or (expected and token != expected):
            raise GraphError(f"expected {expected or 'more'!r}, found {token or 'the end'!r}")
        self._next += 1
        return token

    def skip(self, token: str) -> bool:
        if self.ahead != token:
            return False
        self._next += 1
        return True

    def listed(self, item: Callable[[], _T], end: str) -> list[_T]:
        """Read items with commas between them, up to the token `end`, or as long as commas follow if that is ""."""
        items: list[_T] = []
        while self.ahead != end:
            items.append(item())
            if not self.skip(","):
                break
        if end:
            self.take(end)
        return items

    def text(self) -> str:
        return str(json.loads(self.take()))


class _Reader:
    """A graph while it is read line by line: the nodes so far, and the interface from the first and last lines."""

    def __init__(self, payloads: Mapping[str, Payload]) -> None:
        self.payloads = payloads
        self.nodes: dict[int, Node] = {}
        self.inputs: list[int] = []
        self.outputs: list[tuple[str, Ref]] = []
        self.opset: int | None = None
        self.domains: dict[str, int] = {}

    def line(self, tokens: _Tokens) -> None:
        if tokens.ahead == "%":
            identifier, node = self._node(tokens)
            self.nodes[identifier] = node
        elif tokens.skip("opset"):
            self.opset = int(tokens.take())
        elif tokens.skip("domain"):
            domain = tokens.text()
            self.domains[domain] = int(tokens.take())
        elif tokens.skip("inputs"):
            while tokens.ahead:
                self.inputs.append(self._ref(tokens).node)
        elif tokens.skip("outputs"):
            self.outputs = tokens.listed(lambda: self._output(tokens), "")
        if tokens.ahead:
            raise GraphError(f"unexpected {tokens.ahead!r}")

    def graph(self, header: Header | None) -> Graph:
        if self.opset is None or not self.outputs:
            raise GraphError('the text is no graph: it needs a line "opset ..." and a line "outputs ..."')
        if header is not None and header.opset != self.opset:
            raise GraphError(f"the text is of opset {self.opset}, but the graph `like` is of opset {header.opset}")
        names, refs = zip(*self.outputs, strict=True)
        return make_graph(self.nodes, self.inputs, refs, names, header or Header(self.opset, domains=self.domains))

    def _ref(self, tokens: _Tokens) -> Ref:
        # Operands come first in the text, so that a graph that can be read has no cycle.
        tokens.take("%")
        node, _, index = tokens.take().partition(".")
        ref = Ref(int(node), int(index or 0))
        if ref.node not in self.nodes or ref.index >= len(self.nodes[ref.node].types):
            raise GraphError(f"%{node}{'.' + index if index else ''} has not been computed")
        return ref

    def _output(self, tokens: _Tokens) -> tuple[str, Ref]:
        name = tokens.text()
        tokens.take("=")
        return name, self._ref(tokens)

    def _node(self, tokens: _Tokens) -> tuple[int, Node]:
        tokens.take("%")
        identifier = int(tokens.take())
        tokens.take("=")
        op = tokens.take()
        operands: list[Ref | None] = []
        if tokens.skip("("):
            operands = tokens.listed(lambda: None if tokens.skip("?") else self._ref(tokens), ")")
        attributes: dict[str, AttributeValue] = {}
        if tokens.skip("{"):
            attributes = dict(tokens.listed(lambda: _attribute(tokens), "}"))
        digest = tokens.take() if tokens.skip("@") else None
        values = tokens.listed(lambda: _typed(tokens), "")
        return identifier, Node(
            op=op,
            inputs=tuple(operands),
            attributes=attributes,
            types=tuple(tensor_type for _, tensor_type in values),
            names=tuple(name for name, _ in values),
            constant=tokens.skip("constant"),
            payload=None if digest is None else self.payloads.get(digest, UnknownPayload(digest)),
            label=tokens.text() if tokens.skip("label") else "",
        )


def _attribute(tokens: _Tokens) -> tuple[str, AttributeValue]:
    name = tokens.take()
    tokens.take("=")
    return name, _read_value(tokens)


def _read_value(tokens: _Tokens) -> AttributeValue:
    if tokens.skip("("):
        return tuple(tokens.listed(lambda: _read_value(tokens), ")"))
    if tokens.ahead.startswith('"'):
        return tokens.text()
    word = tokens.take()
    if word.startswith("0x"):  # bytes; integers are written in decimals
        return bytes.fromhex(word[2:])
    return int(word) if re.fullmatch(r"-?\d+", word) else float(word)


def _typed(tokens: _Tokens) -> tuple[str, TensorType | None]:
    name = tokens.text()
    tokens.take(":")
    if tokens.skip("?"):
        return name, None
    dtype = tokens.take()
    if not tokens.skip("["):
        return name, TensorType(dtype, None)
    return name, TensorType(dtype, tuple(tokens.listed(lambda: _read_dimension(tokens), "]")))


def _read_dimension(tokens: _Tokens) -> Dimension:
    if tokens.skip("?"):
        return None
    if tokens.ahead.startswith('"'):
        return tokens.text()
    word = tokens.take()
    return int(word) if re.fullmatch(r"-?\d+", word) else word
