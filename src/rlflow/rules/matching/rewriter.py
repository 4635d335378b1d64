"""The one door to rewriting, for agents and searches alike: which rules apply where, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, overload
from weakref import WeakKeyDictionary

from rlflow.ir.graph import Graph
from rlflow.rules.matching.apply import apply
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.match_table import MatchTable, MatchTables
from rlflow.rules.rule import Rule


class Location(NamedTuple):
    """An action: rule index, and the number of the match among that rule's matches in their deterministic
    order.
    """

    rule: int
    location: int


class Matches(Sequence[tuple[Match, ...]]):
    """For each rule all its matches, ordered by the topological positions of their nodes, roots first.

    They are listed when they are asked for; how many there are, `counts` tells at once.
    """

    def __init__(self, graph: Graph, table: MatchTable, tables: MatchTables, num_rules: int) -> None:
        self._graph, self._table, self._tables = graph, table, tables
        self._listed: list[tuple[Match, ...] | None] = [None] * num_rules

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """For each rule, how many matches it has."""
        return tuple(self._tables.count(self._table, rule) for rule in range(len(self)))

    def __len__(self) -> int:
        return len(self._listed)

    @overload
    def __getitem__(self, rule: int) -> tuple[Match, ...]: ...
    @overload
    def __getitem__(self, rule: slice) -> tuple[tuple[Match, ...], ...]: ...
    def __getitem__(self, rule: int | slice) -> tuple[Match, ...] | tuple[tuple[Match, ...], ...]:
        if isinstance(rule, slice):
            return tuple(self)[rule]
        found = self._listed[rule]
        if found is None:
            found = self._listed[rule] = self._tables.listed(self._table, self._graph, range(len(self))[rule])
        return found


class Rewriter:
    """Matches of a list of rules in any graph.

    Matching is incremental: a graph that came out of `apply` takes over its parent's matches and looks again
    only where the rewrite can have changed something. What is remembered of a graph lives as long as the
    graph.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self._tables = MatchTables(self.rules)
        self._known: WeakKeyDictionary[Graph, MatchTable] = WeakKeyDictionary()
        self._parents: WeakKeyDictionary[Graph, MatchTable] = WeakKeyDictionary()

    def matches(self, graph: Graph) -> Matches:
        return Matches(graph, self._table(graph), self._tables, len(self.rules))

    def apply(self, graph: Graph, match: Match) -> Graph:
        """The rewritten graph; `match` must come from `matches(graph)`."""
        child = apply(graph, match)
        self._parents[child] = self._table(graph)
        return child

    def _table(self, graph: Graph) -> MatchTable:
        """What is known of the graph, brought up to date from its parent's when it is first asked for."""
        table = self._known.get(graph)
        if table is None:
            before = self._parents.pop(graph, None)
            if before is not None and graph.edit is not None:
                table = self._tables.updated(before, graph, graph.edit.change)
            else:
                table = self._tables.new(graph)
            self._known[graph] = table
        return table
