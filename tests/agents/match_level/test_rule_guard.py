"""A guard passes scores on, and admits rules by the most that it heard of them, or else by what lessons tell."""

import numpy as np
import pytest
from support.detours import COST, INTO, OUT, detours, rules_astray

from rlflow.agents.match_level.rule_guard import RuleGuard
from rlflow.agents.match_level.scorers import Scores, token_states
from rlflow.ir.graph import Graph
from rlflow.rules.matching.sharing import SharingRewriter

RULES = rules_astray()
REWRITER = SharingRewriter(RULES.rules)
LEAST = 0.2


def logit(probability: float) -> float:
    return float(np.log(probability) - np.log1p(-probability))


class Saying:
    """A judge that says what it is told to of each match of a rule, by the rule's name, in turn."""

    def __init__(self, probabilities: dict[str, list[float]]) -> None:
        self._probabilities = probabilities
        self._state_of = token_states(detours(1), REWRITER, COST)

    def of(self, graph: Graph) -> Scores:
        state = self._state_of(graph)
        said = [logit(self._probabilities[match.rule.name].pop(0)) for _, match in state.matches]
        nothing = np.zeros(len(said))
        return Scores(state, np.array(said), nothing, nothing)


def names_on(graph: Graph) -> list[str]:
    return [match.rule.name for _, match in token_states(graph, REWRITER, COST)(graph).matches]


@pytest.fixture
def met() -> list[str]:
    """The rules that have a match at the start: not the one that leads into the weight."""
    names = names_on(detours(2))
    assert OUT in names
    assert INTO not in names
    return names


def admitted(guard: RuleGuard, least_share: float = 0.02) -> set[str]:
    return {rule.name for rule in guard.admitted(LEAST, least_share)}


@pytest.mark.parametrize("most", [0.19, 0.21])
def test_the_most_that_was_said_of_any_match_counts(met: list[str], most: float):
    """In one graph, or in another one later. The rule has two matches there, of which the other is improbable."""
    assert met.count(OUT) == 2
    for said in ([0.01, most], [most, 0.01]):
        guard = RuleGuard(Saying({name: list(said) if name == OUT else [0.01] * 9 for name in met}), RULES.rules, {})
        guard.of(detours(2))
        assert admitted(guard) == ({OUT} if most >= LEAST else set())


def test_what_was_heard_counts_more_than_lessons_and_they_where_nothing_was(met: list[str]):
    """Before anything is heard, lessons count for all; afterwards for the rule that had no match."""
    shares = {RULES.get(name).id: 0.5 for name in (OUT, INTO)}
    guard = RuleGuard(Saying({name: [0.01] * 9 for name in met}), RULES.rules, shares)
    assert admitted(guard) == {OUT, INTO}
    assert admitted(guard, least_share=0.6) == set()
    guard.of(detours(1))
    assert admitted(guard) == {INTO}


def test_what_the_judge_speaks_against_is_tolerated_if_experts_took_it(met: list[str]):
    """The way out, of which lessons tell; not the other rules, of which they do not."""
    shares = {RULES.get(name).id: 0.5 for name in (OUT, INTO)}
    guard = RuleGuard(Saying({name: [0.01] * 9 for name in met}), RULES.rules, shares)
    guard.of(detours(1))
    assert admitted(guard) == {INTO}
    assert {rule.name for rule in guard.tolerated(LEAST, 0.02)} == {OUT, INTO}
    assert guard.tolerated(LEAST, 0.6) == []


def test_what_nobody_knows_is_kept_out():
    assert admitted(RuleGuard(Saying({}), RULES.rules, {})) == set()


def test_an_opinion_is_passed_on_as_it_is(met: list[str]):
    probabilities = {name: [0.3, 0.6] for name in met}
    given = list[Scores]()

    class Keeping(Saying):
        def of(self, graph: Graph) -> Scores:
            given.append(super().of(graph))
            return given[-1]

    passed_on = RuleGuard(Keeping(probabilities), RULES.rules, {}).of(detours(2))
    assert passed_on is given[0]
