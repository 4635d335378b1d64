"""Learning: a formula that made the times is found again, by the least of trees and with no library for them."""

import numpy as np
import pytest
from support.price_models import PACES, PLACE, PROCESSOR, TRAITS, examples, one_leaf, one_stump, regions_of

from rlflow.cost.border_reorders import ReorderConfig
from rlflow.cost.predicted import physics
from rlflow.cost.predicted.features import Features
from rlflow.cost.predicted.noise import Noise
from rlflow.cost.predicted.price_model import Place
from rlflow.cost.predicted.training import LearningConfig, Machine, examples_of, learn
from rlflow.cost.region_record import GraphRecord, RegionTime
from rlflow.errors import InputError

NOISE, CONFIG = Noise(0.025, 1.5), LearningConfig(least_regions=2)


def lawful(features: Features) -> float:
    return physics.milliseconds(PACES, physics.terms(features, cold=1.0))


@pytest.fixture(scope="module")
def regions(bert):
    return regions_of([bert(), bert(layer_norm="decomposed"), bert(sequence=5), bert(hidden=64)])


def learned(made, fit_trees=one_leaf):
    machines = {e.processor: Machine(TRAITS, PROCESSOR.view_ms, ReorderConfig()) for e in made}
    return learn(
        made,
        machines or {"drawn": Machine(TRAITS, PROCESSOR.view_ms, ReorderConfig())},
        "drawn",
        NOISE,
        CONFIG,
        fit_trees,
    )


def test_times_that_obey_physics_are_learned_exactly(regions) -> None:
    """The trees find nothing to correct; what remains is the rounding of prices to nanoseconds and of float32."""
    made = examples(regions, lawful)
    found = learned(made).model().ms([e.features for e in made], PLACE)
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
        found = learned(made, fit_trees).model().ms([e.features for e in made], PLACE)
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
    description = learned(examples(regions, lawful)).description
    assert description.trained_on == {"regions": len(regions), "times": {"drawn": len(regions)}}
    assert description.processors["drawn"].view_ms == PROCESSOR.view_ms


def test_a_processor_without_a_name_is_refused(regions) -> None:
    """After hours of measuring on it: the reason names the place where it is to be described."""
    made = examples(regions, lawful, "new")
    times = {example.signature: RegionTime(1, example.ms) for example in made}
    graph = GraphRecord("original", "bert", "", "new", 5.0, times, 1.0, 0.0)
    with pytest.raises(InputError, match=r"name new among the processors of conf/study/price_model.yaml"):
        list(examples_of({"drawn": {e.signature: e.features for e in made}}, [graph]))


def test_each_processor_has_physics_of_its_own(regions) -> None:
    """One is twice as slow: both are learned exactly, from the same regions and with the same trees."""
    made = [*examples(regions, lawful), *examples(regions, lambda f: 2 * lawful(f), "slow")]
    model = learned(made).model()
    features = [e.features for e in examples(regions, lawful)]
    places = {name: Place.of(processor, None) for name, processor in model.description.processors.items()}
    usual, slow = (model.ms(features, places[name]) for name in ("drawn", "slow"))
    assert slow == pytest.approx([2 * ms for ms in usual], rel=1e-4, abs=1e-5)


def test_cold_weights_cost_what_was_measured(regions) -> None:
    """A region is met in a model that the cache holds and in one that it does not: physics tells the two apart."""
    features = {e.signature: e.features for e in examples(regions, lawful)}
    graphs = []
    for working_set_mb, cold in ((1.0, 0.0), (1e3, 1.0)):
        times = {s: RegionTime(2, physics.milliseconds(PACES, physics.terms(f, cold))) for s, f in features.items()}
        graphs.append(GraphRecord("original", "bert", "", "drawn", working_set_mb, times, 1.0, 0.0))
    made = list(examples_of({"drawn": features}, graphs))
    assert len(made) == 2 * len(features)
    model = learned(made).model()
    (processor,) = model.description.processors.values()
    for e in made:
        assert model.ms([e.features], Place(processor, e.working_set_mb)) == pytest.approx([e.ms], rel=1e-4, abs=1e-5)
    weighty = [f for f in features.values() if f.border.bytes_weights > 1000]
    assert weighty
    warm, cold_ms = (model.ms(weighty, Place(processor, mb)) for mb in (1.0, 1e3))
    assert all(a < b for a, b in zip(warm, cold_ms, strict=True))


def test_what_was_met_often_is_one_example(regions) -> None:
    """Its time is the mean over all times that it was met, on a processor and in a model of one working set."""
    signature = next(iter(regions))
    features = {e.signature: e.features for e in examples(regions, lawful)}
    graphs = [
        GraphRecord(variant, "bert", "", "drawn", 5.0, {signature: time}, 1.0, 0.0)
        for variant, time in (("original", RegionTime(3, 1.0)), ("walk", RegionTime(1, 5.0)))
    ]
    (made,) = examples_of({"drawn": features}, graphs)
    assert (made.ms, made.working_set_mb) == (2.0, 5.0)


def test_without_regions_there_is_nothing_to_learn() -> None:
    with pytest.raises(InputError, match=r"no measured regions of drawn .*`make study NAME=prices`"):
        learned([])
