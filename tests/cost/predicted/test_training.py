"""Learning: a formula that made the times is found again, by the least of trees and with no library for them."""

import numpy as np
import pytest
from support.cost_graphs import graph, weight
from support.price_models import PACES, examples, one_leaf, one_stump, regions_of

from rlflow.cost.border_reorders import ReorderConfig
from rlflow.cost.predicted import physics
from rlflow.cost.predicted.features import Features
from rlflow.cost.predicted.noise import Noise
from rlflow.cost.predicted.training import LearningConfig, Machine, examples_of, learn
from rlflow.cost.region_record import RegionRecord
from rlflow.errors import InputError

NOISE, CONFIG = Noise(0.025, 1.5), LearningConfig(least_regions=2)


def lawful(features: Features) -> float:
    return physics.milliseconds(PACES, physics.terms(features))


@pytest.fixture(scope="module")
def regions(bert):
    return regions_of([bert(), bert(layer_norm="decomposed"), bert(sequence=5), bert(hidden=64)])


def learned(made, fit_trees=one_leaf):
    return learn(made, Machine(0.9, 0.0004, ReorderConfig()), NOISE, CONFIG, fit_trees)


def test_times_that_obey_physics_are_learned_exactly(regions) -> None:
    """The trees find nothing to correct; what remains is the rounding of prices to nanoseconds and of float32."""
    made = examples(regions, lawful)
    found = learned(made).model().ms([e.features for e in made])
    assert found == pytest.approx([e.ms for e in made], rel=1e-5, abs=1e-6)


def test_what_physics_cannot_say_the_trees_learn(regions) -> None:
    """Two sums in a row take three times as long as physics has it: one stump tells them apart.

    Physics is fitted to all of it and ends up in between, so that regions on either side keep an error; it must be far
    below that of physics alone.
    """
    slow = "Add(Add =, value =)"
    made = examples(regions, lambda f: lawful(f) * (3.0 if slow in f.grams else 1.0))
    assert 1 <= sum(slow in e.features.grams for e in made) < len(made)
    errors = {}
    for fit_trees in (one_leaf, one_stump):
        found = learned(made, fit_trees).model().ms([e.features for e in made])
        errors[fit_trees] = float(np.mean([abs(np.log(ms / e.ms)) for ms, e in zip(found, made, strict=True)]))
    assert errors[one_stump] < 0.5 * errors[one_leaf]


def test_equal_examples_make_equal_models(regions) -> None:
    first, second = (learned(examples(regions, lawful), one_stump) for _ in range(2))
    assert first == second


def test_a_pattern_of_too_few_regions_is_not_learned(regions) -> None:
    made = examples(regions, lawful)
    counts = {gram: sum(gram in e.features.grams for e in made) for e in made for gram in e.features.grams}
    known = learned(made).description.grams
    assert set(known) == {gram for gram, count in counts.items() if count >= 2}
    assert len(known) < len(counts), "some were met once"


def test_the_description_counts_what_was_learned_from(regions) -> None:
    description = learned(examples(regions, lawful, family="bert")).description
    assert description.trained_on == {"regions": len(regions), "families": {"bert": len(regions)}}
    assert (description.view_ms, description.probe_ms) == (0.0004, 0.9)


def test_records_become_examples(regions) -> None:
    signature, graph = next(iter(regions.items()))
    record = RegionRecord(graph, signature, 1.5, 0.1, 0.9, "bert", "tiny")
    (made,) = examples_of([record], ReorderConfig())
    assert (made.signature, made.ms, made.family) == (signature, 1.5, "bert")
    assert made.features.grams == examples({signature: graph}, lawful)[0].features.grams


def test_without_regions_there_is_nothing_to_learn() -> None:
    with pytest.raises(InputError, match=r"no measured regions .*gather some by `make study NAME=prices`"):
        learned([])


def test_reorders_of_a_convolution_by_itself_are_not_learned() -> None:
    """16 channels of 8 x 8 float32 come in and go out, 4 kB each: two reorders."""
    nodes = [("Conv", "x w", "y", {"strides": [1, 1], "pads": [1, 1, 1, 1]})]
    g = graph(nodes, {"x": (1, 16, 8, 8)}, {"y": (1, 16, 8, 8)}, {"w": weight(16, 16, 3, 3)})
    reorders = ReorderConfig(block=16, launch_us=5.0, us_per_mb=50.0)
    made, tiny = examples_of([RegionRecord(g, "s", ms, 0.0, 0.9, "cnn", "") for ms in (1.0, 0.001)], reorders)
    assert made.ms == pytest.approx(1.0 - 2 * (0.005 + 0.050 * 4096e-6))
    assert tiny.ms == 0.0
