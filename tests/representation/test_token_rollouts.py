"""Token rollouts that do not add up are refused: every match is there, was taken, is gone, turned or born."""

from dataclasses import replace

import numpy as np
import pytest
from support.random_token_rollouts import random_rollouts, random_token

from rlflow.errors import InputError
from rlflow.representation.token_rollouts import (
    FAR_AWAY,
    Demonstration,
    TokenEpisode,
    TokenRollouts,
    TokenState,
    TokenStep,
    nearness_after,
)


def state(**classes: int) -> TokenState:
    """A state of classes A to D, told by their places in the alphabet, all far away from each other."""
    number = len(classes)
    distance = np.full((number, number), FAR_AWAY, np.int8)
    np.fill_diagonal(distance, 0)
    token = np.array(["ABCD".index(name) for name in classes], np.int64)
    count = np.array(list(classes.values()), np.int64)
    return TokenState(token, count, np.ones_like(count), distance, np.ones(number, np.float32), 90.0, "a")


def step(chosen: int, gone: list[int], turned: list[list[int]], born: list[list[int]], taken: int = 1) -> TokenStep:
    distance = np.array([0, 1, FAR_AWAY][: len(gone)], np.int8)
    changes = (
        np.array(gone, np.int64),
        np.array(turned, np.int64).reshape(-1, 3),
        np.array(born, np.int64).reshape(-1, 2),
    )
    return TokenStep(chosen, taken, 10.0, distance, *changes)


BEFORE, AFTER = state(A=12, B=12, C=1), state(A=11, C=2, D=1, B=9)
STEP = step(0, [0, 1, 0], [[1, 2, 1], [1, 1, 1]], [])  # an A is taken, a B ends, one turns into a D and one into a C


def episode(one: TokenStep = STEP, after: TokenState = AFTER) -> TokenEpisode:
    return TokenEpisode(0, 1.0, (BEFORE, after), (one,), terminated=False)


def test_an_episode_that_adds_up_is_taken() -> None:
    assert episode().num_steps == 1
    assert episode(step(0, [0, 3, 0], [], [[1, 1], [2, 1]])).num_steps == 1


@pytest.mark.parametrize(
    "wrong",
    [
        step(1, [0, 1, 0], [[1, 2, 1], [1, 1, 1]], []),  # a B is taken
        step(0, [0, 1, 0], [[1, 2, 1], [1, 1, 1]], [], taken=2),  # two A are taken
        step(0, [0, 2, 0], [[1, 2, 1], [1, 1, 1]], []),  # two end
        step(0, [0, 1, 0], [[1, 2, 1]], []),  # nothing becomes the C
        step(0, [0, 1, 0], [[1, 2, 1], [0, 1, 1]], []),  # an A does
        step(0, [0, 2, 0], [[1, 2, 1], [1, 1, 1]], [[3, 2]]),  # a B more is born than ended
    ],
)
def test_a_step_that_does_not_add_up_is_refused(wrong: TokenStep) -> None:
    with pytest.raises(InputError, match="not those before it, less gone, plus born"):
        episode(wrong)


def test_a_step_is_whole_if_it_left_none_of_its_class() -> None:
    """Of twelve A, one is taken and none, or eleven others end; or all are taken."""
    assert not STEP.is_whole(BEFORE)
    assert replace(STEP, gone=np.array([11, 1, 0])).is_whole(BEFORE)
    assert replace(STEP, taken=12).is_whole(BEFORE)


def test_matches_that_come_from_nowhere_or_vanish_are_refused() -> None:
    for after in (state(A=11, C=2, D=1, B=10), state(A=11, C=2, D=1), state(A=11, C=1, D=1, B=9)):
        with pytest.raises(InputError, match=r"less gone, plus born|does not fit"):
            episode(after=after)


@pytest.mark.parametrize("seed", range(8))
def test_any_match_more_or_less_shows_in_drawn_steps(seed: int) -> None:
    """Whatever the step is: add one match of a class after it, and it does not add up any more."""
    rollouts, tried = random_rollouts(seed), 0
    for one in rollouts.episodes:
        for number, after in enumerate(one.states[1:]):
            for place in range(len(after.token)):
                count = after.count + (np.arange(len(after.token)) == place)
                with pytest.raises(InputError):
                    TokenEpisode(0, 1.0, (one.states[number], replace(after, count=count)), (one.steps[number],), False)
                tried += 1
    assert tried


