"""C as an ONNX model points where C points, through all that both see of real graphs."""

import json
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
import torch
from support.formulations import guide_process, token_model
from support.pointers import MAX_STEPS, beginner, drawn, evolved
from support.token_worlds import small_process

from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.guide_process import ClassesObserved, OnnxPointer
from rlflow.agents.match_level.match_level_process import MatchLevelProcess
from rlflow.agents.match_level.onnx_pointer import onnx_pointer
from rlflow.onnx_io.network import texts_of
from rlflow.world_model.match_level.model import MatchLevelModel

CLOSE = {"rtol": 1e-4, "atol": 2e-4}
"""Half a unit of the fourth decimal, to which logits are rounded, and as much again for sums in float32."""


def observations(name: str) -> Iterator[tuple[np.ndarray, ClassesObserved]]:
    """What the two processes show of the same states: the start, and those of a walk."""
    one, other = MatchLevelProcess(small_process(name), token_model()), guide_process(name)
    rng, (seen, same) = np.random.default_rng(0), (one.start(), other.start())
    for _ in range(MAX_STEPS):
        assert seen.hash == same.hash
        if not one.choices(seen):
            return
        yield one.observe(seen), other.observe(same)
        choice = int(rng.integers(len(one.choices(seen))))
        seen, same = one.step(seen, choice), other.step(same, choice)


@cache
def observed() -> ClassesObserved:
    process = guide_process()
    return process.observe(process.start())


def probabilities(controller: MatchLevelController, observation: np.ndarray) -> np.ndarray:
    logits = controller.policy.distribution(torch.from_numpy(observation)[None]).log_probability[0]
    return logits.double().exp().numpy()


@pytest.mark.parametrize("made", [drawn, evolved])
@pytest.mark.parametrize("name", ["bert", "t5_decoder", "squeezenet1_1"])
def test_it_points_as_pytorch_does(name: str, made: Callable[[MatchLevelModel], MatchLevelController]):
    """Not vacuous: places have different probabilities, to terminate among them, and nearness and savings change."""
    controller, compared = made(token_model()), 0
    pointer = OnnxPointer.of(onnx_pointer(controller))
    assert pointer.max_steps == MAX_STEPS
    for flat, classes in observations(name):
        wanted, logits = probabilities(controller, flat), pointer._logits(classes, None)
        found = np.exp(logits - np.logaddexp.reduce(logits))
        np.testing.assert_allclose(found, wanted, **CLOSE)
        compared += len(np.unique(wanted.round(6))) > 3
        assert 1e-6 < wanted[-1] < 1 - 1e-6
    assert compared > 1


def test_the_prior_alone_is_the_same():
    """A controller before any training goes by what greedy search and an expert would take."""
    controller = beginner(token_model())
    pointer = OnnxPointer.of(onnx_pointer(controller))
    chosen = [(pointer.choose(classes), probabilities(controller, flat)) for flat, classes in observations("bert")]
    assert all(wanted[place] > (1 - 1e-3) * wanted.max() > wanted.min() for place, wanted in chosen)


def test_choices_are_drawn_by_their_probabilities():
    """Of 4000 draws each place has as many as it should, within five standard deviations."""
    pointer, draws = OnnxPointer.of(onnx_pointer(drawn(token_model()))), 4000
    logits = pointer._logits(observed(), None)
    wanted = np.exp(logits - np.logaddexp.reduce(logits))
    rng = np.random.default_rng(1)
    number = np.bincount([pointer.choose(observed(), rng) for _ in range(draws)], minlength=len(wanted))
    assert (abs(number - draws * wanted) <= 5 * np.sqrt(draws * wanted * (1 - wanted)) + 1).all()
    assert (number > draws // 100).sum() > 3


def test_the_likeliest_are_ordered_and_never_to_terminate():
    pointer = OnnxPointer.of(onnx_pointer(drawn(token_model())))
    logits = pointer._logits(observed(), None)
    places = len(logits) - 1
    assert pointer.likeliest(observed(), places + 5) == np.argsort(-logits[:-1], kind="stable").tolist()
    rng = np.random.default_rng(0)
    several = [pointer.likeliest(observed(), 4, rng) for _ in range(20)]
    assert all(len(set(some)) == 4 and max(some) < places for some in several)
    assert len(set(map(tuple, several))) > 1


def test_equal_controllers_give_equal_bytes():
    one, same, other = drawn(token_model()), drawn(token_model()), drawn(token_model(), seed=1)
    assert onnx_pointer(one).SerializeToString() == onnx_pointer(same).SerializeToString()
    assert onnx_pointer(one).SerializeToString() != onnx_pointer(other).SerializeToString()
    assert json.loads(texts_of(onnx_pointer(one))["max_steps"]) == MAX_STEPS
