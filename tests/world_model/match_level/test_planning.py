"""What imagined chains are worth: closed forms, with precomputed that was written down by hand."""

import math
from dataclasses import replace

import pytest
import torch
from support.token_dreams import Entry, Set, memory, precomputed, stacked, state

from rlflow.errors import InputError
from rlflow.world_model.match_level.imagination import ClassStates
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.planning import PlanConfig, best_returns
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.match_level.token_memory import ALL_BUT

A, B, C, D = range(4)
PLAIN = MatchLevelDreamConfig(pessimism=0.0, temperature=0.0)
WAY = {A: [Set([Entry(B)])], B: [Set([Entry(C)])], C: [Set([Entry(D)])]}


def known(saving: list[float], sets: dict[int, list[Set]] | None = None) -> PrecomputedModel:
    """Each token saves so many units; A bears B, B bears C and C bears D."""
    return precomputed(WAY if sets is None else sets, [math.asinh(units) for units in saving])


def worth(
    of: PrecomputedModel,
    states: ClassStates,
    *,
    length: int = 8,
    dream: MatchLevelDreamConfig = PLAIN,
    least: float = -1.0,
    seed: int = 0,
    outcome_at_0: int = 0,
) -> list[float]:
    """Of chains that begin with the first class of each state."""
    classes, generator = torch.zeros(len(states.token), dtype=torch.int64), torch.Generator().manual_seed(seed)
    config = PlanConfig(length=length, dream=dream)
    return best_returns(of, memory(outcome_at_0), states, classes, config, least, generator).tolist()


@pytest.mark.parametrize(
    ("length", "expected"),
    [(1, -1.0), (2, -0.5), (3, 2.5), (4, 2.5), (8, 2.5)],
)
def test_a_chain_is_worth_the_most_that_it_has_saved(length: int, expected: float):
    """-1, then 0.5, then 3, then -2, of which the last is not taken; a shorter chain does not see as far."""
    (found,) = worth(known([-1.0, 0.5, 3.0, -2.0]), state([(A, 1)], 4), length=length)
    assert found == pytest.approx(expected, abs=1e-5)


def test_a_chain_that_only_loses_is_worth_its_first_step():
    (found,) = worth(known([-1.0, -1.0, -1.0, -1.0]), state([(A, 1)], 4))
    assert found == pytest.approx(-1.0)


@pytest.mark.parametrize(("edges", "expected"), [(1, 6.0), (2, 1.0)])
def test_a_chain_goes_on_next_to_its_last_step(edges: int, expected: float):
    """A bears nothing; B, which saves 5, goes on with it only if it lies next to it."""
    (found,) = worth(known([1.0, 5.0], {}), state([(A, 1), (B, 1)], 3, {(0, 1): edges}))
    assert found == pytest.approx(expected)


def test_it_goes_on_next_to_any_of_its_steps():
    """B and C lie next to A, and far from each other: C, which V prefers, is the second step, and B the third."""
    of = known([0.0, 5.0, 1.0], {})
    of = replace(of, reading=of.reading._replace(taken=torch.tensor([0.0, -20.0, 20.0])))
    start = state([(A, 1), (B, 1), (C, 1)], 4, {(0, 1): 1, (0, 2): 1})
    assert worth(of, start, least=-30.0, length=2) == pytest.approx([1.0], abs=1e-4)
    assert worth(of, start, least=-30.0, length=3) == pytest.approx([6.0], abs=1e-4)


def test_it_takes_all_of_a_class():
    """Of twelve layers alike, A and B lie next to each other in each of them: each counts twelve times, once."""
    (found,) = worth(known([1.0, 3.0], {}), state([(A, 12), (B, 12)], 3, {(0, 1): 1}))
    assert found == pytest.approx(48.0, abs=1e-3)


def test_what_is_born_can_be_taken():
    """A bears another A, and so on for as long as the chain may be."""
    again = known([1.0], {A: [Set([Entry(A)])]})
    assert worth(again, state([(A, 1)], 2), length=5) == pytest.approx([5.0], abs=1e-4)


def test_it_does_not_go_on_with_what_is_too_improbable():
    of = known([1.0, 5.0], {})
    start = state([(A, 1), (B, 1)], 3, {(0, 1): 1})
    assert worth(of, start, least=0.0) == pytest.approx([6.0], abs=1e-5)
    assert worth(of, start, least=0.1) == pytest.approx([1.0], abs=1e-5)


@pytest.mark.parametrize("wrong", [{"length": 0}, {"chains": 0}])
def test_a_plan_without_chains_or_steps_is_refused(wrong: dict[str, int]):
    with pytest.raises(InputError, match=rf"planned: {next(iter(wrong))} is a number of at least 1, not 0"):
        PlanConfig(**wrong)


def test_it_goes_on_as_an_expert_would():
    """Of B and D, both next to A, V thinks that an expert takes D twice as often; B ends when D is taken, and D so."""
    of = known([0.0, 1.0, 0.0, 10.0], {})
    taken = torch.tensor([0.0, 0.0, 0.0, math.log(2)])
    told = replace(of, reading=of.reading._replace(taken=taken))
    start = state([(A, 1), (B, 1), (D, 1)], 4, {(0, 1): 1, (0, 2): 1, (1, 2): 0})
    found = worth(told, stacked([start] * 3000), length=2, outcome_at_0=ALL_BUT)
    share = sum(abs(one - 10.0) < 1e-4 for one in found) / 3000
    assert share == pytest.approx(2 / 3, abs=5 * math.sqrt(2 / 9 / 3000))
    assert all(min(abs(one - 1.0), abs(one - 10.0)) < 1e-4 for one in found)


def test_chains_of_a_batch_do_not_disturb_each_other():
    """One ends at once, one goes on for three steps: each is worth what it is alone."""
    of, alone = known([-1.0, 0.5, 3.0, -2.0]), [state([(D, 1)], 4), state([(A, 1)], 4), state([(B, 1)], 4)]
    together = worth(of, stacked(alone))
    assert together == pytest.approx([worth(of, one)[0] for one in alone])
    assert together == pytest.approx([-2.0, 2.5, 3.5], abs=1e-5)


def test_the_same_seed_imagines_the_same():
    sets = {A: [Set([Entry(B)]), Set([Entry(C)])]}
    of, starts = known([0.0, 1.0, 2.0], sets), stacked([state([(A, 1)], 3)] * 50)
    drawing = MatchLevelDreamConfig(pessimism=0.0, temperature=1.0)

    def drawn(seed: int) -> list[float]:
        return worth(of, starts, length=3, dream=drawing, seed=seed)

    assert drawn(0) == drawn(0) != drawn(1)
    assert {round(one, 4) for one in drawn(0)} == {1.0, 2.0}
