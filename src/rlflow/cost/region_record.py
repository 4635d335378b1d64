"""Measured graphs and their regions as lines of text: what a price model is trained on.

    write_records(Path("regions.jsonl.xz"), [RegionRecord(graph, signature, "bert", "bert layers=2")])
    write_records(Path("graphs.jsonl.xz"), [GraphRecord("original", "bert", "bert layers=2", ...)])

Two kinds of lines, each in a file of its own, say what was measured:

    RegionRecord     a region as a graph
    GraphRecord      a whole graph: what it took on a processor, and each of its regions in it

Regions are named by their signatures (`cost.fragment.describe`). Of weights only types are kept, and the values where
work depends on these: of small constants, which steer fusions, and of integers, which are indices.

Invariant: the graph that is read back has the signature of the one that was written, and equal records are equal files.
"""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from rlflow.atomic_file import written_whole
from rlflow.cost.fragment import ArbitraryWeight, KnownWeight, is_literal
from rlflow.errors import GraphError, InputError
from rlflow.ir.graph import Graph, make_graph
from rlflow.ir.node import WEIGHT, Node, Payload
from rlflow.ir.text import UnknownPayload, from_text, to_text

_ARBITRARY = "arbitrary"  # stands in the text for a weight of which only the type is kept


@dataclass(frozen=True)
class RegionRecord:
    """A region as a graph by itself. `family` and `configuration` name the model in which it was met first."""

    graph: Graph
    signature: str
    family: str
    configuration: str

    def to_json(self) -> dict[str, Any]:
        content = {name: value for name, value in vars(self).items() if name != "graph"}
        return graph_to_json(self.graph) | content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> RegionRecord:
        rest = {name: value for name, value in content.items() if name not in ("graph", "values")}
        return cls(graph=graph_from_json(content), **rest)


class RegionTime(NamedTuple):
    """The number of times that a graph has a region, and the milliseconds that it takes there each time."""

    times: int
    ms: float


