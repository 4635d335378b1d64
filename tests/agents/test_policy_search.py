"""Every policy as a search: its order of episodes, shown by players whose episodes are written down, and properties.

Networks are as initialised: what is tested with them holds for any policy.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count

import pytest
import torch
from support.detours import COST, INTO, OUT, detour_rules, detours, walked
from support.formulations import SEARCHES
from support.searches import CountingRewriter
from support.token_worlds import small_graph
from support.walks import LIBRARY, REWRITER

from rlflow import zoo
from rlflow.agents.player import Player
from rlflow.agents.policy_search import PolicySearch, judge_on
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget, Ledger, OptimisationResult, State, Workspace
from rlflow.onnx_io import from_onnx
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Location
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.search.greedy import Greedy
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import replay

DETOURS = detour_rules()
PLACES = 2


class Scripted(Player):
    """The prices of the best graphs of its episodes are given; each episode rewrites once, and is noted."""

    def __init__(self, work: Workspace, start: State, found: list[float], played: list[tuple[bool, int]]) -> None:
        self._work, self._start, self._found, self._played = work, start, found, played
        self._match = next(match for group in REWRITER.matches(start.graph) for match in group)

    def play(self, generator: torch.Generator | None, candidates: int) -> State:
        self._played.append((generator is not None, candidates))
        self._work.evaluator.rewritten(self._start.graph, self._match)
        return State(self._start.graph, self._found[len(self._played) - 1] * self._start.runtime_ms, self._start)


@dataclass(frozen=True, kw_only=True)
class Script(PolicySearch):
    """found: what the best graph of each episode costs, as a share of the start's price."""

    found: list[float]
    played: list[tuple[bool, int]] = field(default_factory=list)

    def player(self, work: Workspace, state: State) -> Player:
        return Scripted(work, state, self.found, self.played)


class Walker(Player):
    """Follows a way that is written down, one rewrite after another."""

    def __init__(self, work: Workspace, start: State, way: Trajectory) -> None:
        self._work, self._start, self._way = work, start, way

    def play(self, generator: torch.Generator | None, candidates: int) -> State:
        state, numbers = self._start, {rule.id: number for number, rule in enumerate(self._work.rewriter.rules)}
        for step in self._way.steps:
            state = self._work.step(state, Location(numbers[step.rule], step.location))
        return state


@dataclass(frozen=True, kw_only=True)
class Walk(PolicySearch):
    way: Trajectory

    def player(self, work: Workspace, state: State) -> Player:
        return Walker(work, state, self.way)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return from_onnx(zoo.build("tiny_chain"))


def script(*found: float, sampled_episodes: int = 2, candidates: int = 4) -> Script:
    return Script(
        LIBRARY,
        REWRITER,
        AnalyticCost(),
        sampled_episodes=sampled_episodes,
        candidates=candidates,
        found=list(found),
    )


def walk(names: Iterable[str], library: Library = DETOURS) -> Walk:
    way, rewriter = walked(detours(PLACES), [*names], DETOURS), SharingRewriter(library.rules)
    return Walk(library, rewriter, COST, sampled_episodes=0, candidates=1, way=way)


def test_the_first_episode_is_the_policy_s_own_and_drawn_ones_come_last(graph: Graph) -> None:
    search = script(0.9, 0.9, 0.9, 0.9)
    search.optimise(graph, Budget())
    assert search.played == [(False, 1), (False, 4), (True, 4), (True, 4)]
    alone = script(0.9, 0.9, 0.9, candidates=1)
    alone.optimise(graph, Budget())
    assert alone.played == [(False, 1), (True, 1), (True, 1)]


def test_the_best_of_all_episodes_is_kept_and_the_original_counts(graph: Graph) -> None:
    """Each milestone is cheaper than the one before; the second and the last episode found nothing new."""
    result = script(0.8, 0.9, 0.6, 0.7).optimise(graph, Budget())
    start_ms = AnalyticCost().runtime_ms(graph)
    assert (result.start_ms, result.best_ms) == (start_ms, 0.6 * start_ms)
    assert [milestone.runtime_ms for milestone in result.milestones] == [start_ms, 0.8 * start_ms, 0.6 * start_ms]
    assert [milestone.rewrites for milestone in result.milestones] == [0, 1, 3]
    worse = script(1.1, 1.2, 1.3, 1.4).optimise(graph, Budget())
    assert worse.best_ms == worse.start_ms == start_ms
    assert worse.effort.rewrites == 4


