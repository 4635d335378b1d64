"""The states that the methods of an experiment visit on one graph, as a graph of their own: what they share.

states = visited_states(stage, outcomes)
nx.write_graphml(states, path)
overlap(states)                         the figures: schema `StateGraph`
"""

from collections.abc import Mapping

import networkx as nx
from tracking.stage import Stage

from experiment.comparison import Outcome
from experiment.documents.evaluate import SourceStates, StateGraph
from experiment.formulations.rollouts import rollouts_of
from rlflow.errors import InputError
from rlflow.trajectory import record
from rlflow.trajectory.state_graph import best_of, rewrites_to, sources_of, state_graph, states_of, way_of

ROLLOUTS, POLICY = "rollouts", "policy"


def visited_states(stage: Stage, outcomes: Mapping[str, Outcome]) -> nx.DiGraph:
    """Return the states of the rollouts, of the policy's episodes, and of each method's way to its result.

    `InputError` where a method has the name of one of the first two.
    """
    policy = record.load(stage.input(f"data/policies/{stage.graph}/ways.jsonl"))
    own = {ROLLOUTS: rollouts_of(stage.settings).ways(stage), POLICY: map(way_of, policy)}
    if taken := own.keys() & outcomes.keys():
        raise InputError(
            f"no method can be called {' or '.join(sorted(taken))}: the experiment has states of that name"
        )
    ways = {name: way_of(outcome.result.trajectory) for name, outcome in outcomes.items()}
    start, *_ = next(iter(ways.values()))
    return state_graph(start.hash, own | {name: [way] for name, way in ways.items()})


def overlap(states: nx.DiGraph) -> StateGraph:
    """Return which states sources share, and how few rewrites of any source lead to the best of each."""
    visited = {source: states_of(states, source) for source in sources_of(states)}
    rewrites = rewrites_to(states)
    found = {}
    for source, own in visited.items():
        best = best_of(states, own)
        found[source] = SourceStates(
            states=len(own),
            alone=sum(states.nodes[state]["sources"] == source for state in own),
            best_saved_percent=states.nodes[best]["saved_percent"],
            rewrites_to_best=rewrites.get(best),
            shared={other: len(own & theirs) for other, theirs in visited.items() if other != source},
        )
    return StateGraph(states=len(states), edges=states.number_of_edges(), sources=found)
