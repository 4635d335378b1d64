"""The tokens of a graph's matches: what the edits do, told alike wherever they do the same."""

from collections import Counter, defaultdict
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.prices import AsAWhole, drawn_prices
from support.rewrites import each_of, embed
from support.square_graphs import renumbered
from support.strategies import graphs
from support.walks import LIBRARY, REWRITER
from support.zoo_names import SMALL, ZOO

from rlflow import zoo
from rlflow.cost.analytic import AnalyticConfig, AnalyticCost
from rlflow.cost.base import CostContext, LocalCostModel
from rlflow.cost.models import COST_MODELS
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.representation import tokeniser
from rlflow.representation.edit_graph import ADDED, EditGraphs
from rlflow.representation.price_profile import PriceProfile
from rlflow.representation.state_tokens import StateTokens
from rlflow.representation.tokeniser import TOKEN_FEATURES, Tokeniser, todays_token_vocabulary
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.verification import sampler

MODELS = {
    "analytic": AnalyticCost,
    "deployed": lambda: drawn_prices("deployed"),
    "as_written": lambda: drawn_prices("as_written"),
}


def build(name: str, **options: object) -> Graph:
    return from_onnx(zoo.build(name, **(SMALL[name] | options)))


def predicted() -> LocalCostModel:
    return COST_MODELS.get("predicted")(CostContext())


def keys(state: StateTokens) -> list[bytes]:
    """The key of each match's token."""
    return [state.tokens[place].key for place in state.token_of]


def check(state: StateTokens, graph: Graph, rewriter: Rewriter = REWRITER) -> None:
    """What is told of a graph's matches fits together, and with the rewriter's matches."""
    assert [match for _, match in state.matches] == [m for found in rewriter.matches(graph) for m in found]
    assert all(rewriter.matches(graph)[at.rule][at.location] is match for at, match in state.matches)
    assert len(state.token_of) == len(state.nodes) == len(state.matches)
    assert state.counts.tolist() == [state.token_of.tolist().count(place) for place in range(len(state.tokens))]
    assert list(dict.fromkeys(state.token_of.tolist())) == list(range(len(state.tokens)))
    assert len({token.key for token in state.tokens}) == len(state.tokens)


def walk(graph: Graph, steps: int, seed: int) -> list[Graph]:
    rng, visited = np.random.default_rng(seed), [graph]
    for _ in range(steps):
        found = [match for matches in REWRITER.matches(visited[-1]) for match in matches]
        if not found:
            break
        visited.append(REWRITER.apply(visited[-1], found[int(rng.integers(len(found)))]))
    return visited


def check_walk(graph: Graph, model: LocalCostModel, steps: int, seed: int, every: int = 1) -> set[bytes]:
    """Compare what one tokeniser tells of each `every`-th graph of a walk with what a new one does; return all keys."""
    kept, profile, seen = Tokeniser(REWRITER, model), PriceProfile.of(graph, model), set()
    kept_alive = walk(graph, steps, seed)
    for visited in kept_alive[::every]:
        state = kept.tokens(visited, profile)
        check(state, visited)
        assert keys(state) == keys(Tokeniser(REWRITER, model).tokens(visited, profile))
        assert kept.tokens(visited, profile) is state
        seen.update(keys(state))
    return seen


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ["bert", "tiny_merge", "squeezenet1_1"])
def test_what_is_remembered_does_not_show(name, kind):
    """Not vacuous: on the walk there are tokens that the first graph does not have."""
    graph, model = build(name), MODELS[kind]()
    assert len(check_walk(graph, model, steps=6, seed=1)) > len(check_walk(graph, model, steps=0, seed=1)) > 1


