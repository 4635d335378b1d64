"""The time that a graph spends on bringing images from one layout to the other, followed from rewrite to rewrite.

Timed by itself, a convolution pays for reorders before and behind it. Inside a model it mostly does not: it passes
blocked images on (`cost/blocked_layout.py`). So a part of a graph is priced without its own reorders, and the graph
with those that it has as a whole:

    borders = reordering.borders(graph)             # of a whole graph: every node is looked at
    reordering.borders(child, borders)              # of the graph after a rewrite: what the rewrite changed, and from
                                                    # there on as far as layouts change
    reordering.change(borders, graph, edit)         # by a rewrite that was not made
    reordering.alone_ms(graph, nodes)               # of a part by itself

A change spreads along whatever works on either layout, and ends at the next convolution or pool: a residual stream
carries it far, so that no fixed number of nodes bounds it. `Change.nodes` names all nodes that were looked at, of which
it thus depends.

The invariant: borders do not depend on how a graph was reached, and a previewed change is, to the bit, that of the
borders after the rewrite.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, prod
from typing import NamedTuple, TypeVar

from immutables import Map

from rlflow.cost.blocked_layout import PADS, STARTING, Layout, Reorder, laid_out, reorders
from rlflow.cost.exact_sum import Exact, exact
from rlflow.cost.fragment import is_result
from rlflow.cost.regions import readers, stand_ins
from rlflow.errors import InputError
from rlflow.ir.dimension import size_of
from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT, Node, Ref
from rlflow.ir.preview import Preview
from rlflow.ir.tensor_type import TensorType, item_size

T = TypeVar("T")


@dataclass(frozen=True)
class ReorderConfig:
    """The machine's block of channels (8 on AVX2, 16 on AVX-512, 1 where nothing is blocked) and what a reorder takes.

    An image of up to `cache_mb` stays, in both layouts, in the cache of a core, and takes `us_per_mb`; a larger one
    takes `far_us_per_mb`. The times are those of one core with AVX-512 and 2 MB of its own (docs/measurements.md, 4).
    `InputError` for a number that none of them can be.
    """

    block: int = 16
    launch_us: float = 1.0
    us_per_mb: float = 38.0
    far_us_per_mb: float = 75.0
    cache_mb: float = 0.6

    def __post_init__(self) -> None:
        if self.block < 1:
            raise InputError(f"block is {self.block}: give the channels of a block, 1 where nothing is blocked")
        for name in ("launch_us", "us_per_mb", "far_us_per_mb", "cache_mb"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} of a reorder cannot be {getattr(self, name)}")

    def at_pace(self, pace: float) -> ReorderConfig:
        """The same on a machine that takes so many times as long."""
        times = {name: pace * getattr(self, name) for name in ("launch_us", "us_per_mb", "far_us_per_mb")}
        return replace(self, **times)


@dataclass(frozen=True)
class Borders:
    """The layouts of a graph's nodes but for plain ones, by node the milliseconds of its reorders, and their sum."""

    layouts: Map[int, int] = field(default_factory=Map)
    ms: Map[int, tuple[float, ...]] = field(default_factory=Map)
    exact_ms: Exact = ()

    def differing(self, other: Borders) -> Iterator[int]:
        """List the nodes that have another layout there."""
        if self.layouts or other.layouts:
            for identifier in {*self.layouts, *other.layouts}:
                if self.layouts.get(identifier) != other.layouts.get(identifier):
                    yield identifier


class Change(NamedTuple):
    """The milliseconds that an edit adds to a graph's reorders, and the nodes on which that depends."""

    exact_ms: Exact
    nodes: Collection[int]