def test_a_budget_ends_between_episodes(graph: Graph) -> None:
    """Of episodes, of time and of rewrites, of which each episode carries out one; or whoever calls off."""
    for budget, best in ((Budget(expansions=1), 0.9), (Budget(rewrites=2), 0.5), (Budget(time_s=1e-9), 1.0)):
        result = script(0.9, 0.5, 0.4, 0.3).optimise(graph, budget)
        assert result.best_ms == best * result.start_ms
    called_off = script(0.9, 0.8, 0.7, 0.6)
    result = called_off.optimise(graph, Budget(is_called_off=lambda: True))
    assert (result.best_ms, called_off.played) == (result.start_ms, [])


def test_a_judge_tells_what_a_controller_improves_and_what_that_took(graph: Graph) -> None:
    trial = judge_on(graph, lambda found: script(found, sampled_episodes=0, candidates=1))(0.75)
    assert trial.score_percent == pytest.approx(25.0)
    assert trial.rewrites == 1


def test_visits_are_the_policy_s_own() -> None:
    """The most probable actions first, and nothing is tried beside them, however many candidates it may have."""
    graph = from_onnx(zoo.build("tiny_chain"))
    search = script(0.9, 0.8, 0.7, candidates=4)
    visits = search.visits(graph, drawn=2)
    assert search.played == [(False, 1), (True, 1), (True, 1)]
    assert (len(visits.trajectories), visits.rewrites) == (3, 3)
    (trajectory,) = walk((OUT, INTO)).visits(detours(PLACES), drawn=0).trajectories
    assert trajectory == walk((OUT, INTO)).way


def test_after_greedy_search_a_policy_that_knows_more_is_followed() -> None:
    """Greedy search takes no step here: the first one of the detour costs something."""
    graph, search = detours(PLACES), walk((OUT, INTO) * PLACES)
    greedy = Greedy(DETOURS, search.rewriter, COST).optimise(graph, Budget())
    assert greedy.best_ms == greedy.start_ms
    found = search.after_greedy().optimise(graph, Budget())
    assert found.best_ms == search.way.steps[-1].runtime_ms < greedy.best_ms
    *_, last = replay(graph, found.trajectory, search.rewriter)
    assert COST.runtime_ms(last) == found.best_ms
    assert found.effort.rewrites == greedy.effort.rewrites + len(search.way.steps)
    prices = [milestone.runtime_ms for milestone in found.milestones]
    assert prices == sorted(prices, reverse=True)
    assert prices[-1] == found.best_ms
    assert found.milestones[-1].rewrites == found.effort.rewrites


def test_after_greedy_search_a_policy_that_knows_less_is_not() -> None:
    """Half of the detour is dearer than the original, with which greedy search ends."""
    graph, search = detours(PLACES), walk((OUT,))
    assert search.way.steps[-1].runtime_ms > search.way.start_runtime_ms
    found = search.after_greedy().optimise(graph, Budget())
    greedy = Greedy(DETOURS, search.rewriter, COST).optimise(graph, Budget())
    assert (found.best_ms, found.trajectory) == (greedy.best_ms, greedy.trajectory)
    assert found.effort.rewrites == greedy.effort.rewrites + 1
    assert found.milestones == found.milestones[:1]


def test_greedy_search_alone_is_left_where_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count()
    monkeypatch.setattr(Ledger, "elapsed_s", property(lambda ledger: float(next(clock))))
    found = walk((OUT, INTO)).after_greedy().optimise(detours(PLACES), Budget(time_s=0.5))
    assert found.best_ms == found.start_ms
    assert found.trajectory.steps == ()


@pytest.mark.parametrize(
    "budget", [Budget(rewrites=1), Budget(is_called_off=lambda: True)], ids=["rewrites", "called off"]
)
def test_greedy_search_alone_is_left_where_nothing_else_is_to_be_done(budget: Budget) -> None:
    """By rewrites, of which greedy search needs more here, and where the search is called off."""
    graph, search = small_graph("bert"), walk((OUT,), LIBRARY)
    greedy = Greedy(LIBRARY, search.rewriter, COST).optimise(graph, budget)
    assert search.after_greedy().optimise(graph, budget).trajectory == greedy.trajectory


