"""A price for every graph: the sum of its regions' prices, which subclasses define.

    deployed      regions are what ONNX Runtime may fuse at its highest level, so that a rewrite is judged by what runs
    as_written    every node by itself, as it runs with the runtime's own optimisation off

After a rewrite only the regions that it changed are priced anew. A subclass prices one region. What is deployed pays as
well for the reorders of the blocked layout, which are the whole graph's (`cost/border_reorders.py`), never a region's.

Invariant: the sum is exact and rounded once, so that a graph's price does not depend on the rewrites that led to it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

from immutables import Map

from rlflow.cost.base import Cost, Part, Surroundings
from rlflow.cost.border_reorders import Borders, ReorderConfig, Reordering
from rlflow.cost.exact_sum import Exact, exact
from rlflow.cost.neighbourhood import Neighbourhoods
from rlflow.cost.regions import (
    Partition,
    Region,
    as_run,
    concerned,
    disturbed,
    node_by_node,
    partition,
    updated,
    updated_node_by_node,
)
from rlflow.cost.work import WorkCounter
from rlflow.ir.graph import Graph
from rlflow.ir.preview import Preview
from rlflow.runtime.session import Setting

_MAX_REMEMBERED = 200_000

_PARTITIONS = {"as_written": (node_by_node, updated_node_by_node), "deployed": (partition, updated)}


@dataclass(frozen=True)
class _Pricing:
    """A graph's regions, of each by its first node the price, the sum of these, the borders, and the sum of it all."""

    partition: Partition
    ms: Map[int, float]
    regions_ms: Exact
    borders: Borders
    exact_ms: Exact


class Breakdown(NamedTuple):
    """The parts of a price, in milliseconds: all regions, and the reorders at the borders of what stays blocked.

    `own_reorders_ms` is no part of the price: what the regions would pay for reorders if each were a model by itself.
    """

    regions_ms: float
    reorders_ms: float
    own_reorders_ms: float


