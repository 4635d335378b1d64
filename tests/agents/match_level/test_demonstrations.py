"""A demonstration says of each match whether the expert takes it, and what that leads to, as it is defined."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support.detours import INTO, OUT, detour_process, walked
from support.token_worlds import small_graph
from support.walks import LIBRARY, SHARING

from rlflow.agents.match_level.demonstrations import GainConfig, demonstrate
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.method import Budget, Ledger, Workspace
from rlflow.processes.token_process import Place, TokenProcess, place_of
from rlflow.representation.token_rollouts import Demonstration, TokenEpisode
from rlflow.representation.token_shards import TokenBank
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.search.greedy import descend
from rlflow.trajectory.record import Trajectory

CONFIG = GainConfig(discount=0.9, horizon=30)


def shown(number: int, *names: str, config: GainConfig = CONFIG) -> TokenEpisode:
    """What the steps of these names teach, on so many alike detours side by side."""
    process = detour_process(number)
    start = process.start().graph
    return demonstrate(process, TokenBank(), walked(start, names), config)


def told(episode: TokenEpisode) -> Demonstration:
    assert episode.demonstration is not None
    return episode.demonstration


def test_a_step_that_loses_is_worth_what_it_makes_possible():
    """Moving the scale costs 7 % and lets it disappear, which saves 16 %."""
    episode = shown(1, OUT, INTO)
    loss, saving = (step.reward for step in episode.steps)
    assert loss < -5
    assert saving > 15
    taken, gain = told(episode).taken, told(episode).gain
    assert [labels.tolist() for labels in taken] == [[1.0], [1.0], []]
    assert gain[0].tolist() == pytest.approx([0.9 * (loss + saving)], rel=1e-6)
    assert gain[1].tolist() == pytest.approx([saving], rel=1e-6)


@pytest.mark.parametrize(("names", "horizon"), [((OUT,), 30), ((OUT, INTO), 0)])
def test_without_what_it_makes_possible_it_is_worth_nothing(names: tuple[str, ...], horizon: int):
    """It is taken nevertheless."""
    episode = shown(1, *names, config=replace(CONFIG, horizon=horizon))
    assert episode.steps[0].reward < 0
    assert told(episode).taken[0].tolist() == [1.0]
    assert told(episode).gain[0].tolist() == [0.0]


def test_taken_is_the_share_of_a_kind_in_the_steps_that_are_left():
    """Two scales look alike; only one of them is moved, so that half of the class is taken, and afterwards none."""
    episode = shown(2, OUT, INTO)
    first, second, last = (dict(zip(s.token.tolist(), s.count.tolist(), strict=True)) for s in episode.states)
    (alike,) = first
    assert (first[alike], second[alike], last[alike]) == (2, 1, 1)
    shares = [
        dict(zip(state.token.tolist(), labels.tolist(), strict=True))
        for state, labels in zip(episode.states, told(episode).taken, strict=True)
    ]
    assert shares[0] == {alike: 0.5}
    assert shares[1][alike] == 0.0
    assert sorted(shares[1].values()) == [0.0, 1.0]
    assert shares[2] == {alike: 0.0}


def test_the_order_of_steps_in_different_places_does_not_show():
    one, other = shown(2, OUT, INTO, OUT, INTO), shown(2, OUT, OUT, INTO, INTO)
    assert told(one).taken[0].tolist() == told(other).taken[0].tolist() == [1.0]
    assert told(one).gain[0].tolist() == pytest.approx(told(other).gain[0].tolist(), rel=1e-6)
    assert told(one).gain[0][0] > 0


def wandering(graph: Graph, steps: int, seed: int) -> Trajectory:
    """A random walk, each of whose steps is near the last one if any is, and then the way down of greedy search."""
    rng = np.random.default_rng(seed)
    work = Workspace.begin(graph, SHARING, AnalyticCost(), LIBRARY.hash, Ledger(Budget()))
    state = work.start
    for _ in range(steps):
        edit = state.graph.edit
        changed = set() if state.parent is None or edit is None else set(edit.change.touched)
        actions = work.actions(state)
        near = [action for action in actions if changed & set(_match(state.graph, action).nodes)]
        pool = near or actions
        state = work.step(state, pool[int(rng.integers(len(pool)))])
    return work.trajectory(work.start, descend(work, state))


def _match(graph: Graph, action) -> Match:
    return SHARING.matches(graph)[action.rule][action.location]


def defined(graph: Graph, trajectory: Trajectory, config: GainConfig) -> list[dict[Place, float]]:
    """Of each state the places of the steps that are left with their gains, by the words of the definition.

    A step depends on another if a chain leads from one to the other in which each reads what the one before it made.
    """
    numbers = {rule.id: number for number, rule in enumerate(SHARING.rules)}
    graphs, matches = [graph], list[Match]()
    for step in trajectory.steps:
        matches.append(SHARING.matches(graphs[-1])[numbers[step.rule]][step.location])
        graphs.append(SHARING.apply(graphs[-1], matches[-1]))
    made = [{i for i, node in after.nodes.items() if before.nodes.get(i) != node} for before, after in pairwise(graphs)]
    read = []
    for one, match in zip(graphs, matches, strict=False):
        bound = {ref.node for ref in match.bindings.values()}
        read.append({*match.nodes} | {node for node in bound if not one.nodes[node].constant})
    prices = [AnalyticCost().runtime_ms(one) for one in graphs]
    saved = [100 * (before - after) / prices[0] for before, after in pairwise(prices)]

    gains = []
    for step in range(len(matches)):
        dependent = [step]
        for later in range(step + 1, len(matches)):
            if any(made[earlier] & read[later] for earlier in dependent):
                dependent.append(later)
        prefixes = range(min(len(dependent), config.horizon + 1))
        gains.append(max(config.discount**n * sum(saved[one] for one in dependent[: n + 1]) for n in prefixes))
    places = [place_of(match) for match in matches]
    return [dict(zip(places[now:], gains[now:], strict=True)) for now in range(len(graphs))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("horizon", [2, 30])
def test_labels_are_those_of_the_definition(seed: int, horizon: int):
    """Not vacuous: many matches are taken, their gains differ, and some of them are more than what is saved at once."""
    graph, config = small_graph("bert"), GainConfig(0.9, horizon)
    trajectory = wandering(graph, 8, seed)
    process = TokenProcess(graph, SharingRewriter(LIBRARY.rules), AnalyticCost())
    episode = demonstrate(process, TokenBank(), trajectory, config)
    expected = defined(graph, trajectory, config)

    situation, compared = process.start(), 0
    numbers = {rule.id: number for number, rule in enumerate(process.rules)}
    for now, left in enumerate(expected):
        classes = situation.classes
        matches = [place_of(match) for _, match in classes.matches]
        for match_class in range(len(classes.tokens)):
            mine = [
                left[place]
                for place, of in zip(matches, classes.token_of, strict=True)
                if of == match_class and place in left
            ]
            assert told(episode).taken[now][match_class] == pytest.approx(len(mine) / classes.counts[match_class])
            assert told(episode).gain[now][match_class] == pytest.approx(max([0.0, *mine]), abs=1e-4)
            compared += len(mine)
        if now < len(trajectory.steps):
            step = trajectory.steps[now]
            number = next(
                n
                for n, (location, _) in enumerate(classes.matches)
                if (location.rule, location.location) == (numbers[step.rule], step.location)
            )
            situation, _ = process.take(situation, number)
    assert compared > 20
    gains, rewards = list(expected[0].values()), [step.reward for step in trajectory.steps]
    assert len({round(gain, 6) for gain in gains if gain > 0}) > 3
    assert sum(gain > reward + 1e-3 for gain, reward in zip(gains, rewards, strict=True)) > 2