@pytest.fixture(params=sorted(SEARCHES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def search_of(name: str, **options: int) -> PolicySearch:
    """A search of the formulation, with a rewriter that counts."""
    search = SEARCHES[name][0](**options)
    return replace(search, rewriter=CountingRewriter(search.rewriter.rules))


def graph_of(name: str) -> Graph:
    return SEARCHES[name][1]()


def found(name: str, budget: Budget | None = None, **options: int) -> OptimisationResult:
    return search_of(name, **options).optimise(graph_of(name), budget or Budget())


def test_it_ends_no_dearer_than_it_began_and_its_record_leads_to_the_best_graph(name: str) -> None:
    """With tries, so that something is found: not vacuous, since the result is cheaper."""
    search, graph = search_of(name, candidates=8), graph_of(name)
    result = search.optimise(graph, Budget())
    prices = search.cost_model
    assert prices.runtime_ms(result.best) == result.best_ms < result.start_ms == prices.runtime_ms(graph)
    assert result.best_ms == min(milestone.runtime_ms for milestone in result.milestones)
    *_, last = replay(graph, result.trajectory, search.rewriter)
    assert structural_hash(last) == structural_hash(result.best)
    assert result.trajectory.steps[-1].runtime_ms == result.best_ms
    assert (result.trajectory.start_hash, result.trajectory.library) == (structural_hash(graph), search.library.hash)
    saved = sum(step.reward for step in result.trajectory.steps)
    assert saved == pytest.approx(result.improvement_percent)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result_and_another_seed_another(name: str) -> None:
    """In one search that is used again, too. Without drawn episodes no seed matters."""
    search, graph = search_of(name, seed=1), graph_of(name)
    one, again, other = search.optimise(graph, Budget()), search.optimise(graph, Budget()), found(name, seed=1)
    assert one.trajectory == again.trajectory == other.trajectory
    assert one.effort.rewrites == other.effort.rewrites > 0
    drawn = [found(name, seed=seed) for seed in range(3)]
    assert len({(result.trajectory.steps, result.effort.rewrites) for result in drawn}) > 1
    likeliest = [found(name, seed=seed, sampled_episodes=0) for seed in (0, 1)]
    assert likeliest[0].trajectory == likeliest[1].trajectory


def test_all_rewrites_are_counted_once(name: str) -> None:
    search = search_of(name, candidates=3)
    result = search.optimise(graph_of(name), Budget())
    assert isinstance(search.rewriter, CountingRewriter)
    assert result.effort.rewrites == search.rewriter.applied > 0


@pytest.mark.slow
def test_more_episodes_and_tries_are_never_worse(name: str) -> None:
    """An episode without tries is always among those of which the best is taken."""
    alone, drawn, helped = (
        found(name, sampled_episodes=episodes, candidates=tries) for episodes, tries in ((0, 1), (4, 1), (0, 8))
    )
    assert max(drawn.best_ms, helped.best_ms) <= alone.best_ms
    assert drawn.effort.rewrites > alone.effort.rewrites > 0
    assert helped.effort.rewrites > alone.effort.rewrites or name == "candidates", "all of which are carried out anyway"


@pytest.mark.slow
def test_budgets_are_kept(name: str) -> None:
    """Of episodes, of rewrites, of time, and until it is called off, in the middle of an episode."""
    told = list[float]()
    search, graph = search_of(name, sampled_episodes=4), graph_of(name)
    search.optimise(graph, Budget(expansions=2), lambda fraction, _: told.append(fraction))
    assert len(told) == 2
    most = found(name, sampled_episodes=4).effort.rewrites
    limited = found(name, Budget(rewrites=most // 2), sampled_episodes=4)
    step = 20 if name == "candidates" else 1
    assert most // 2 <= limited.effort.rewrites < most // 2 + step < most
    assert found(name, Budget(time_s=1e-9)).trajectory.steps == ()

    asked = list[int]()
    called_off = found(name, Budget(is_called_off=lambda: asked.append(0) or len(asked) > 4), sampled_episodes=4)
    assert called_off.effort.rewrites <= 5 * step
    assert len(asked) < 10
