"""Chains in the order of what V has learned: never worse than greedy search, and as good as the expert it knows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import pytest
from support.detours import COST, INTO, OUT, detour_process, detour_rules, detours, rules_astray, walked
from support.pointers import beginner
from support.readers import reader_of
from support.taught import taught_by, untaught
from support.texts import filled
from support.token_worlds import small_graph
from support.walks import LIBRARY

from rlflow import zoo
from rlflow.agents.match_level.guide_process import OnnxPointer, player
from rlflow.agents.match_level.guided_chains import ChainConfig, GuidedChains, MakePlayer, guided_chains
from rlflow.agents.match_level.onnx_pointer import onnx_pointer
from rlflow.agents.match_level.scorers import EncoderScorer
from rlflow.cost.analytic import AnalyticConfig, AnalyticCost
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.method import Budget, OptimisationResult
from rlflow.onnx_io import from_onnx
from rlflow.rules.library import Library
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.rules.rule import Rule
from rlflow.search.greedy import Greedy
from rlflow.trajectory.replay import replay
from rlflow.world_model.match_level.model import MatchLevelModel

PLACES = 3
WIDTH = 6  # of chains: what the expansion in which rewrites end may go beyond them
ONCE = ChainConfig(rewrites=200, orders=("confident",), listening=1.0, saturation=0.0, by_price=0.0)
ALL = {rule.id: 1.0 for rule in LIBRARY.rules}


@pytest.fixture(scope="module")
def taught() -> MatchLevelModel:
    """By an expert who takes the detour in one place."""
    return taught_by(detour_process(1, rules_astray()), walked(detours(1), (OUT, INTO), rules_astray()))


@pytest.fixture(scope="module")
def ignorant() -> MatchLevelModel:
    return untaught(detour_process(1, rules_astray()))


def search(
    model: MatchLevelModel,
    config: ChainConfig = ONCE,
    library: Library | None = None,
    rewriter: Rewriter | None = None,
    cost: AnalyticCost = COST,
    seed: int = 0,
    shares: Mapping[str, float] | None = None,
    plays: MakePlayer | None = None,
) -> GuidedChains:
    library = library or rules_astray()
    sharing = rewriter or SharingRewriter(library.rules)
    return guided_chains(partial(EncoderScorer, reader_of(model)), library, sharing, cost, config, seed, shares, plays)


def plays_by(model: MatchLevelModel, cost: AnalyticCost = COST) -> MakePlayer:
    """A controller that goes by what V says that an expert takes."""
    pointer = OnnxPointer.of(onnx_pointer(beginner(model, greedy_weight=0.0, expert_weight=3.0)))
    return partial(player, cost_model=cost, reader=reader_of(model), pointer=pointer)


def greedy_on(graph: Graph, library: Library, cost: AnalyticCost = COST) -> OptimisationResult:
    return Greedy(library, Rewriter(library.rules), cost).optimise(graph, Budget())


def test_who_knows_the_expert_s_steps_takes_no_others(taught: MatchLevelModel, ignorant: MatchLevelModel):
    """In three places, of which the expert has shown one. Greedy search finds nothing; who knows nothing needs more."""
    graph, expert = detours(PLACES), walked(detours(PLACES), (OUT, INTO) * PLACES, rules_astray())
    greedy, exact = greedy_on(graph, rules_astray()), replace(ONCE, rewrites=2 * PLACES)
    assert greedy.best_ms == greedy.start_ms
    found = search(taught, exact).optimise(graph, Budget())
    assert found.best_ms == expert.steps[-1].runtime_ms < greedy.best_ms
    assert [step.rule for step in found.trajectory.steps] == [step.rule for step in expert.steps]
    assert search(ignorant, exact).optimise(graph, Budget()).best_ms > found.best_ms
    assert search(ignorant).optimise(graph, Budget()).best_ms == found.best_ms


def test_the_controller_plays_first(taught: MatchLevelModel, ignorant: MatchLevelModel):
    """It takes the detour in all places with two choices; chains by a V that knows nothing go from place to place."""
    graph, brief = detours(PLACES), replace(ONCE, rewrites=8)
    alone = search(ignorant, brief).optimise(graph, Budget())
    played = search(ignorant, brief, plays=plays_by(taught)).optimise(graph, Budget())
    expert = walked(graph, (OUT, INTO) * PLACES, rules_astray())
    assert played.best_ms == expert.steps[-1].runtime_ms < played.start_ms
    assert played.milestones[-1].runtime_ms == played.best_ms
    ids = [rules_astray().get(name).id for name in (OUT, INTO)]
    assert [step.rule for step in played.trajectory.steps] == [ids[0]] * PLACES + [ids[1]] * PLACES
    silent = search(ignorant, replace(brief, playing=0.0), plays=plays_by(taught)).optimise(graph, Budget())
    assert silent.trajectory.steps == alone.trajectory.steps != played.trajectory.steps
    assert played.effort.rewrites < brief.rewrites + PLACES, "the last choice is carried out whole"


def test_a_controller_that_leads_astray_costs_its_share_alone(taught: MatchLevelModel, ignorant: MatchLevelModel):
    """Half of the rewrites are left to a V that knows the way. Not vacuous: without a share C takes all of them."""
    graph, config = detours(PLACES), replace(ONCE, rewrites=6 * PLACES, playing=0.5)
    found, lost = (
        search(taught, replace(config, playing=share), plays=plays_by(ignorant)).optimise(graph, Budget())
        for share in (0.5, 1.0)
    )
    assert found.best_ms == search(taught, config).optimise(graph, Budget()).best_ms < found.start_ms
    assert lost.best_ms == lost.start_ms


def test_what_it_found_is_a_milestone(taught: MatchLevelModel, ignorant: MatchLevelModel):
    """Of the search by C alone; chains by a V that knows nothing come to it later."""
    found = search(ignorant, replace(ONCE), plays=plays_by(taught)).optimise(detours(PLACES), Budget())
    assert found.milestones[-1].runtime_ms == found.best_ms < found.start_ms
    assert found.milestones[-1].rewrites <= 3 * PLACES


def test_a_graph_without_a_price_is_left_as_it_is(taught: MatchLevelModel):
    """C could not tell what a share of its price is."""
    header = '<ir_version: 8, opset_import: ["" : 17]>'
    model = filled(f"{header} g (float[2,3] x) => (float[3,2] y) <int64[2] s = {{3, 2}}> {{ y = Reshape(x, s) }}")
    free, prices = from_onnx(model), AnalyticCost(AnalyticConfig(launch_us=0.0))
    found = search(taught, plays=plays_by(taught), cost=prices).optimise(free, Budget())
    assert found.best_ms == found.start_ms == 0.0


@pytest.mark.parametrize("has_controller", [True, False])
def test_the_way_replays(taught: MatchLevelModel, has_controller: bool):
    graph, plays = detours(PLACES), plays_by(taught) if has_controller else None
    found = search(taught, plays=plays).optimise(graph, Budget())
    *_, last = replay(graph, found.trajectory, SharingRewriter(rules_astray().rules))
    assert COST.runtime_ms(last) == found.best_ms
    assert found.trajectory.matching == "sharing"
    prices = [milestone.runtime_ms for milestone in found.milestones]
    assert prices == sorted(prices, reverse=True)
    assert (prices[0], prices[-1]) == (found.start_ms, found.best_ms)


@pytest.mark.slow
@pytest.mark.parametrize("has_controller", [True, False])
@pytest.mark.parametrize("rewrites", [0, 3, 300])
def test_it_is_never_dearer_than_greedy_search(rewrites: int, has_controller: bool):
    """With all rules on a small model, where greedy search gains something, by a V that has learned nothing."""
    graph, cost = small_graph("bert"), AnalyticCost()
    model = untaught(detour_process(1, rules_astray()))
    greedy = greedy_on(graph, LIBRARY, cost)
    assert greedy.best_ms < greedy.start_ms
    plays = plays_by(model, cost) if has_controller else None
    found = search(model, replace(ONCE, rewrites=rewrites), LIBRARY, cost=cost, plays=plays).optimise(graph, Budget())
    assert found.best_ms <= greedy.best_ms
    assert found.milestones[-1].runtime_ms == found.best_ms
    *_, last = replay(graph, found.trajectory, SharingRewriter(LIBRARY.rules))
    assert cost.runtime_ms(last) == found.best_ms
    if rewrites == 0:
        assert found.effort.rewrites == greedy.effort.rewrites


class _Recording(SharingRewriter):
    """A rewriter that notes what it carries out."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        super().__init__(rules)
        self.taken: list[Match] = []

    def apply(self, graph: Graph, match: Match) -> Graph:
        self.taken.append(match)
        return super().apply(graph, match)


