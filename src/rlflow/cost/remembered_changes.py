"""The changes of a price by rewrites, remembered under all that they depend on.

Twelve layers of a model are alike, so a rewrite that saves 0.1 ms in one saves it in all others. With a cost model that
is a sum over parts of a graph (`cost.base.LocalCostModel`), the change by an edit is kept under the surroundings of the
edit and holds wherever these are the same. A rewrite is carried out only where they are new:

    changes = RememberedChanges(cost_model, rewriter)
    changes.runtime_after_ms(graph, match, carry_out)       # the first layer: carried out
    changes.runtime_after_ms(graph, alike, carry_out)       # the second: remembered

A search goes from a graph to one after it, in which most matches live on. Those whose surroundings the edit has not
touched keep their change without being looked at.

The invariant: a price is, to the bit, what the cost model says of the graph after the rewrite, since sums are kept
exactly (`cost/exact_sum.py`) and rounded once, as the cost model does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping, Set
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple

from rlflow.cost.base import LocalCostModel, Surroundings
from rlflow.cost.dependence import last_known, read_by
from rlflow.cost.exact_sum import Exact, exact
from rlflow.ir.graph import Graph
from rlflow.ir.preview import preview
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter

_MAX_REMEMBERED = 50_000
_MAX_GRAPHS = 64  # a search looks at a graph, then mostly at those right after it


class _Known(NamedTuple):
    """The change of the price by a match, and the nodes on which it depends."""

    change_ms: Exact
    nodes: Collection[int]


@dataclass(frozen=True, eq=False)
class _Outlook:
    """The rewrites of one graph that were priced so far.

    `before` are those of a graph before it, mostly its parent, of which those near the nodes `disturbed` since then no
    longer hold. `seen` are the surroundings of those that are about to be priced.
    """

    exact_ms: Exact
    before: Mapping[Match, _Known] = field(default_factory=dict)
    disturbed: Set[int] = frozenset()
    known: dict[Match, _Known] = field(default_factory=dict)
    seen: dict[Match, Surroundings] = field(default_factory=dict)

    def inherited(self, match: Match) -> _Known | None:
        """Return what was known of the match before, if nothing around it has changed."""
        known = self.before.get(match)
        return known if known is not None and self.disturbed.isdisjoint(known.nodes) else None

    def after(self, exact_ms: Exact, disturbed: Set[int]) -> _Outlook:
        """Return the outlook from a graph that comes from this one by a rewrite.

        A search that carries out one rewrite after another looks at few of the graphs on the way: what is known of the
        last one that it has looked at is handed on.
        """
        if len(self.known) >= len(self.before):
            return _Outlook(exact_ms, self.known, disturbed)
        held = {match: known for match, known in self.known.items() if disturbed.isdisjoint(known.nodes)}
        return _Outlook(exact_ms, self.before, self.disturbed | disturbed, held)


CarryOut = Callable[[Graph, Match, Callable[[Graph], Exact]], Exact]
"""Carries out a rewrite and asks for the price of the graph after it."""


class RememberedChanges:
    """Prices the rewrites of graphs that come from each other."""

    def __init__(self, cost_model: LocalCostModel, rewriter: Rewriter) -> None:
        self._cost_model = cost_model
        self._rewriter = rewriter
        self._changes_ms: dict[Hashable, Exact] = {}
        self._outlooks: OrderedDict[Graph, _Outlook] = OrderedDict()

    def runtime_after_ms(self, graph: Graph, match: Match, carry_out: CarryOut) -> float:
        """Return the price of the graph after a rewrite, which `carry_out` is called for if it must be carried out."""
        outlook = self._outlook(graph)
        known = outlook.known.get(match)
        if known is None:
            known = outlook.inherited(match) or self._looked_up(graph, match, outlook, carry_out)
            outlook.known[match] = known
        return fsum((*outlook.exact_ms, *known.change_ms))

    def unknown(self, graph: Graph, match: Match) -> Hashable | None:
        """Return the key of a rewrite's surroundings if it must be carried out to be priced, else None."""
        outlook = self._outlook(graph)
        known = outlook.known.get(match) or outlook.inherited(match)
        if known is not None:
            outlook.known[match] = known
            return None
        outlook.seen[match] = self._surroundings(graph, match)
        key = outlook.seen[match].key
        return None if key in self._changes_ms else key

    def _outlook(self, graph: Graph) -> _Outlook:
        """Return the outlook from a graph, with what that from the last one before it has."""
        outlook = self._used(graph)
        if outlook is None:
            exact_ms = self._cost_model.exact_ms(graph)  # what has no price yet is measured there
            before, changed = last_known(graph, self._used, self._cost_model)
            outlook = self._outlooks[graph] = before.after(exact_ms, changed) if before else _Outlook(exact_ms)
            if len(self._outlooks) > _MAX_GRAPHS:
                self._outlooks.popitem(last=False)
        return outlook

    def _used(self, graph: Graph) -> _Outlook | None:
        """Return the outlook from a graph if there is one; what is used is kept longer than what is not."""
        outlook = self._outlooks.get(graph)
        if outlook is not None:
            self._outlooks.move_to_end(graph)
        return outlook

    def _looked_up(self, graph: Graph, match: Match, outlook: _Outlook, carry_out: CarryOut) -> _Known:
        """Return the change by a match, from where its surroundings are the same, or by carrying it out."""
        seen = outlook.seen.pop(match) if match in outlook.seen else self._surroundings(graph, match)
        key, nodes = seen
        change_ms = self._changes_ms.get(key)
        if change_ms is None:
            after_ms = carry_out(graph, match, self._cost_model.exact_ms)
            change_ms = exact((*after_ms, *(-part for part in outlook.exact_ms)))
            if len(self._changes_ms) >= _MAX_REMEMBERED:
                self._changes_ms.clear()
            self._changes_ms[key] = change_ms
        return _Known(change_ms, nodes)

    def _surroundings(self, graph: Graph, match: Match) -> Surroundings:
        """Return what the price of a rewrite depends on, and the nodes on which that and the edit itself depend."""
        edit = preview(graph, *self._rewriter.edit(graph, match))
        key, nodes = self._cost_model.surroundings(graph, edit)
        return Surroundings(key, tuple({*nodes, *read_by(graph, edit, match)}))