class Reordering:
    """Follows the reorders of graphs; `dimensions` are the sizes of symbolic dimensions."""

    def __init__(self, config: ReorderConfig, dimensions: Mapping[str, int]) -> None:
        self.config = config
        self._dimensions = dimensions

    def reorders(self, graph: Graph) -> list[Reorder]:
        """List the reorders of a graph, in its order."""
        scene = _Scene(graph, self._layouts(graph))
        return [r for i in (*graph.inputs, *graph.order) for r in reorders(scene, i, self.config.block)]

    def borders(self, graph: Graph, before: Borders | None = None) -> Borders:
        """Return the borders of a graph, from those of its parent if they are given."""
        if before is None or graph.edit is None:
            return self._from_nothing(graph)
        change = graph.edit.change
        if not before.layouts and not self._blocks(graph.nodes[i] for i in change.touched):
            return Borders()
        parent = graph.edit.parent()
        near = [i for i in change.touched if not graph.nodes[i].constant]
        new = [i for i in near if parent is None or graph.nodes[i] is not parent.nodes.get(i)]
        scene = _Scene(graph, before.layouts)
        affected = self._settle(scene, near, new)
        made, gone = self._priced(scene, affected), _kept(before, (*affected, *change.removed))
        return Borders(
            _with(before.layouts, change.removed, scene.found),
            _with(before.ms, gone, made),
            exact((*before.exact_ms, *_terms(made), *(-price for price in _terms(gone)))),
        )

    def alone_ms(self, graph: Graph, nodes: Sequence[int]) -> float:
        """Return the milliseconds of the reorders of a few nodes, in the graph's order, as a model by themselves."""
        if not self._blocks(graph.nodes[i] for i in nodes):
            return 0.0
        scene = _Alone(graph, nodes)
        run = [i for i in nodes if scene.first[i] == i]
        for identifier in run:
            scene.found[identifier] = laid_out(scene, identifier, self.config.block)
        read = {source for i in run for source in _varying(scene, i)}
        return fsum(_terms(self._priced(scene, {*run, *read})))

    def change(self, borders: Borders, graph: Graph, edit: Preview) -> Change:
        """Return what an edit of a graph with these borders would change."""
        new = (*edit.added.values(), *(graph.nodes[i] for i in edit.readers))
        around = (*edit.touched, *edit.removed)
        if not self._blocks(new) and not any(i in borders.layouts or i in borders.ms for i in around):
            return Change((), ())
        scene = _Previewed(graph, borders.layouts, edit)
        affected = self._settle(scene, scene.near(), scene.new())
        made, gone = self._priced(scene, affected), _kept(borders, (*affected, *edit.removed))
        change_ms = exact((*_terms(made), *(-price for price in _terms(gone)))) if made != gone else ()
        return Change(change_ms, scene.seen - edit.added.keys())

    def _blocks(self, nodes: Iterable[Node]) -> bool:
        """Return True if one of the nodes may block an image that no other has blocked."""
        return self.config.block > 1 and any(node.op in STARTING for node in nodes)

    def _from_nothing(self, graph: Graph) -> Borders:
        layouts = self._layouts(graph)
        if not layouts:
            return Borders()
        ms = self._priced(_Scene(graph, layouts), (*graph.inputs, *graph.order))
        return Borders(Map(layouts), Map(ms), exact(_terms(ms)))

    def _layouts(self, graph: Graph) -> dict[int, int]:
        layouts: dict[int, int] = {}
        if self._blocks(graph.nodes[i] for i in graph.order):
            scene = _Scene(graph, layouts)
            for identifier in graph.order:
                if layout := laid_out(scene, identifier, self.config.block):
                    layouts[identifier] = layout
        return layouts

    def _settle(self, scene: _Scene, near: Collection[int], new: Collection[int]) -> set[int]:
        """Find the layouts that change where nodes are new or have other operands, and where others, `near` them, have
        other readers. Return the nodes whose reorders may be others.
        """
        pads = [i for i in near if scene.node(i).op in PADS]
        # Whether a convolution takes up what reads it depends on who else does.
        takers = (reader for i in near if scene.layout(i) == Layout.OPEN for reader in scene.readers(i))
        waiting = [*new, *pads, *takers]
        while waiting:
            identifier = waiting.pop()
            layout = laid_out(scene, identifier, self.config.block)
            if layout != scene.layout(identifier):
                scene.found[identifier] = layout
                waiting.extend(scene.readers(identifier))
        # Other nodes read their operands in the layout in which they read them before.
        return {*near, *scene.found, *(s for i in (*scene.found, *pads) for s in _varying(scene, i))}

    def _priced(self, scene: _Scene, nodes: Iterable[int]) -> dict[int, tuple[float, ...]]:
        """Return the milliseconds of the reorders of those nodes that have any."""
        block = self.config.block
        priced = ((i, tuple(self._ms(r.type) for r in reorders(scene, i, block))) for i in nodes)
        return {i: ms for i, ms in priced if ms}

    def _ms(self, tensor_type: TensorType | None) -> float:
        us = self.config.launch_us
        if tensor_type is not None:
            sizes = (size_of(dimension, self._dimensions) or 1 for dimension in tensor_type.shape or ())
            mb = prod(sizes) * item_size(tensor_type.dtype) / 1e6
            us += mb * (self.config.us_per_mb if mb <= self.config.cache_mb else self.config.far_us_per_mb)
        return us / 1e3


def _varying(scene: _Scene, identifier: int) -> list[int]:
    """Return the operands of a node that are no constants."""
    refs = (ref.node for ref in scene.operands(identifier) if ref is not None)
    return [source for source in refs if not scene.node(source).constant]


def _kept(borders: Borders, nodes: Iterable[int]) -> dict[int, tuple[float, ...]]:
    return {i: borders.ms[i] for i in nodes if i in borders.ms}