@pytest.mark.slow
def test_the_same_seed_searches_alike(ignorant: MatchLevelModel):
    """Beyond the first climbs, which have no noise. Another seed goes other ways."""
    graph, config = small_graph("bert"), replace(ONCE, rewrites=500, rewrites_per_climb=30, length=2)

    def walked_by(seed: int) -> list[tuple[object, ...]]:
        rewriter = _Recording(LIBRARY.rules)
        found = search(ignorant, config, LIBRARY, rewriter, AnalyticCost(), seed).optimise(graph, Budget())
        assert (
            found.trajectory
            == search(ignorant, config, LIBRARY, None, AnalyticCost(), seed).optimise(graph, Budget()).trajectory
        )
        return [(match.rule.id, match.roots) for match in rewriter.taken]

    one, same, other = walked_by(0), walked_by(0), walked_by(1)
    assert len(one) > 100
    assert one == same != other


@pytest.mark.slow
@pytest.mark.parametrize("rewrites", [1, 5, 20, 60])
def test_rewrites_are_kept_to(ignorant: MatchLevelModel, rewrites: int):
    """On a graph on which greedy search alone takes more than the fewest of them, and progress ends at 1."""
    graph, told = small_graph("bert"), list[float]()
    before = greedy_on(graph, LIBRARY, AnalyticCost()).effort.rewrites
    config = replace(ONCE, rewrites=rewrites, orders=("confident", "patient"), by_price=0.5)
    found = search(ignorant, config, LIBRARY, cost=AnalyticCost()).optimise(
        graph, Budget(), lambda progress, _: told.append(progress)
    )
    assert before > 5
    assert rewrites <= found.effort.rewrites - before <= rewrites + WIDTH
    assert told[-1] == max(told) == 1.0