class Faster(NamedTuple):
    """A ratio of times with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class GraphRecord:
    """A whole graph as it ran on a processor, and its regions by signature.

    - `variant`: what became of the model by then: "original", or the name of the search or walk that rewrote it.
    - `working_set_mb`: megabytes that a run of the original touches, which tell how warm its weights and values are.
    - `ms`, `sigma_ms`: end to end, and the standard error.
    - `reorders_ms`, `views`: milliseconds of reorders of the blocked layout, and the number of regions of mere views.
    - `faster`: how many times as fast as the original it is in rounds that alternate, with its 95 % interval; None
      where it did not run so. Between the runs that `ms` is of, a machine gets slower and faster.
    - `told`: how many times as fast the price model said it was before it ran; None if it was not asked.
    """

    variant: str
    family: str
    configuration: str
    processor: str
    working_set_mb: float
    regions: Mapping[str, RegionTime]
    ms: float
    sigma_ms: float
    reorders_ms: float = 0.0
    views: int = 0
    faster: Faster | None = None
    told: float | None = None

    def __post_init__(self) -> None:
        times = (self.working_set_mb, self.ms, self.sigma_ms, self.reorders_ms, self.told or 0.0)
        for value in (*times, *(self.faster or ()), *(time.ms for time in self.regions.values())):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{value} is no time of {self.configuration}, {self.variant}")

    @property
    def regions_ms(self) -> float:
        """Milliseconds of all regions."""
        return math.fsum(time.times * time.ms for time in self.regions.values())

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "regions": dict(sorted(self.regions.items()))}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> GraphRecord:
        regions = {signature: RegionTime(*time) for signature, time in content["regions"].items()}
        faster = content.get("faster") and Faster(*content["faster"])
        return cls(**{**content, "regions": regions, "faster": faster})


def graph_to_json(graph: Graph) -> dict[str, Any]:
    """Return the text of a region without names, and the values of its constants where they count.

    Raises `GraphError` for a node that is carried verbatim, which no text can hold.
    """
    values: dict[str, str] = {}
    nodes = {i: _without_values(node, values) for i, node in graph.nodes.items()}
    names = [""] * len(graph.outputs)
    return {"graph": to_text(make_graph(nodes, graph.inputs, graph.outputs, names, graph.header)), "values": values}


def graph_from_json(content: Mapping[str, Any]) -> Graph:
    """Return the region of this text; weights whose values are not kept get arbitrary ones.

    Raises `GraphError` for a text that cannot be read, `KeyError` for values that are missing.
    """
    graph = from_text(content["graph"])
    nodes = {i: _with_values(i, node, content["values"]) for i, node in graph.nodes.items()}
    names = [f"output_{place}" for place in range(len(graph.outputs))]
    return make_graph(nodes, graph.inputs, graph.outputs, names, graph.header)


def _without_values(node: Node, values: dict[str, str]) -> Node:
    """Return the node without names, its payload replaced by a word; values that count are added to `values`."""
    if node.is_opaque:
        raise GraphError(f"{node.op} is carried verbatim, so that the region cannot be written as text")
    bare = replace(node, names=("",) * len(node.types), label="", remarks=None)
    if node.op != WEIGHT or node.payload is None:
        return bare
    (kind,) = node.types
    if kind is not None and kind.is_float and not is_literal(kind):
        return replace(bare, payload=UnknownPayload(_ARBITRARY), signature=0)
    content = np.ascontiguousarray(_array(node.payload)).tobytes()
    word = f"v{blake2b(content, digest_size=6).hexdigest()}"  # a letter first, since the text is read in words
    values[word] = content.hex()
    return replace(bare, payload=UnknownPayload(word), signature=0)


def _with_values(identifier: int, node: Node, values: Mapping[str, str]) -> Node:
    """Return the node with names, and with a payload that has values."""
    names = tuple(f"value_{identifier}_{index}" for index in range(len(node.types)))
    if node.op != WEIGHT or node.payload is None:
        return node.with_names(names)
    (kind,) = node.types
    if kind is None or not kind.is_static:
        raise GraphError(f"weight %{identifier} of the region has no known shape")
    shape = tuple(d for d in kind.shape or () if isinstance(d, int))
    payload: Payload = ArbitraryWeight(names[0], kind.dtype, shape)
    if node.payload.digest != _ARBITRARY:
        flat = np.frombuffer(bytes.fromhex(values[node.payload.digest]), dtype=kind.dtype)
        payload = KnownWeight(flat.reshape(shape))
    return replace(node, names=names, payload=payload, signature=0)


def _array(payload: Any) -> np.ndarray:
    values: np.ndarray = payload.array()
    return values


class _Record(Protocol):
    def to_json(self) -> dict[str, Any]: ...


R = TypeVar("R")


def write_records(path: Path, records: Iterable[_Record]) -> None:
    """Write one record a line, compressed; written whole or not at all, and the same records are the same bytes."""
    text = "".join(json.dumps(record.to_json(), separators=(",", ":")) + "\n" for record in records)
    with written_whole(path) as draft:
        draft.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def read_records(path: Path) -> Iterator[RegionRecord]:
    """Yield the regions of a file; `InputError` naming the line that cannot be read."""
    return _read(path, RegionRecord.from_json)


def read_graphs(path: Path) -> Iterator[GraphRecord]:
    """Yield the whole graphs of a file; `InputError` naming the line that cannot be read."""
    return _read(path, GraphRecord.from_json)


def _read(path: Path, from_json: Callable[[Mapping[str, Any]], R]) -> Iterator[R]:
    try:
        lines = lzma.decompress(path.read_bytes()).decode().splitlines()
    except (OSError, ValueError, EOFError, lzma.LZMAError) as error:
        raise InputError(f"{path} cannot be read ({error}): make it again with `make study NAME=prices`") from None
    for number, line in enumerate(lines, start=1):
        try:
            yield from_json(json.loads(line))
        except (GraphError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{path}, line {number} is no record ({error}): make it again with `make study NAME=prices`"
            ) from None
