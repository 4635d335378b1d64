"""What V is compared with: chains in a random order, by the means of rules, and by a V that has learned nothing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.detours import COST, INTO, OUT, detour_process, detours, rules_astray, walked
from support.taught import lessons_of, taught_by

from rlflow.agents.match_level.baselines import (
    RandomScorer,
    RuleMeanScorer,
    chains_random,
    rule_mean,
    untrained,
)
from rlflow.agents.match_level.guided_chains import ChainConfig, GuidedChains
from rlflow.agents.match_level.rule_guard import RuleGuard
from rlflow.agents.match_level.rule_means import RuleMeans
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.method import Budget
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter

PLACES = 3
RULES = rules_astray()
REWRITER = SharingRewriter(RULES.rules)


@pytest.fixture(scope="module")
def means() -> RuleMeans:
    """Of an expert who takes the detour in one place, and none of the other matches."""
    process = detour_process(1, RULES)
    return RuleMeans.of(lessons_of(process, [walked(detours(1), (OUT, INTO), RULES)]))


@pytest.fixture(scope="module")
def folder(means: RuleMeans, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of a policy which knows the expert, with the means of the same lesson beside it."""
    place = tmp_path_factory.mktemp("policy")
    model = taught_by(detour_process(1, RULES), walked(detours(1), (OUT, INTO), RULES))
    TaughtGuide(model, ChainConfig(orders=("confident",))).save(place)
    means.save(place)
    return place


def told(search: GuidedChains) -> list[float]:
    """What its network says of the matches in a graph."""
    return search.scored_by(detours(1), REWRITER, COST).of(detours(1)).taken.tolist()


def test_a_random_order_is_another_each_time_and_the_same_for_a_seed():
    graph = detours(PLACES)

    def orders(seed: int) -> list[list[int]]:
        judge = RandomScorer(seed, graph, REWRITER, COST)
        return [np.argsort(judge.of(graph).taken).tolist() for _ in range(3)]

    one, same, other = orders(0), orders(0), orders(1)
    assert one == same != other
    assert one[0] != one[1] != one[2]
    scores = RandomScorer(0, graph, REWRITER, COST).of(graph)
    assert sorted(one[0]) == list(range(len(scores.state.matches)))
    assert not scores.gain.any()


def test_matches_of_a_rule_are_judged_alike(means: RuleMeans):
    graph = detours(PLACES)
    scores = RuleMeanScorer(means, graph, REWRITER, COST).of(graph)
    by_rule: dict[str, set[tuple[float, float, float]]] = {}
    told = zip(scores.taken, scores.gain, scores.saving, strict=True)
    for (_, match), of_match in zip(scores.state.matches, told, strict=True):
        by_rule.setdefault(match.rule.name, set()).add(of_match)
    assert len(scores.state.matches) > len(by_rule) > 1
    assert all(len(told) == 1 for told in by_rule.values())
    ((best, *_),) = by_rule.pop(OUT)
    assert all(best > taken for told in by_rule.values() for taken, *_ in told)
    assert np.isfinite(scores.taken).all(), "shares of 0 and 1 as well"


def test_a_rule_without_a_mean_has_that_of_all():
    out = RULES.get(OUT).id
    scores = RuleMeanScorer(RuleMeans({out: 0.2, "another": 0.4}, {}, {}), detours(1), REWRITER, COST).of(detours(1))
    shares = {match.rule.id: 1 / (1 + np.exp(-taken)) for (_, match), taken in zip(*_told(scores), strict=True)}
    assert shares.pop(out) == pytest.approx(0.2)
    assert list(shares.values()) == [pytest.approx(0.3)] * len(shares)
    assert shares
    assert not scores.gain.any()


def _told(scores):
    return scores.state.matches, scores.taken


def test_all_of_them_find_what_can_be_found(folder: Path):
    """With rewrites enough, and no chains by price: none refuses a way of which the first step costs something."""
    parts = (RULES, Rewriter(RULES.rules), COST)
    best_ms = walked(detours(PLACES), (OUT, INTO) * PLACES, RULES).steps[-1].runtime_ms
    searches = (
        chains_random(*parts, rewrites=300),
        rule_mean(*parts, folder=folder, rewrites=300),
        untrained(*parts, folder=folder, rewrites=300),
    )
    for search in searches:
        alone = replace(search, config=replace(search.config, by_price=0.0, saturation=0.0))
        found = alone.optimise(detours(PLACES), Budget())
        assert found.best_ms == best_ms < found.start_ms


def test_an_untrained_network_is_the_policy_s_with_other_weights(folder: Path):
    """The same for a seed; the settings of chains are the policy's."""
    parts, trained = (RULES, REWRITER, COST), TaughtGuide.load(folder)
    one, same, other = (untrained(*parts, folder=folder, seed=seed) for seed in (0, 0, 1))
    by_policy = told(trained.guide.search(*parts))
    assert told(one) == told(same) != by_policy
    assert told(one) != told(other) != by_policy
    assert one.config.orders == trained.chains.orders


def test_who_has_had_no_lesson_keeps_no_rule_out_of_an_e_graph(folder: Path, means: RuleMeans, tmp_path: Path):
    """And the means of rules those alone that experts left alone, one that they seldom took not among them."""
    parts, everything = (RULES, REWRITER, COST), [rule.id for rule in RULES.rules]
    few = replace(means, taken={**means.taken, RULES.get(OUT).id: 0.1})
    few.save(tmp_path)
    TaughtGuide.load(folder).save(tmp_path)
    searches = {
        "random": chains_random(*parts),
        "untrained": untrained(*parts, folder=folder),
        "means": rule_mean(*parts, folder=tmp_path),
    }
    for name, search in searches.items():
        guard = RuleGuard(search.scored_by(detours(1), REWRITER, COST), RULES.rules, search.shares)
        for _ in ("unheard", "heard"):
            settings = (search.config.admitted_probability, search.config.admitted_share)
            admitted = [rule.id for rule in guard.admitted(*settings)]
            liked = [rule for rule in everything if few.taken.get(rule, 0.0) > 0]
            assert admitted == (liked if name == "means" else everything)
            guard.of(detours(1))
    assert RULES.get(OUT).id in liked != everything
