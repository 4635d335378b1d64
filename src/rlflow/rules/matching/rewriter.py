"""The one entrance to rewriting, for agents and searches alike.

rewriter = Rewriter(library.rules)
matches = rewriter.matches(graph)            # matches[rule][location]
child = rewriter.apply(graph, matches[3][0])

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, NamedTuple, overload
from weakref import WeakKeyDictionary

from rlflow.ir.graph import Graph
from rlflow.ir.node import Node, Ref
from rlflow.rules.matching.apply import edit_of
from rlflow.rules.matching.match import Match, is_private
from rlflow.rules.matching.match_table import CompiledRules, MatchTable, MatchTables
from rlflow.rules.rule import Rule


class Location(NamedTuple):
    """An action: the index of a rule, and the number of a match in the deterministic order of that rule's matches."""

    rule: int
    location: int


class Matches(Sequence[tuple[Match, ...]]):
    """The matches of each rule, ordered by the topological positions of their nodes, roots first.

    They are listed when they are asked for; `counts` needs no list.
    """

    def __init__(self, graph: Graph, table: MatchTable, tables: MatchTables, num_rules: int) -> None:
        self._graph, self._table, self._tables = graph, table, tables
        self._listed: list[tuple[Match, ...] | None] = [None] * num_rules

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The number of matches of each rule."""
        present = self._present
        return tuple(self._tables.count(self._table, rule) if rule in present else 0 for rule in range(len(self)))

    @property
    def _present(self) -> set[int]:
        """The rules that the table has places of, few of all that there are."""
        return {*self._table.single, *self._table.joint}

    def found(self) -> Iterator[tuple[int, tuple[Match, ...]]]:
        """Yield each rule that matches by its index, with its matches, in the order of rules."""
        for rule in sorted(self._present):
            matches = self[rule]
            if matches:
                yield rule, matches

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
    """Finds and applies the matches of a list of rules in any graph.

    Matching is incremental: a graph that came out of `apply` takes over its parent's matches, and looks again only
    where the rewrite can have changed something. The matches of a graph are remembered as long as the graph lives.
    """

    matching: ClassVar[str] = "private"
    """The name by which trajectories say how their locations were counted."""

    def __init__(self, rules: Sequence[Rule], compiled: CompiledRules | None = None) -> None:
        """`compiled` are the same rules, where another rewriter has them already."""
        self.rules = tuple(rules)
        self.compiled = CompiledRules(self.rules) if compiled is None else compiled
        self._tables = MatchTables(self.compiled, self._admits)
        self._known: WeakKeyDictionary[Graph, MatchTable] = WeakKeyDictionary()
        self._parents: WeakKeyDictionary[Graph, MatchTable] = WeakKeyDictionary()

    def matches(self, graph: Graph) -> Matches:
        """Return the matches of all rules in this graph."""
        return Matches(graph, self._table(graph), self._tables, len(self.rules))

    def apply(self, graph: Graph, match: Match) -> Graph:
        """Return the rewritten graph; `match` must come from `matches(graph)`."""
        child = graph.replace(*self.edit(graph, match))
        self._parents[child] = self._table(graph)
        return child

    def edit(self, graph: Graph, match: Match) -> tuple[dict[int, Node], dict[Ref, Ref]]:
        """Return the edit by which `apply` rewrites, as `Graph.replace` takes it."""
        return edit_of(graph, match)

    def _admits(self, graph: Graph, inside: Mapping[int, object], inner: Sequence[int]) -> bool:
        return is_private(graph, inside, inner)

    def _table(self, graph: Graph) -> MatchTable:
        """Return the matches of the graph; when first asked for, they are updated from its parent's or found anew."""
        table = self._known.get(graph)
        if table is None:
            before = self._parents.pop(graph, None)
            if before is not None and graph.edit is not None:
                table = self._tables.updated(before, graph, graph.edit.change)
            else:
                table = self._tables.new(graph)
            self._known[graph] = table
        return table
