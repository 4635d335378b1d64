"""Models judged on families that they have not learned from: a known law is found, and leaks would show."""

import dataclasses
from itertools import pairwise

import pytest
from studies.price_model.documents import PriceModel
from studies.price_model.models import Gathered, left_out
from support.cost_graphs import SMALL_BERT
from support.price_models import PACES, examples, one_leaf, regions_of

from rlflow import schemas, zoo
from rlflow.cost.border_reorders import ReorderConfig
from rlflow.cost.predicted import physics
from rlflow.cost.predicted.noise import Noise
from rlflow.cost.predicted.training import Example, Learned, LearningConfig, Machine, learn
from rlflow.cost.region_record import GraphRecord, RewriteRecord
from rlflow.onnx_io import from_onnx

NOISE = Noise(share=0.025, us=0.0)
MODELS = {"predicted", "nearest", "physics", "analytic", "initial_measured", "far_measured"}


def small(**settings):
    return from_onnx(zoo.build("bert", **{"layers": 1, **SMALL_BERT, **settings}))


@pytest.fixture(scope="module")
def gathered() -> Gathered:
    """Two families of BERTs of different widths, with times by the law of physics, their graphs and a few changes."""
    made, graphs, rewrites = [], [], []
    for family, settings in (("narrow", {"hidden": 64}), ("wide", {"hidden": 128, "intermediate": 256})):
        regions = regions_of(
            [small(**settings), small(**settings, layer_norm="decomposed"), small(**settings, batch=3)]
        )
        own = examples(regions, lambda f: physics.milliseconds(PACES, physics.terms(f)), family)
        made += [e for e in own if e.signature not in {known.signature for known in made}]
        names = [e.signature for e in own]
        graphs.append(GraphRecord(dict.fromkeys(names, 20), 2, "original", family, ""))
        graphs.append(GraphRecord(dict.fromkeys(names[:5], 40), 0, "walk", family, ""))
        rewrites += [RewriteRecord((a,), (b,), 0, "rule", family, "") for a, b in pairwise(names)]
    return Gathered(made, rewrites, graphs, view_ms=0.0004)


def learned(known: list[Example]) -> Learned:
    return learn(known, Machine(0.9, 0.0004, ReorderConfig()), NOISE, LearningConfig(least_regions=2), one_leaf)


@pytest.fixture(scope="module")
def results(gathered):
    return left_out(gathered, learned, NOISE, far=1.0)


def test_the_results_follow_the_schema(results) -> None:
    schemas.validate(PriceModel, {**results, "trees_bytes": 1})
    assert results["models"].keys() == MODELS
    assert all(model["families"].keys() == {"narrow", "wide"} for model in results["models"].values())


def test_a_law_that_was_learned_holds_in_a_family_that_was_not_seen(results) -> None:
    """Not vacuous: dozens of regions and changes, on which the roofline of another machine is far off."""
    predicted, analytic = (results["models"][name]["all"] for name in ("predicted", "analytic"))
    assert predicted["regions"]["p90"] < 0.02
    assert predicted["graphs"]["p90"] < 0.02
    assert predicted["rewrites"]["sign"] == 1.0
    assert analytic["regions"]["median"] > 10 * predicted["regions"]["median"]
    assert min(predicted["regions"]["cases"], predicted["rewrites"]["cases"]) >= 10
    assert predicted["graphs"]["cases"] == 4


def test_what_is_measured_has_no_error(results) -> None:
    """The rewritten graphs of this file consist of regions of their originals. These are measured as a whole, and so
    they are not judged: they would make the error of any model look smaller.
    """
    graphs = results["models"]["initial_measured"]["all"]["graphs"]
    assert (graphs["p90"], graphs["cases"]) == (0.0, 2)
    assert results["models"]["predicted"]["all"]["graphs"]["cases"] == 4
    far, predicted = (results["models"][name]["all"]["regions"]["median"] for name in ("far_measured", "predicted"))
    assert 0 < results["far_share"] < 1
    assert far <= predicted


def test_no_region_of_a_family_is_learned_from_when_it_is_judged(gathered) -> None:
    """Asked of every model: what it learned from, against what occurs in the graphs and rewrites of the family."""
    asked = []

    def watched(known: list[Example]) -> Learned:
        asked.append({example.signature for example in known})
        return learned(known)

    left_out(gathered, watched, NOISE, far=1.0)
    for known, family in zip(asked, ("narrow", "wide"), strict=True):
        occurring = {s for graph in gathered.graphs if graph.family == family for s in graph.regions}
        assert known
        assert not known & occurring


def test_the_same_regions_give_the_same_figures(gathered, results) -> None:
    assert left_out(gathered, learned, NOISE, far=1.0) == results


def test_the_original_of_another_configuration_is_not_measured(gathered) -> None:
    """Regions of one width are measured with that width's original alone: a user has one model, not all of a family."""
    (narrow, walk, *_) = gathered.graphs
    elsewhere = dataclasses.replace(walk, configuration="another width")
    alone = dataclasses.replace(gathered, graphs=[narrow, elsewhere])
    found = left_out(alone, learned, NOISE, far=1.0)["models"]
    assert found["initial_measured"]["all"]["graphs"]["median"] > 0.0
    assert found["initial_measured"]["all"]["graphs"]["cases"] == 1