@given(graphs(), st.sampled_from(sorted(MODELS)), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_what_is_remembered_does_not_show_in_drawn_graphs(graph, kind, seed):
    check_walk(graph, MODELS[kind](), 3, seed)


@pytest.mark.parametrize("model", [AnalyticCost, predicted, MODELS["deployed"]])
def test_graphs_that_nobody_looks_at_do_not_show(model):
    """Each third graph of a walk is looked at, as after a step that rewrites all places that are alike."""
    assert len(check_walk(build("bert"), model(), 9, seed=2, every=3)) > 50


@given(graphs(), st.sampled_from([AnalyticCost, predicted]), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_drawn_graphs_that_nobody_looks_at_do_not_show(graph, model, seed):
    check_walk(graph, model(), 6, seed, every=2)


def test_what_was_forgotten_does_not_show(monkeypatch):
    """A tokeniser that keeps next to nothing tells the same as one that keeps all."""
    graph, model = build("bert"), drawn_prices()
    visited, profile = walk(graph, 4, seed=0), PriceProfile.of(graph, model)
    wanted = [keys(Tokeniser(REWRITER, model).tokens(each, profile)) for each in visited]
    monkeypatch.setattr(tokeniser, "_MAX_REMEMBERED", 1)
    monkeypatch.setattr(tokeniser, "_MAX_GRAPHS", 1)
    kept = Tokeniser(REWRITER, model)
    assert [keys(kept.tokens(each, profile)) for each in visited] == wanted
    assert [keys(kept.tokens(each, profile)) for each in visited[::-1]] == wanted[::-1]


def test_matches_far_from_an_edit_are_not_looked_at_again(monkeypatch):
    graph, model = build("bert", layers=4), drawn_prices()
    kept, profile, looks = Tokeniser(REWRITER, model), PriceProfile.of(graph, model), []
    around = EditGraphs.around
    monkeypatch.setattr(EditGraphs, "around", lambda *about: looks.append(about) or around(*about))
    first, second = walk(graph, 1, seed=0)
    assert len(kept.tokens(first, profile).matches) == len(looks) > 50
    looks.clear()
    found = kept.tokens(second, profile).matches
    assert 0 < len(looks) < len(found) / 2
    model = AnalyticCost()
    kept, profile, visited = Tokeniser(REWRITER, model), PriceProfile.of(graph, model), walk(graph, 3, seed=0)
    kept.tokens(visited[0], profile)
    looks.clear()
    found = kept.tokens(visited[3], profile).matches
    assert 0 < len(looks) < 2 * len(found) / 3


def changes_by_key(visited: list[Graph], model: LocalCostModel) -> dict[bytes, list[float]]:
    """The changes of the price by all matches with the same key, in the unit of the first graph's profile."""
    kept, profile = Tokeniser(REWRITER, model), PriceProfile.of(visited[0], model)
    found: dict[bytes, list[float]] = defaultdict(list)
    for graph in visited:
        state, before_ms = kept.tokens(graph, profile), model.runtime_ms(graph)
        for key, (_, match) in zip(keys(state), state.matches, strict=True):
            change_ms = model.runtime_ms(REWRITER.apply(graph, match)) - before_ms
            found[key].append(change_ms / profile.median_ms)
    return found


def assert_alike(found: dict[bytes, list[float]]) -> None:
    for changes in found.values():
        assert max(changes) == pytest.approx(min(changes), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(("name", "model"), [("bert", AnalyticCost), ("nasrnn", AnalyticCost), ("bert", predicted)])
def test_matches_that_look_alike_change_the_price_by_the_same(name, model):
    """Not vacuous: many have the same key, and by far not all changes are the same."""
    found = changes_by_key(walk(build(name), 4, seed=3), model())
    assert_alike(found)
    assert sum(len(changes) > 1 for changes in found.values()) > 10
    assert len({round(changes[0], 3) for changes in found.values()}) > 5


@given(graphs(), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_matches_of_drawn_graphs_that_look_alike_change_the_price_by_the_same(graph, seed):
    assert_alike(changes_by_key(walk(graph, 1, seed), AnalyticCost()))


def counted(graph: Graph, model: LocalCostModel, profile: PriceProfile) -> Counter[bytes]:
    return Counter(keys(Tokeniser(REWRITER, model).tokens(graph, profile)))


@given(graphs(), st.sampled_from(sorted(MODELS)), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_numbers_of_nodes_do_not_matter(graph, kind, seed):
    model = MODELS[kind]()
    assume(len(graph.order))
    profile = PriceProfile.of(graph, model)
    other = renumbered(graph, seed)
    assert PriceProfile.of(other, model) == profile
    assert counted(other, model, profile) == counted(graph, model, profile)


@pytest.mark.parametrize("kind", MODELS)
def test_the_numbers_of_layers_do_not_matter(kind):
    """After some rewrites, so that nothing stands where it did, and numbered anew in any order."""
    model = MODELS[kind]()
    graph = walk(build("bert", layers=3), 5, seed=2)[-1]
    profile = PriceProfile.of(graph, model)
    one = counted(graph, model, profile)
    assert counted(renumbered(graph, 7), model, profile) == one
    assert len(one) > 20


@pytest.mark.parametrize("kind", MODELS)
def test_layers_that_are_alike_have_the_same_tokens(kind):
    """Four times as many layers have hardly a token more: only counts grow."""
    states = {}
    for layers in (3, 12):
        graph, model = build("bert", layers=layers), MODELS[kind]()
        states[layers] = Tokeniser(REWRITER, model).tokens(graph, PriceProfile.of(graph, model))
    few, many = states[3], states[12]
    assert len(many.matches) > 3 * len(few.matches)
    assert len(many.tokens) <= len(few.tokens) + 8
    assert many.counts.max() >= 12


def test_which_rule_it_is_does_not_matter():
    """The same rules once more, under other names: each match is there twice, with the same token."""
    graph, model = build("bert"), AnalyticCost()
    profile = PriceProfile.of(graph, model)
    renamed = [replace(rule, name=f"{rule.name} again", family="other") for rule in LIBRARY.rules]
    assert {rule.id for rule in renamed}.isdisjoint(rule.id for rule in LIBRARY.rules)
    one = Tokeniser(REWRITER, model).tokens(graph, profile)
    other = Tokeniser(Rewriter(renamed), model).tokens(graph, profile)
    assert keys(one) == keys(other)


def test_profiles_are_not_mixed_up():
    """Prices in another unit are other tokens, in whatever order they are asked for."""
    graph, model = build("bert"), AnalyticCost()
    profile = PriceProfile.of(graph, model)
    dearer = replace(profile, median_ms=2 * profile.median_ms)
    kept, (first, second) = Tokeniser(REWRITER, model), walk(graph, 1, seed=0)
    for visited in (first, second):
        one, other = kept.tokens(visited, profile), kept.tokens(visited, dearer)
        assert set(keys(one)).isdisjoint(keys(other))
        assert keys(other) == keys(Tokeniser(REWRITER, model).tokens(visited, dearer))


def test_a_machine_that_is_slower_in_all_gives_the_same_tokens():
    """To the bit, if it is slower by a power of two."""
    graph, one = build("bert"), AnalyticConfig()
    other = AnalyticConfig(one.gflops_per_s / 4, one.gbytes_per_s / 4, one.launch_us * 4)
    states = []
    for machine in (one, other):
        model = AnalyticCost(machine)
        states.append(Tokeniser(REWRITER, model).tokens(graph, PriceProfile.of(graph, model)))
    assert keys(states[0]) == keys(states[1])


def test_a_token_in_closed_form():
    """The prices of all nodes are those of the cost model, an added one's is what a linear machine takes for it."""
    graph, model = build("bert"), AnalyticCost(AnalyticConfig(gflops_per_s=1e30))
    profile = PriceProfile.of(graph, model)
    state = Tokeniser(REWRITER, model).tokens(graph, profile)
    for place, (_, match) in zip(state.token_of, state.matches, strict=True):
        token, after = state.tokens[place], REWRITER.apply(graph, match)
        column = TOKEN_FEATURES.index("log2_price")
        assert token.features[:, column] == pytest.approx(np.log2(token.price) / 16, abs=1e-5)
        estimated = token.features[:, TOKEN_FEATURES.index("log2_estimated_price")]
        assert estimated == pytest.approx(token.features[:, column], abs=1e-4)
        change = model.runtime_ms(after) - model.runtime_ms(graph)
        told = token.price[token.role == ADDED].sum() - token.price[token.role == 0].sum()
        assert told * profile.median_ms == pytest.approx(change, rel=1e-3, abs=1e-7)


ODD = {
    "loop": {},  # opaque nodes, of several outputs, and values of unknown types
    "bert": {"sequence": "s", "batch": "b"},
    "nasrnn": {},
    "inception_v3": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ODD)
def test_odd_models_have_tokens(name, kind):
    assert check_walk(build(name, **ODD[name]), MODELS[kind](), steps=2, seed=0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ZOO)
def test_all_models_have_tokens(name, kind):
    check_walk(build(name), MODELS[kind](), steps=4, seed=0)


def test_a_graph_without_matches_has_no_tokens():
    graph, model = build("tiny_chain"), AnalyticCost()
    state = Tokeniser(Rewriter([]), model).tokens(graph, PriceProfile.of(graph, model))
    check(state, graph, Rewriter([]))
    assert state.token_of.shape == state.counts.shape == (0,)


@each_of(LIBRARY.rules)
def test_every_match_of_every_rule_has_a_token(rule):
    graph = embed(rule, sampler.draw(rule, Random(0)), np.random.default_rng(0))[0]
    rewriter = Rewriter([replace(rule, profitable_if=())])  # what is drawn is small
    for make in MODELS.values():
        model = make()
        check(Tokeniser(rewriter, model).tokens(graph, PriceProfile.of(graph, model)), graph, rewriter)


def test_a_vocabulary_says_what_is_told():
    """One with fewer features and operators, in which what is not known is opaque."""
    today = todays_token_vocabulary()
    fewer = Vocabulary((*today.operators[:3], "MatMul"), ("is_output", "log2_price"))
    graph, model = build("bert"), AnalyticCost()
    profile = PriceProfile.of(graph, model)
    one = Tokeniser(REWRITER, model).tokens(graph, profile)
    other = Tokeniser(REWRITER, model, fewer).tokens(graph, profile)
    assert {token.features.shape[1] for token in other.tokens} == {2}
    assert {int(op) for token in other.tokens for op in token.op} == {1, 3}
    assert len(other.tokens) <= len(one.tokens)
    with pytest.raises(InputError, match="feature age, which this version of rlflow does not compute"):
        Tokeniser(REWRITER, model, replace(today, features=("age",)))


def test_a_cost_model_that_tells_no_parts_is_refused():
    with pytest.raises(InputError, match="analytic does not tell the prices of the parts of a graph"):
        Tokeniser(REWRITER, AsAWhole(AnalyticCost()))
