"""The states that searches, policies and rollouts visit, as one graph: which they share, and how near the best one is.

    states = state_graph(start, {"rollouts": [way, ...], "greedy": [way]})      a `networkx.DiGraph`
    best = best_of(states, states_of(states, "greedy"))
    rewrites_to(states)[best]                                the fewest that lead there from the start, of any source

A node is the structural hash of a graph, an edge a rewrite, or several of which the graphs between were not kept. So
two ways that make the same rewrites in another order meet again, and a way that was never walked as a whole can be put
together from pieces of several.

The invariant: a node has the same price however it was reached, and `sources` names everyone that visited it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import networkx as nx

from rlflow.errors import InputError
from rlflow.trajectory.record import Trajectory


class Visit(NamedTuple):
    """A state on a way: its structural hash, what it saves in percent of the start's price, and how it was reached.

    rule: of the rewrites that led there from the state before; rewrites: how many they were.
    """

    hash: str
    saved_percent: float
    rule: str = ""
    rewrites: int = 1


Way = Sequence[Visit]
"""The states of an episode or of a trajectory, the first one included."""


def way_of(trajectory: Trajectory) -> Way:
    """Return the states of a trajectory. `InputError` if nothing can be saved of its start."""
    start_ms = trajectory.start_runtime_ms
    if not start_ms > 0:
        raise InputError("nothing can be saved of a graph whose price is 0")
    steps = (Visit(s.hash, 100.0 * (start_ms - s.runtime_ms) / start_ms, s.rule) for s in trajectory.steps)
    return [Visit(trajectory.start_hash, 0.0), *steps]


def state_graph(start: str, ways: Mapping[str, Iterable[Way]]) -> nx.DiGraph:
    """Return the graph of all states on the ways of some sources, with the hash of the original as its `start`.

    A node has `saved_percent` and `sources`, names in their order with commas between; an edge has the `rule` and the
    number of `rewrites` that were first seen between its ends, and `sources`. `InputError` for a name with a comma.
    """
    if any("," in source for source in ways):
        raise InputError(f"the names of sources are separated by commas: {', '.join(ways)}")
    states = nx.DiGraph(start=start)
    for source, walked in ways.items():
        for way in walked:
            for visit in way:
                if visit.hash not in states:
                    states.add_node(visit.hash, saved_percent=visit.saved_percent, sources="")
                _add_source(states.nodes[visit.hash], source)
            for before, after in pairwise(way):
                if not states.has_edge(before.hash, after.hash):
                    states.add_edge(before.hash, after.hash, rule=after.rule, rewrites=after.rewrites, sources="")
                _add_source(states.edges[before.hash, after.hash], source)
    return states


def sources_of(states: nx.DiGraph) -> list[str]:
    """Return the names of all sources, in the order of their first states."""
    return list(dict.fromkeys(name for _, names in states.nodes(data="sources") for name in names.split(",")))


def states_of(states: nx.DiGraph, source: str) -> set[str]:
    """Return the states that a source has visited."""
    return {state for state, sources in states.nodes(data="sources") if source in sources.split(",")}


def best_of(states: nx.DiGraph, among: Iterable[str]) -> str:
    """Return the state that saves most among some, the first visited of several."""
    chosen = set(among)
    return max((s for s in states if s in chosen), key=lambda state: states.nodes[state]["saved_percent"])


def rewrites_to(states: nx.DiGraph) -> dict[str, int]:
    """Return the fewest rewrites that lead from the start to each state that can be reached from it."""
    return dict(nx.single_source_dijkstra_path_length(states, states.graph["start"], weight="rewrites"))


def _add_source(attributes: dict[str, str], source: str) -> None:
    known = attributes["sources"].split(",") if attributes["sources"] else []
    if source not in known:
        attributes["sources"] = ",".join([*known, source])
