"""A search in a workspace of sharing matching begins with what another search found.

A search with a plain rewriter is quick, and finds most of what is to be gained. Its result is where stronger searches
begin, which are then never worse:

    state = seeded(work, greedy, work.ledger.child(time_s=10))

Invariant: every step is taken again by the workspace's own rewriter, so that the way from the original to the result
stays one trajectory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from rlflow.ir.graph import Graph
from rlflow.method import Ledger, State, Workspace
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.rules.rule import Rule
from rlflow.search.base import Search
from rlflow.search.greedy import descend
from rlflow.trajectory.transfer import steps_taken


def seeded(work: Workspace, seed: Search, ledger: Ledger) -> State:
    """Return what `seed` makes of the start on an account, its steps taken again by a rewriter that shares.

    The effort is that of the seeding search, whose rewrites are not counted once more when they are taken again. If the
    rewriter refuses some, its milestones are not the workspace's, and greedy search goes on from the others.
    """
    state, known = work.start, len(ledger.milestones)
    inside = seed.inside(state.graph, ledger)
    way = inside.trajectory(inside.start, seed.improve(inside, inside.start))
    used = [step.rule for step in way.steps]
    private, sharing = Rewriter(some_rules(work.rewriter, used)), SharingRewriter(some_rules(work.rewriter, used))
    walk = list(steps_taken(state.graph, way, state.graph, private, sharing))
    taken = [(step.rule, step.location, graph) for step, graph in walk if step is not None]
    is_complete = len(taken) == len(walk)
    if not is_complete:
        del ledger.milestones[known:]
    state = followed(work, state, taken, work.arrived_again)
    return state if is_complete else descend(work, state)


def some_rules(rewriter: Rewriter, identifiers: Collection[str]) -> list[Rule]:
    """Return some of the rules of a rewriter; a location counts among the matches of its own rule, in any company."""
    wanted = frozenset(identifiers)
    return [rule for rule in rewriter.rules if rule.id in wanted]


def followed(
    work: Workspace,
    state: State,
    steps: Iterable[tuple[str, int, Graph]],
    arrived: Callable[[State, Location, Graph], State],
) -> State:
    """Return the state after steps that were taken elsewhere: rule, location, and the graph to which it led.

    `arrived` makes the state after one step: `Workspace.arrived`, or `arrived_again` if the steps were counted before.
    """
    numbers = {rule.id: number for number, rule in enumerate(work.rewriter.rules)}
    for rule, location, graph in steps:
        state = arrived(state, Location(numbers[rule], location), graph)
    return state
