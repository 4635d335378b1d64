"""Models judged on families that they have not learned from: a known law is found, and leaks would show."""

from dataclasses import replace

import pytest
from studies.price_model.documents import PriceModel
from studies.price_model.models import Gathered, left_out
from support.cost_graphs import SMALL_BERT
from support.price_models import PACES, PROCESSOR, TRAITS, examples, one_leaf, regions_of

from rlflow import schemas, zoo
from rlflow.cost.border_reorders import ReorderConfig
from rlflow.cost.predicted import physics
from rlflow.cost.predicted.noise import Noise
from rlflow.cost.predicted.training import Example, Learned, LearningConfig, Machine, learn
from rlflow.cost.region_record import GraphRecord, RegionTime
from rlflow.onnx_io import from_onnx

MODELS = {"predicted", "nearest", "physics", "analytic"}


def small(**settings):
    return from_onnx(zoo.build("bert", **{"layers": 1, **SMALL_BERT, **settings}))


@pytest.fixture(scope="module")
def gathered() -> Gathered:
    """Two families of BERTs of different widths, with times by the law of physics, and a few of their graphs."""
    regions, graphs = {}, []
    for family, settings in (("narrow", {"hidden": 64}), ("wide", {"hidden": 128, "intermediate": 256})):
        found = regions_of([small(**settings), small(**settings, layer_norm="decomposed"), small(**settings, batch=3)])
        own = examples(found, lambda f: physics.milliseconds(PACES, physics.terms(f, cold=1.0)))
        regions |= {e.signature: e.features for e in own}
        for number in range(6):
            times = {e.signature: RegionTime(20, e.ms) for e in own[number:]}
            ms = sum(time.times * time.ms for time in times.values())
            variant = f"walk {number}" if number else "original"
            graphs.append(GraphRecord(variant, family, "", "drawn", 1e3, times, ms, 0.0))
    return Gathered({"drawn": regions}, graphs)


def learned(known: list[Example]) -> Learned:
    machine = Machine(TRAITS, PROCESSOR.view_ms, ReorderConfig())
    machines = dict.fromkeys(sorted({example.processor for example in known}), machine)
    return learn(known, machines, "drawn", Noise(0.025, 0.0), LearningConfig(least_regions=2), one_leaf)


@pytest.fixture(scope="module")
def results(gathered):
    return left_out(gathered, learned)


def test_the_results_follow_the_schema(results) -> None:
    schemas.validate(PriceModel, {**results, "unseen": {model: {} for model in MODELS}, "trees_bytes": 1})
    assert results["models"].keys() == MODELS
    assert all(model["drawn"]["families"].keys() == {"narrow", "wide"} for model in results["models"].values())


def test_a_law_that_was_learned_holds_in_a_family_that_was_not_seen(results) -> None:
    """Not vacuous: dozens of regions, on which the roofline of another machine is far off."""
    predicted, analytic = (results["models"][name]["drawn"]["all"] for name in ("predicted", "analytic"))
    assert predicted["regions"]["p90"] < 0.02
    assert predicted["graphs"]["p90"] < 0.02
    assert predicted["changes"] == {"sign": 1.0, "majority_sign": 1.0, "cases": 10}
    assert predicted["ranks"] == {"median": 1.0, "cases": 2}
    assert analytic["regions"]["median"] > 10 * predicted["regions"]["median"]
    assert predicted["regions"]["cases"] >= 10
    assert predicted["graphs"]["cases"] == 12


def test_no_region_of_a_family_is_learned_from_when_it_is_judged(gathered) -> None:
    """Asked of every model: what it learned from, against what occurs in the graphs of the family."""
    asked = []

    def watched(known: list[Example]) -> Learned:
        asked.append({example.signature for example in known})
        return learned(known)

    left_out(gathered, watched)
    for known, family in zip(asked, ("narrow", "wide"), strict=True):
        occurring = {s for graph in gathered.graphs if graph.family == family for s in graph.regions}
        assert known
        assert not known & occurring


def test_the_same_regions_give_the_same_figures(gathered, results) -> None:
    assert left_out(gathered, learned) == results


def test_a_processor_that_was_not_seen_is_judged_by_the_prices_of_its_stand_in(gathered) -> None:
    """Half as fast in all: prices are half of the truth, signs and order are right. Nothing is learned of its times."""
    slow = [
        replace(
            graph,
            processor="slow",
            regions={signature: RegionTime(time.times, 2 * time.ms) for signature, time in graph.regions.items()},
            ms=2 * graph.ms,
        )
        for graph in gathered.graphs
    ]
    asked = []

    def watched(known: list[Example]) -> Learned:
        asked.append({example.processor for example in known})
        return learned(known)

    regions = dict.fromkeys(("drawn", "slow"), gathered.regions["drawn"])
    found = left_out(Gathered(regions, [*gathered.graphs, *slow], {"slow": "drawn"}), watched)
    assert asked == [{"drawn", "slow"}, {"drawn", "slow"}, {"drawn"}], "two families, and a processor"
    of = found["unseen"]["predicted"]["slow"]
    assert of["graphs"]["median"] == pytest.approx(0.5, abs=0.02)
    assert of["changes"]["sign"] == 1.0
    assert of["ranks"]["median"] == 1.0
