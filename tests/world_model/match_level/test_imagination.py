"""One imagined step over match tokens: closed forms, with precomputed that was written down by hand."""

import math

import pytest
import torch
from support.token_dreams import Entry, Set, any_valid, memory, precomputed, present, stacked, state

from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.world_model.match_level.imagination import ClassStates, imagine
from rlflow.world_model.match_level.match_deltas import NONE
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.match_level.token_memory import ALL_BUT

A, B, C, D, E = range(5)
NOTHING = [0.0] * 5
PLAIN = MatchLevelDreamConfig(pessimism=0.0, temperature=0.0)


def after(
    known: PrecomputedModel,
    states: ClassStates,
    match_class: int = 0,
    config: MatchLevelDreamConfig = PLAIN,
    *,
    outcome_at_0: int = 0,
    seed: int = 0,
) -> tuple[ClassStates, torch.Tensor]:
    """The outcome of the rewrites of one class, in every state."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.full((len(states.token),), match_class)
    return imagine(known, memory(outcome_at_0), states, classes, config, generator)


@pytest.mark.parametrize(
    ("outcome", "left"), [(0, 6), (1, 5), (2, 4), (3, 4), (4, 2), (ALL_BUT, 0), (ALL_BUT + 1, 1), (ALL_BUT + 2, 2)]
)
def test_rewrites_take_their_class_and_end_those_that_share_a_node(outcome: int, left: int):
    """Of six B, which share one, so many are left after two rewrites; C, two edges away, keeps both."""
    before = state([(A, 2), (B, 6), (C, 2)], 4, {(0, 1): 0, (0, 2): 2})
    result, _ = after(precomputed({}, NOTHING), before, outcome_at_0=outcome)
    assert present(result) == {B: left, C: 2} if left else {C: 2}


def test_a_saving_counts_for_each_match_that_is_taken():
    """Of three matches as many as are apart, to the nearest number, and one at least; none is left."""
    before, known = state([(A, 3), (C, 2)], 4, {(0, 1): 2}), precomputed({}, [1.0, *NOTHING[1:]])
    for share, taken in ((1.0, 3), (0.7, 2), (0.3, 1), (0.01, 1)):
        result, reward = after(known.counted(torch.tensor([A]), torch.tensor([share])), before)
        assert present(result) == {C: 2}
        assert reward.item() == pytest.approx(taken * math.sinh(1.0))


@pytest.mark.parametrize(
    ("there", "born"), [(1, {D: 1}), (2, {D: 1, E: 1}), (4, {D: 2, E: 1}), (8, {D: 4, E: 2}), (9, {D: 5, E: 2})]
)
def test_what_is_born_comes_with_each_rewrite(there: int, born: dict[int, int]):
    """Of four rewrites two bore D and one E: in proportion, to the nearest number, and up where it is between two."""
    known = precomputed({A: [Set([Entry(D, 2), Entry(E, 1)], taken=4)]}, NOTHING)
    result, _ = after(known, state([(A, there)], 4))
    assert present(result) == born


@pytest.mark.parametrize(("edges", "expected"), [(3, {B: 2, D: 1}), (4, {B: 3})])
def test_a_match_turns_into_another_if_it_is_near_enough_to_look_different(edges: int, expected: dict[int, int]):
    known = precomputed({A: [Set([Entry(D, before=B)])]}, NOTHING)
    result, _ = after(known, state([(A, 1), (B, 3)], 4, {(0, 1): edges}))
    assert present(result) == expected


def test_no_more_matches_turn_than_there_are():
    """A set says that four of B turn into D and one into E; there are two."""
    known = precomputed({A: [Set([Entry(D, 4, before=B), Entry(E, 1, before=B)])]}, NOTHING)
    result, _ = after(known, state([(A, 1), (B, 2)], 4, {(0, 1): 1}))
    assert present(result) == {D: 2, E: 1}
    assert (result.count >= 0).all()


def test_what_turns_must_be_there():
    known = precomputed({A: [Set([Entry(D, before=C), Entry(E)])]}, NOTHING)
    result, _ = after(known, state([(A, 1), (B, 3)], 5, {(0, 1): 1}))
    assert present(result) == {B: 3, E: 1}


def test_those_that_are_born_lie_where_the_rewrites_were():
    """As far from B and C as A was, two edges from each other, as their set says, and next to the last rewrites."""
    known = precomputed({A: [Set([Entry(D), Entry(E, 2)], apart=2)]}, NOTHING)
    before = state([(B, 1), (A, 1), (C, 1)], 6, {(0, 1): 1, (1, 2): 4, (0, 2): 2})
    result, _ = after(known, before, 1)
    assert result.token[0, :4].tolist() == [B, D, C, E]
    assert result.count[0].tolist() == [1, 1, 1, 2, 0, 0]
    between = result.distance[0]
    assert between[1, :4].tolist() == [1, 2, 4, 2]
    assert between[3, :4].tolist() == [1, 2, 4, 2]
    assert torch.equal(between[:4, :4], between[:4, :4].T)
    assert between[0, 2] == 2
    assert result.near[0, :4].tolist() == [1, 0, 4, 0]


def test_what_is_born_of_a_class_that_is_there_joins_it():
    """Two B more at its place, which is as near to C as A was now, and next to the last rewrites."""
    known = precomputed({A: [Set([Entry(B), Entry(D)])]}, NOTHING)
    before = state([(A, 2), (B, 3), (C, 1)], 5, {(0, 1): 4, (0, 2): 1, (1, 2): 3})
    result, _ = after(known, before)
    assert present(result) == {B: 5, C: 1, D: 2}
    assert result.token[0, 1:4].tolist() == [B, C, D]
    assert result.near[0, 1:4].tolist() == [0, 1, 0]
    assert result.distance[0, 1, 2] == result.distance[0, 2, 1] == 1


def test_what_finds_no_empty_place_is_left_out():
    """A's own place is empty by then, so D gets it; there is none for E."""
    known = precomputed({A: [Set([Entry(D), Entry(E)])]}, NOTHING)
    before = state([(A, 1), (B, 1), (C, 1)], 3, {(1, 2): 2, (0, 1): 1})
    result, _ = after(known, before)
    assert result.token[0].tolist() == [D, B, C]
    assert result.count[0].tolist() == [1, 1, 1]
    assert result.distance[0, 0, 1:].tolist() == [1, FAR_AWAY]
    assert result.distance[0, 1, 2] == 2


