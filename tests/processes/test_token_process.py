"""The real process over match tokens: what it says of rewrites is what happens when they are carried out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.prices import AsAWhole, drawn_prices
from support.square_graphs import graph_of, source
from support.strategies import graphs
from support.walks import REWRITER
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.agents.token_collection import play
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext, CostModel
from rlflow.cost.models import COST_MODELS
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx
from rlflow.processes.token_process import MatchLevelState, TokenProcess
from rlflow.representation.token_rollouts import TokenEpisode
from rlflow.representation.token_shards import TokenBank
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Step

MODELS = {
    "analytic": AnalyticCost,
    "deployed": lambda: drawn_prices("deployed"),
    "predicted": lambda: COST_MODELS.get("predicted")(CostContext()),
}


def build(name: str, **options: object) -> Graph:
    return from_onnx(zoo.build(name, **(SMALL[name] | options)))


def process(name: str = "bert", model: CostModel | None = None) -> TokenProcess:
    return TokenProcess(build(name), REWRITER, model or AnalyticCost())


def any_kind(state: MatchLevelState, near: np.ndarray, rng: np.random.Generator) -> int:
    return int(rng.integers(len(near)))


def walk(one: TokenProcess, steps: int, seed: int = 0) -> TokenEpisode:
    """An episode of random rewrites; that it can be made says that all matches are accounted for at each step."""
    return play(one, TokenBank(), one.start(), any_kind, steps, np.random.default_rng(seed))


@given(graphs(), st.sampled_from(sorted(MODELS)), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_matches_of_drawn_graphs_are_there_gone_turned_or_born(graph: Graph, kind: str, seed: int):
    """And rewards add up to the drop of the price."""
    model = MODELS[kind]()
    assume(model.runtime_ms(graph) > 0)
    episode = walk(TokenProcess(graph, REWRITER, model), 4, seed)
    assert episode.states[0].cost == pytest.approx(100)
    total = sum(step.reward for step in episode.steps)
    assert total == pytest.approx(episode.states[0].cost - episode.states[-1].cost, abs=1e-9)


@pytest.mark.parametrize("kind", MODELS)
def test_matches_of_a_model_are_there_gone_turned_or_born(kind: str):
    """Not vacuous: all of that happens, to classes of several matches, and rewrites save and cost."""
    episode = walk(process(model=MODELS[kind]()), 12)
    assert episode.num_steps == 12
    assert sum(step.gone.sum() for step in episode.steps) > 12
    assert sum(step.turned[:, 2].sum() for step in episode.steps) > 12
    assert sum(step.born[:, 1].sum() for step in episode.steps) > 12
    assert max(state.count.max() for state in episode.states) > 2
    rewards = [step.reward for step in episode.steps]
    assert min(rewards) < 0 < max(rewards)
    assert sum(rewards) == pytest.approx(100 - episode.states[-1].cost, abs=1e-9)


def test_a_match_that_comes_in_the_place_of_one_of_its_rule_has_turned():
    """No step ends a match of a rule and bears another of it: rewrites give nodes other numbers, that is all. Else a
    dream in which the first was taken long ago would bear it again and again. Not vacuous: there are such matches.
    """
    one, bank, replaced = process(), TokenBank(), 0
    episode = play(one, bank, one.start(), any_kind, 20, np.random.default_rng(0))
    for before, step, after in zip(episode.states, episode.steps, episode.states[1:], strict=False):
        gone = {bank.rule_of[token] for token in before.token[step.gone > 0].tolist()}
        born = {bank.rule_of[token] for token in after.token[step.born[:, 0]].tolist()}
        assert not gone & born
        replaced += step.turned[:, 2].sum()
    assert replaced > 50


@pytest.mark.parametrize("kind", MODELS)
def test_what_a_kind_saves_is_what_is_earned_by_taking_it(kind: str):
    """Every class of three states: to the precision of a float32, at the same price after it."""
    one = process(model=MODELS[kind]())
    state, rng, saved = one.start(), np.random.default_rng(1), []
    for _ in range(3):
        for place in range(len(state.saving)):
            after, step = one.take(state, state.first(place))
            assert step.chosen == place
            assert step.reward == pytest.approx(float(state.saving[place]), rel=1e-6, abs=1e-6)
            assert after.percent == pytest.approx(state.percent - step.reward)
        saved += state.saving.tolist()
        state = one.step(state, any_kind(state, state.saving, rng)).state
    assert len(saved) > 60
    assert len({round(value, 4) for value in saved}) > 10


@pytest.mark.parametrize("kind", ["analytic", "predicted"])
def test_every_match_of_a_kind_saves_the_same(kind: str):
    """Not the first alone: compared with the price of the graph after each, in units, as they are told to a network.

    Prices that are drawn for each region, without any law, keep this up for nearly all matches, but not for all: a
    region may reach further than a token sees.
    """
    one = TokenProcess(build("bert", layers=3), REWRITER, MODELS[kind]())
    state = one.step(one.start(), 3)[0]
    others = 0
    for number, ((_, match), place) in enumerate(
        zip(state.classes.matches, state.classes.token_of.tolist(), strict=True)
    ):
        after_ms = one.evaluator.cost_model.runtime_ms(REWRITER.apply(state.graph, match))
        saved_percent = state.percent - 100 * after_ms / one.start_ms
        tolerance = 1e-4 * (one.unit_percent + abs(saved_percent))
        assert saved_percent == pytest.approx(float(state.saving[place]), abs=tolerance)
        others += number != state.first(place)
    assert others > 50


def test_all_matches_of_a_class_are_taken_one_after_another():
    """The way is one of single rewrites of one rule, and ends where the process does. Not vacuous: some classes are
    taken several times, and some less often than they have matches.
    """
    one = TokenProcess(build("bert", layers=4), REWRITER, AnalyticCost())
    state, several, fewer = one.start(), 0, 0
    for match_class in range(len(state.classes.tokens)):
        found, graph = one.step(state, match_class), state.graph
        for location, passed in found.way:
            match = one.evaluator.rewriter.matches(graph)[location.rule][location.location]
            assert match.rule is state.match(state.first(match_class)).rule
            graph = one.evaluator.rewritten(graph, match)
            assert structural_hash(graph) == passed.hash
        assert structural_hash(graph) == found.state.hash
        assert found.step.reward == pytest.approx(state.percent - found.state.percent)
        several += len(found.way) > 1
        fewer += len(found.way) < state.classes.counts[match_class]
        assert 1 <= len(found.way) <= state.classes.counts[match_class]
    assert several > 10
    assert fewer


def test_a_class_takes_as_many_choices_in_a_model_of_any_depth():
    """The class first that saves most in all: as many choices with six layers as with three, and no smaller share."""
    choices, saved = [], []
    for layers in (3, 6):
        one = TokenProcess(build("bert", layers=layers), REWRITER, AnalyticCost())
        state, taken = one.start(), 0
        while state.saving_of_all.max() > 1e-6:
            state, taken = one.step(state, int(state.saving_of_all.argmax())).state, taken + 1
        choices.append(taken)
        saved.append(100.0 - state.percent)
    assert choices[0] == choices[1] < 20
    assert saved[1] > saved[0] > 0


def test_the_first_match_of_a_kind_is_the_first():
    state = process().start()
    for match_class in range(len(state.classes.tokens)):
        assert state.first(match_class) == np.flatnonzero(state.classes.token_of == match_class)[0]
    assert len(state.class_at) == len(state.classes.matches)


@pytest.mark.parametrize("name", ["bert", "squeezenet1_1"])
def test_what_is_far_from_a_rewrite_is_not_touched(name: str):
    """Matches end where nodes are shared or next to each other, and look different up to three edges away.

    That far with prices of single nodes; where prices are of regions, a region that changes shows at all its nodes.
    """
    episode, ended, turned, untouched = walk(process(name), 20), 0, 0, 0
    for before, step in zip(episode.states, episode.steps, strict=False):
        looks_different = np.bincount(step.turned[:, 0], step.turned[:, 2], len(step.gone))
        assert not step.gone[step.distance > 1].any()
        assert not looks_different[step.distance > 3].any()
        assert step.distance[step.chosen] == 0
        ended += step.gone.sum()
        turned += looks_different[step.distance > 1].sum()
        untouched += before.count[step.distance > 3].sum()
    assert min(ended, turned, untouched) > 5


@pytest.mark.parametrize("kind", MODELS)
def test_a_state_does_not_depend_on_the_way_to_it(kind: str):
    one, other = process(model=MODELS[kind]()), process(model=MODELS[kind]())
    state = one.start()
    for place in (3, 5, 7):
        state = one.step(state, place).state
    again = other.at(state.graph)
    assert [token.key for token in again.classes.tokens] == [token.key for token in state.classes.tokens]
    assert again.percent == state.percent
    assert again.saving.tolist() == state.saving.tolist()
    assert again.distance.tolist() == state.distance.tolist()


def test_alike_rewrites_are_tried_once():
    """Far fewer rewrites are carried out than classes are priced, none for what was seen before, nor unless asked."""
    one = process()
    first = one.start()
    assert one.rewrites == 0
    assert len(first.saving) >= one.rewrites > 0
    tried = one.rewrites
    assert one.start().saving.tolist() == first.saving.tolist()
    assert one.rewrites == tried
    episode = walk(one, 6)
    assert one.rewrites - tried < sum(len(state.saving) for state in episode.states) / 2


def test_the_unit_of_prices_in_percent():
    one = process()
    assert one.unit_percent == pytest.approx(100 * one.profile.median_ms / one.evaluator.runtime_ms(build("bert")))


def test_a_graph_without_matches_has_no_kinds():
    one = TokenProcess(build("bert"), Rewriter([]), AnalyticCost())
    state = one.start()
    assert state.saving.shape == (0,)
    assert state.saving.dtype == np.float32
    assert state.distance.shape == (0, 0)
    assert state.percent == pytest.approx(100)


def test_what_cannot_be_priced_is_refused():
    with pytest.raises(InputError, match="whose price is 0"):
        TokenProcess(graph_of([source()], 0), REWRITER, AnalyticCost())
    with pytest.raises(InputError, match="does not tell the prices of the parts"):
        TokenProcess(build("bert"), REWRITER, AsAWhole(AnalyticCost()))


def test_a_recorded_step_is_found_again():
    """A step that is not there is refused, and so is one of another rule."""
    one = process()
    state = one.start()
    for _ in range(3):
        number = state.first(len(state.classes.tokens) // 2)
        location, match = state.classes.matches[number]
        taken = Step(match.rule.id, location.location, "any", 1.0, 0.0)
        assert one.recorded(state, taken) == number
        state, _ = one.take(state, number)
    for step in (replace(taken, location=10_000), replace(taken, rule="another")):
        with pytest.raises(InputError, match="as was recorded: the rules or the graph differ"):
            process().recorded(process().start(), step)