class RegionCost(ABC):
    """Prices graphs by their regions; `region_ms` tells the price of one.

    `dimensions` are the sizes of symbolic dimensions at which a model is priced, `reorders` the reorders' prices.
    """

    def __init__(
        self,
        setting: Setting,
        dimensions: Mapping[str, int] | None = None,
        reorders: ReorderConfig | None = None,
    ) -> None:
        self.setting: Setting = setting
        self.dimensions = dict(dimensions or {})
        # As it is written, a graph runs without the blocked layout.
        self.reordering = Reordering(reorders or ReorderConfig(), self.dimensions) if setting == "deployed" else None
        self._work = WorkCounter()
        self._neighbourhoods = Neighbourhoods()
        self._pricings: WeakKeyDictionary[Graph, _Pricing] = WeakKeyDictionary()
        self._remembered: dict[Hashable, float] = {}

    @abstractmethod
    def region_ms(self, graph: Graph, region: Region) -> float:
        """Return the milliseconds of a region of a graph, the same for every region that does the same work.

        Without those of reorders, which it has when it is a model by itself (`own_reorders_ms`).
        """

    def own_reorders_ms(self, graph: Graph, region: Region) -> float:
        """Return the milliseconds of the reorders that a region has when it is a model by itself."""
        return self.reordering.alone_ms(graph, region) if self.reordering else 0.0

    def runtime_ms(self, graph: Graph) -> float:
        """The part that searches and rewards look at all the time. Raises what `region_ms` does."""
        return math.fsum(self.exact_ms(graph))

    def exact_ms(self, graph: Graph) -> Exact:
        """Return the sum over all regions and all reorders."""
        return self._pricing(graph).exact_ms

    def breakdown(self, graph: Graph) -> Breakdown:
        """Tell what the price is made of. Raises what `region_ms` does."""
        pricing = self._pricing(graph)
        alone = math.fsum(self.own_reorders_ms(graph, region) for region in pricing.partition.regions)
        return Breakdown(math.fsum(pricing.regions_ms), math.fsum(pricing.borders.exact_ms), alone)

    def surroundings(self, graph: Graph, edit: Preview) -> Surroundings:
        """Write down the regions that the edit may change, and by how much it changes the reorders."""
        pricing = self._pricing(graph)
        cut = pricing.partition
        nodes = concerned(cut, graph, edit)
        nearby = (i for identifier in edit.touched for i in cut.region_of[identifier])
        written = self._neighbourhoods.written(graph, edit, nodes)
        if self.reordering is None:
            return Surroundings(written, nodes.union(nearby))
        change = self.reordering.change(pricing.borders, graph, edit)
        return Surroundings((written, change.exact_ms), nodes.union(nearby, change.nodes))

    def disturbed(self, graph: Graph) -> set[int]:
        """Return the nodes that may be fused or laid out differently although the edit did not touch them."""
        parent = graph.edit.parent() if graph.edit else None
        if parent is None or graph.edit is None:
            return set()
        relaid = self._pricing(graph).borders.differing(self._pricing(parent).borders)
        return {*disturbed(graph, graph.edit.change), *relaid}

    def parts(self, graph: Graph) -> Iterator[Part]:
        """List the regions with their prices, by their first nodes. Raises what `exact_ms` does."""
        self.exact_ms(graph)  # what a subclass does not know yet, it measures there
        pricing = self._pricing(graph)
        for region in dict.fromkeys(map(pricing.partition.region_of.__getitem__, graph.order)):
            yield Part(region, pricing.ms[region[0]])

    def part_of(self, graph: Graph, node: int) -> Part:
        """Return the region of a node, with its price. Raises what `region_ms` does."""
        pricing = self._pricing(graph)
        region = pricing.partition.region_of[node]
        return Part(region, pricing.ms[region[0]])

    def cost(self, graph: Graph) -> Cost:
        """The price, and the work that it is paid for. Raises what `region_ms` does."""
        return Cost.of(self.runtime_ms(graph), self._work.graph(graph))

    def _pricing(self, graph: Graph) -> _Pricing:
        """From the parent's, where the graph has one: regions that were not cut again keep their prices."""
        known = self._pricings.get(graph)
        if known is None:
            before = self._before(graph)
            cut = self._partition(graph, before.partition if before else None)
            ms = (before.ms if before else Map[int, float]()).mutate()
            gone = [ms.pop(region[0]) for region in cut.gone]
            made = {region[0]: self._known_ms(graph, region) for region in cut.made}
            ms.update(made)
            regions_ms = exact((*(before.regions_ms if before else ()), *made.values(), *(-price for price in gone)))
            borders = self._borders(graph, before)
            total = exact((*regions_ms, *borders.exact_ms))
            known = self._pricings[graph] = _Pricing(cut, ms.finish(), regions_ms, borders, total)
        return known

    def _before(self, graph: Graph) -> _Pricing | None:
        parent = graph.edit.parent() if graph.edit else None
        return self._pricings.get(parent) if parent is not None else None

    def _partition(self, graph: Graph, before: Partition | None) -> Partition:
        cut, cut_again = _PARTITIONS[self.setting]
        return cut_again(before, graph, graph.edit.change) if before and graph.edit else cut(graph)

    def _borders(self, graph: Graph, before: _Pricing | None) -> Borders:
        return self.reordering.borders(graph, before.borders if before else None) if self.reordering else Borders()

    def nodes_of(self, graph: Graph, region: Region) -> Region:
        """Return the nodes that a region's price is of, none where nothing runs."""
        return as_run(graph, region) if self.setting == "deployed" else region

    def _known_ms(self, graph: Graph, region: Region) -> float:
        region = self.nodes_of(graph, region)
        if not region:
            return 0.0
        written = self._neighbourhoods.region(graph, region)
        known = self._remembered.get(written)
        if known is None:
            known = self.region_ms(graph, region)
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[written] = known
        return known