def test_sets_may_be_larger_than_the_table():
    known = precomputed({A: [Set([Entry(D), Entry(E), Entry(C)])]}, NOTHING)
    result, _ = after(known, state([(A, 1), (B, 1)], 2))
    assert present(result) == {D: 1, B: 1}


def test_at_temperature_0_the_likeliest_set_is_taken_and_else_one_is_drawn():
    """D has three times E's weight; 4000 draws, five standard deviations."""
    known = precomputed({A: [Set([Entry(E)]), Set([Entry(D)], log_weight=math.log(3))]}, NOTHING)
    many = stacked([state([(A, 1)], 3)] * 4000)
    surely, _ = after(known, many)
    assert (surely.token[:, 0] == D).all()
    drawn, _ = after(known, many, config=MatchLevelDreamConfig(temperature=1.0))
    share = (drawn.token[:, 0] == D).float().mean().item()
    assert share == pytest.approx(0.75, abs=5 * math.sqrt(0.75 * 0.25 / 4000))
    assert set(drawn.token[:, 0].tolist()) == {D, E}


def test_what_promises_much_is_drawn_less_often():
    """Of two sets, one bears what saves 3 units: its weight is divided by exp(asinh(3)), which is 3 + 10 ** 0.5."""
    known = precomputed({A: [Set([Entry(D)]), Set([Entry(E)])]}, [0.0, 0.0, 0.0, math.asinh(3.0), 0.0])
    many = stacked([state([(A, 1)], 3)] * 4000)
    drawn, _ = after(known, many, config=MatchLevelDreamConfig(birth_pessimism=1.0))
    share = (drawn.token[:, 0] == D).float().mean().item()
    expected = 1 / (4 + math.sqrt(10))
    assert share == pytest.approx(expected, abs=5 * math.sqrt(expected * (1 - expected) / 4000))
    surely, _ = after(known, many, config=MatchLevelDreamConfig(birth_pessimism=0.1, temperature=0.0))
    assert (surely.token[:, 0] == E).all()


def test_a_reward_is_the_saving_less_a_share_of_its_error_and_comes_off_the_cost():
    known = precomputed({}, [math.asinh(3.0), 1.0], [0.5, 0.0])
    before = state([(A, 1)], 2, cost=80.0, unit=0.5)
    result, reward = after(known, before)
    assert reward.item() == pytest.approx(1.5)
    assert result.cost.item() == pytest.approx(78.5)
    careful, less = after(known, before, config=MatchLevelDreamConfig(pessimism=1.0))
    assert less.item() == pytest.approx(0.5 * math.sinh(math.asinh(3.0) - 0.5))
    assert (careful.begun, careful.unit) == (before.begun, before.unit)


def test_the_states_before_are_left_as_they_were():
    known = precomputed({A: [Set([Entry(D)])]}, NOTHING)
    before = state([(A, 2), (B, 1)], 3, {(0, 1): 0})
    copies = {name: value.clone() for name, value in vars(before).items()}
    after(known, before)
    assert all(torch.equal(value, copies[name]) for name, value in vars(before).items())