def test_a_first_step_that_failed_is_not_tried_again_in_alike_places(ignorant: MatchLevelModel):
    """The scale's way out alone leads nowhere: of three alike places a climb tries one."""
    only, climbs = detour_rules().select([detour_rules().get(OUT).id]), list[str]()
    rewriter = _Recording(only.rules)
    found = search(ignorant, replace(ONCE, rewrites=20), only, rewriter).optimise(
        detours(PLACES), Budget(), lambda _, text: climbs.append(text)
    )
    assert found.best_ms == found.start_ms
    assert len(climbs) > 10
    assert len(rewriter.taken) <= len(climbs) + 1
    assert {match.rule.name for match in rewriter.taken} == {OUT}


def test_it_ends_where_there_is_nothing_to_try(taught: MatchLevelModel):
    """Without any limit: no match at all, and none that is probable enough."""
    rules = rules_astray()
    none = rules.select([rules.get(INTO).id])
    found = search(taught, library=none).optimise(detours(1), Budget())
    assert (found.best_ms, found.effort.rewrites) == (found.start_ms, 0)
    astray = rules.select([rule.id for rule in rules.rules if rule.name.startswith("Mul")])
    unlikely = search(taught, library=astray).optimise(detours(1), Budget())
    assert unlikely.best_ms == unlikely.start_ms
    assert unlikely.effort.rewrites == greedy_on(detours(1), astray).effort.rewrites + 1


def test_where_nothing_is_probable_chains_by_price_find_the_way(ignorant: MatchLevelModel):
    """They are not tried where their share of the rewrites is 0."""
    graph, hopeless = detours(PLACES), replace(ONCE, least_probability=0.999, rewrites=40)
    best_ms = walked(graph, (OUT, INTO) * PLACES, rules_astray()).steps[-1].runtime_ms
    assert search(ignorant, hopeless).optimise(graph, Budget()).best_ms > best_ms
    found = search(ignorant, replace(hopeless, by_price=1.0)).optimise(graph, Budget())
    assert found.best_ms == best_ms