def _terms(ms: Mapping[int, tuple[float, ...]]) -> list[float]:
    return [price for prices in ms.values() for price in prices]


def _with(before: Map[int, T], gone: Iterable[int], made: Mapping[int, T]) -> Map[int, T]:
    """Return a map without some entries and with others; what is made and empty is left out."""
    after = before.mutate()
    for identifier in gone:
        after.pop(identifier, None)
    for identifier, value in made.items():
        if value:
            after[identifier] = value
        else:
            after.pop(identifier, None)
    return after.finish()


class _Scene:
    """A graph, with layouts that were found over those that were known."""

    def __init__(self, graph: Graph, layouts: Mapping[int, int]) -> None:
        self.graph = graph
        self.found: dict[int, int] = {}
        self._known = layouts

    def node(self, identifier: int) -> Node:
        return self.graph.nodes[identifier]

    def operands(self, identifier: int) -> tuple[Ref | None, ...]:
        return self.graph.nodes[identifier].inputs

    def readers(self, identifier: int) -> Collection[int]:
        return self.graph.consumers[identifier]

    def is_input(self, identifier: int) -> bool:
        return self.node(identifier).op == INPUT

    def is_output(self, value: Ref) -> bool:
        return value.node in self.graph.output_nodes and value in self.graph.outputs

    def layout(self, identifier: int) -> int:
        found = self.found.get(identifier)
        return self._known.get(identifier, 0) if found is None else found


class _Alone(_Scene):
    """A few nodes as a model by themselves: what they read from outside are its inputs.

    Of nodes that compute the same, the first stands for all.
    """

    def __init__(self, graph: Graph, nodes: Sequence[int]) -> None:
        super().__init__(graph, {})
        self._inside = frozenset(nodes)
        self.first = stand_ins(graph, nodes)

    def operands(self, identifier: int) -> tuple[Ref | None, ...]:
        operands = super().operands(identifier)
        return tuple(ref and Ref(self.first.get(ref.node, ref.node), ref.index) for ref in operands)

    def readers(self, identifier: int) -> Collection[int]:
        values = (Ref(identifier, index) for index in range(len(self.node(identifier).types)))
        return {self.first[i] for value in values for i in readers(self.graph, value) if i in self._inside}

    def is_input(self, identifier: int) -> bool:
        return identifier not in self._inside

    def is_output(self, value: Ref) -> bool:
        return value.node in self._inside and is_result(self.graph, value, self._inside)


class _Previewed(_Scene):
    """A graph after an edit that was not made. `seen` are the nodes whose layout or readers were asked for."""

    def __init__(self, graph: Graph, layouts: Mapping[int, int], edit: Preview) -> None:
        super().__init__(graph, layouts)
        self.seen: set[int] = set()
        self._edit = edit
        self._replaced = {ref.node for ref in edit.substitution}
        self._made = [i for i, node in edit.added.items() if i not in edit.idle and not node.constant]

    def near(self) -> list[int]:
        """Return the nodes that are new, or have other operands or readers, inputs of the model among them."""
        graph, edit = self.graph, self._edit
        lost = (source for i in edit.removed for source in graph.nodes[i].sources)
        sources = {*self._replaced, *edit.gained, *lost}
        inputs = (i for i in sources if i in graph.nodes and graph.nodes[i].op == INPUT)
        return [*edit.touched, *inputs, *self._made]

    def new(self) -> list[int]:
        """Return those of them that are new or have other operands."""
        return [*self._edit.readers, *self._made]

    def node(self, identifier: int) -> Node:
        added = self._edit.added.get(identifier)
        return self.graph.nodes[identifier] if added is None else added

    def operands(self, identifier: int) -> tuple[Ref | None, ...]:
        inputs, substitution = self.node(identifier).inputs, self._edit.substitution
        if identifier not in self._edit.readers:
            return inputs
        return tuple(ref if ref is None else substitution.get(ref, ref) for ref in inputs)

    def readers(self, identifier: int) -> Collection[int]:
        self.seen.add(identifier)
        edit = self._edit
        before, gained = self.graph.consumers.get(identifier, ()), edit.gained.get(identifier)
        readers = [i for i in before if i not in edit.removed]
        if identifier in self._replaced:
            readers = [i for i in readers if any(r and r.node == identifier for r in self.operands(i))]
        return {*readers, *gained} if gained else readers

    def is_output(self, value: Ref) -> bool:
        substitution = self._edit.substitution
        if value.node not in self.graph.output_nodes and value not in substitution.values():
            return False
        return any(substitution.get(ref, ref) == value for ref in self.graph.outputs)

    def layout(self, identifier: int) -> int:
        self.seen.add(identifier)
        return super().layout(identifier)