def test_a_batch_is_what_its_states_are_alone_and_what_is_written_down_match_by_match():
    """A random walk of 40 dreams, each step worked out again by plain loops. Not vacuous: matches end, turn, are born
    and are left out on the way."""
    known = random_knowledge(seed=1)
    generator = torch.Generator().manual_seed(0)
    states = stacked([random_state(generator) for _ in range(40)])
    happened = {"ended": 0, "turned": 0, "born": 0, "joined": 0, "left out": 0}
    for _ in range(12):
        match_class = any_valid(states.count, generator)
        going = torch.nonzero(match_class < states.count.shape[1]).squeeze(-1)
        states, match_class = states.rows(going), match_class[going]
        following, _ = imagine(known, memory(1), states, match_class, PLAIN, None)
        for row in range(len(match_class)):
            expected = by_hand(known, states, row, int(match_class[row]), happened)
            there = following.count[row] > 0
            assert torch.equal(following.count[row], expected.count[0])
            assert torch.equal(following.token[row][there], expected.token[0][there])
            assert torch.equal(following.near[row][there], expected.near[0][there])
            assert torch.equal(following.distance[row][there][:, there], expected.distance[0][there][:, there])
        states = following
    assert min(happened.values()) > 5, happened


def random_state(generator: torch.Generator, places: int = 6) -> ClassStates:
    tokens = torch.randperm(8, generator=generator)[:4].tolist()
    counts = torch.randint(1, 4, (4,), generator=generator).tolist()
    pairs = {
        (one, other): int(torch.randint(0, FAR_AWAY + 1, (), generator=generator))
        for one in range(4)
        for other in range(one)
    }
    return state(list(zip(tokens, counts, strict=True)), places, pairs)


def random_knowledge(seed: int) -> PrecomputedModel:
    generator = torch.Generator().manual_seed(seed)

    def below(bound: int) -> int:
        return int(torch.randint(bound, (), generator=generator))

    def entry() -> Entry:
        return Entry(below(8), 1 + below(2), below(8) if below(2) else NONE)

    sets = {token: [Set([entry() for _ in range(below(5))], apart=below(FAR_AWAY))] for token in range(8)}
    return precomputed(sets, [0.1 * token for token in range(8)])


def by_hand(
    known: PrecomputedModel, states: ClassStates, row: int, match_class: int, happened: dict[str, int]
) -> ClassStates:
    """The same step, class by class: of any other at distance 0, one match ends."""
    token, count = states.token[row].tolist(), states.count[row].tolist()
    from_rewrite = states.distance[row, match_class].tolist()
    places = range(len(token))
    drawn = int(known.likeliest[token[match_class], 0])
    for place in places:
        if place != match_class and from_rewrite[place] == 0 and count[place]:
            happened["ended"] += 1
            count[place] -= 1
    times, count[match_class] = count[match_class], 0
    present_before = list(count)

    entries = []
    for place in range(known.sets.token.shape[1]):
        new, number = int(known.sets.token[drawn, place]), times * int(known.sets.count[drawn, place])
        was = int(known.sets.before[drawn, place])
        if was != NONE:
            near = [p for p in places if token[p] == was and from_rewrite[p] <= 3 and present_before[p]]
            number = min(number, present_before[near[0]]) if near else 0
            if near:
                count[near[0]] = max(count[near[0]] - number, 0)
            happened["turned"] += number > 0
        entries.append((new, number))

    alive = [number > 0 for number in count]
    near, between = list(from_rewrite), states.distance[row].clone()
    for number_of_entry, (new, number) in enumerate(entries):
        for place in places:
            if number and token[place] == new and alive[place]:
                count[place], near[place] = count[place] + number, 0
                between[place] = between[:, place] = torch.minimum(between[place], states.distance[row, match_class])
                entries[number_of_entry] = (new, 0)
                happened["joined"] += 1
    empty = [place for place in places if not count[place]]
    filled: list[int] = []
    for (new, number), place in zip(entries, empty, strict=False):
        if number:
            token[place], count[place], near[place] = new, number, 0
            filled.append(place)
            happened["born"] += 1
    happened["left out"] += sum(number > 0 for _, number in entries[len(empty) :])
    for place in filled:
        between[place] = between[:, place] = torch.tensor(from_rewrite, dtype=torch.int8)
    for one in filled:
        for other in filled:
            between[one, other] = known.sets.distance[drawn, 0, 0]
    return ClassStates(
        torch.tensor([token]),
        torch.tensor([count]),
        between[None],
        torch.tensor([near], dtype=torch.int8),
        states.cost[row : row + 1],
        states.begun[row : row + 1],
        states.unit[row : row + 1],
    )