@pytest.mark.parametrize(
    "wrong",
    [
        replace(STEP, chosen=3),
        replace(STEP, chosen=-1),
        replace(STEP, taken=0),
        replace(STEP, gone=np.array([0, 2, -1])),
        replace(STEP, born=np.array([[4, 1]])),
        replace(STEP, born=np.array([[0, 0]])),
        replace(STEP, turned=np.array([[3, 0, 1]])),
        replace(STEP, turned=np.array([[0, -1, 1]])),
        replace(STEP, distance=STEP.distance + 5),
        replace(STEP, reward=np.nan),
    ],
)
def test_a_step_that_names_what_is_not_there_is_refused(wrong: TokenStep) -> None:
    with pytest.raises(InputError, match="does not fit its state of 3 classes"):
        episode(wrong)


def test_arrays_of_another_shape_are_refused() -> None:
    with pytest.raises(InputError, match="a step from 3 classes has gone, born of another shape"):
        episode(replace(STEP, gone=STEP.gone[:2], born=np.zeros((0, 3), np.int64)))
    with pytest.raises(InputError, match="a state of 3 classes has distance of another shape"):
        replace(BEFORE, distance=BEFORE.distance[:2])


def test_broken_states_are_refused() -> None:
    with pytest.raises(InputError, match="of which it has no match"):
        replace(BEFORE, count=np.array([12, 0, 1]))
    with pytest.raises(InputError, match="lists a kind twice"):
        replace(BEFORE, token=np.array([0, 1, 0]))
    for apart in ([0, 1, 1], [12, 13, 1]):
        with pytest.raises(InputError, match="one at least is apart"):
            replace(BEFORE, apart=np.array(apart))
    for wrong in (BEFORE.distance + np.int8(1), np.tril(BEFORE.distance), -BEFORE.distance):
        with pytest.raises(InputError, match="distances between the kinds"):
            replace(BEFORE, distance=wrong)
    for name, value in (("saving", np.array([1, np.inf, 1], np.float32)), ("cost", np.nan)):
        with pytest.raises(InputError, match="not finite"):
            replace(BEFORE, **{name: value})


def test_broken_episodes_and_rollouts_are_refused() -> None:
    with pytest.raises(InputError, match="an episode of 1 steps has 1 states"):
        replace(episode(), states=(BEFORE,))
    with pytest.raises(InputError, match="unit of prices must be positive"):
        replace(episode(), unit_percent=0.0)
    rollouts = random_rollouts(0)
    short = replace(rollouts.vocabulary, operators=rollouts.vocabulary.operators[:2])
    thin = replace(rollouts.vocabulary, features=rollouts.vocabulary.features[:1])
    for change, message in (
        ({"graphs": ()}, "has no name"),
        ({"tokens": rollouts.tokens[:1], "rule_of": rollouts.rule_of[:1]}, "names a token that is not there"),
        ({"rule_of": rollouts.rule_of[:1]}, "name one for each"),
        ({"tokens": rollouts.tokens[:1] * 2, "rule_of": ("a", "b")}, "there twice"),
        ({"vocabulary": short}, "not in the vocabulary of 2 operators"),
        ({"vocabulary": thin}, "not in the vocabulary"),
    ):
        with pytest.raises(InputError, match=message):
            replace(rollouts, **change)


def test_a_demonstration_tells_of_every_kind_of_every_state() -> None:
    taken = tuple(np.ones(len(state.token), np.float32) for state in (BEFORE, AFTER))
    assert replace(episode(), demonstration=Demonstration(taken, taken)).demonstration is not None
    nowhere = (taken[0], taken[1] * np.inf)
    for wrong in (Demonstration(taken[:1], taken), Demonstration(taken, taken[::-1]), Demonstration(taken, nowhere)):
        with pytest.raises(InputError, match="does not tell of every kind"):
            replace(episode(), demonstration=wrong)


def test_steps_are_counted() -> None:
    rollouts = random_rollouts(1)
    assert rollouts.num_steps == sum(len(one.steps) for one in rollouts.episodes) > 0
    empty = TokenRollouts((random_token(np.random.default_rng(0)),), ("a",), (), (), rollouts.vocabulary, "")
    assert empty.num_steps == 0


def test_what_is_born_or_looks_different_is_near() -> None:
    """After the step: A x 11 as before, C and D turned, B x 9 as far away as before."""
    assert nearness_after(BEFORE.token, STEP, AFTER.token).tolist() == [0, 0, 0, 1]
    far = replace(STEP, distance=np.array([FAR_AWAY, FAR_AWAY, 2], np.int8))
    assert nearness_after(BEFORE.token, far, AFTER.token).tolist() == [FAR_AWAY, 0, 0, FAR_AWAY]