@pytest.mark.slow
def test_an_e_graph_finds_what_chains_do_not_and_only_by_rules_that_are_admitted(ignorant: MatchLevelModel):
    """On a decoder that reads one token, after hardly a climb; without a rule that is admitted it has nothing to do."""
    sizes = {"layers": 1, "hidden": 256, "heads": 4, "intermediate": 512, "vocabulary": 50}
    graph, cost = from_onnx(zoo.build("t5_decoder", **sizes, head="last")), AnalyticCost()
    greedy = greedy_on(graph, LIBRARY, cost)
    alone = replace(ONCE, rewrites=1500, listening=0.001, saturation=1.0, noise=(1.0,), rewrites_per_climb=0)

    def saved(shares: Mapping[str, float]) -> OptimisationResult:
        unheard = replace(alone, admitted_probability=1 - 1e-9)
        return search(ignorant, unheard, LIBRARY, cost=cost, shares=shares).optimise(graph, Budget())

    nothing, everything = saved({}), saved(ALL)
    assert nothing.best_ms == pytest.approx(greedy.best_ms)
    assert everything.improvement_percent > greedy.improvement_percent + 3.0
    assert everything.effort.rewrites - greedy.effort.rewrites <= alone.rewrites + WIDTH
    *_, last = replay(graph, everything.trajectory, SharingRewriter(LIBRARY.rules))
    assert cost.runtime_ms(last) == everything.best_ms
    assert everything.optimality is None, "of other rules an e-graph of some proves nothing"
    assert saved(ALL).trajectory == everything.trajectory


def test_a_share_is_part_of_the_budget(ignorant: MatchLevelModel):
    """Chains by price end with the rewrites of the budget, too, which they leave as it was."""
    graph, config = detours(PLACES), replace(ONCE, least_probability=0.999, by_price=1.0)
    before = greedy_on(graph, rules_astray()).effort.rewrites
    few = search(ignorant, config).optimise(graph, Budget(rewrites=before + 4))
    assert before + 4 <= few.effort.rewrites <= before + 4 + WIDTH
    assert search(ignorant, config).optimise(graph, Budget()).effort.rewrites > before + 4 + WIDTH


@pytest.mark.slow
@pytest.mark.parametrize("saturation", [0.0, 1.0])
def test_the_budget_ends_it(ignorant: MatchLevelModel, saturation: float):
    """As soon as it is called off, and by its expansions: while it climbs, and while an e-graph grows."""
    graph = small_graph("bert")
    asked = 0

    def called_off() -> bool:
        nonlocal asked
        asked += 1
        return asked > 400

    config = replace(ONCE, rewrites=500, saturation=saturation, listening=1.0 - saturation)
    whole = search(ignorant, config, LIBRARY, cost=AnalyticCost(), shares=ALL)
    long = whole.optimise(graph, Budget())
    for budget in (Budget(is_called_off=called_off), Budget(expansions=3)):
        short = whole.optimise(graph, budget)
        assert short.effort.rewrites < 0.8 * long.effort.rewrites
        assert short.best_ms <= short.start_ms
    assert asked > 400


def test_a_rewriter_that_does_not_share_is_refused(taught: MatchLevelModel):
    plain = replace(search(taught), rewriter=Rewriter(rules_astray().rules))
    with pytest.raises(InputError, match=r"a workspace of sharing matching.*give it a SharingRewriter"):
        plain.optimise(detours(1), Budget())


def test_progress_is_told(taught: MatchLevelModel):
    heard: list[tuple[float, str]] = []
    search(taught).optimise(detours(1), Budget(), lambda share, text: heard.append((share, text)))
    shares = [share for share, _ in heard]
    assert shares == sorted(shares)
    assert 0 < shares[0] < 1 <= shares[-1]
    assert "after 1 searches" in heard[0][1]
