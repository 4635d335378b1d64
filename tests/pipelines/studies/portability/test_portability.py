"""The study of portable rules: where they fire, what is timed, and a tiny study that runs to its end."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from studies.portability.places import best_places
from studies.portability.portability import _assigned
from support.study_settings import plain_settings

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.equivalence.compare import compare
from rlflow.onnx_io import from_onnx
from rlflow.onnx_io.standalone import standalone_model
from rlflow.rules.library import Library


def test_every_place_is_a_rewrite_of_a_small_model_that_runs(library: Library) -> None:
    """Each part has fewer nodes than the whole, and other weights; both sides compute the same."""
    graph = from_onnx(zoo.build("bert", layers=1, hidden=32, heads=2, intermediate=64, sequence=8, vocabulary=50))
    walks = {"number": 1, "steps": 4}
    places = best_places(graph, library.rules, library.rules, walks, AnalyticCost(), seed=0)
    assert len(places) > 10
    assert all(len(place.before.order) < len(graph.order) / 2 for place in places.values())
    assert np.ptp([place.saving for place in places.values()]) > 0
    for place in [*places.values()][::5]:
        assert compare(standalone_model(place.before), standalone_model(place.after), draws=1).equivalent
    few = library.rules[:5] + tuple(rule for rule in library.rules if rule.id in [*places][:3])
    again = best_places(graph, library.rules, few, walks, AnalyticCost(), seed=0)
    assert {rule: place.saving for rule, place in again.items()} == {
        rule: places[rule].saving for rule in places if rule in {each.id for each in few}
    }, "by which the second half of the study finds again what the first has chosen"


def test_a_rule_is_timed_where_it_saves_most() -> None:
    savings = {"bert": {"one": 0.1, "two": 0.3}, "vit": {"one": 0.2, "two": 0.3, "three": -0.1}}
    assert _assigned(savings) == {"vit": ["one", "three"], "bert": ["two"]}


def test_the_settings_are_ways_to_run_a_model() -> None:
    assert plain_settings("portability")["settings"] == ["deployed", "openvino"]


@pytest.mark.study
def test_a_tiny_study(study: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    options = ("graphs=[bert_tiny]", "wanted=[residual-bias-to-sum]", "walks.number=0", "gate.time_s=0.5")
    results = study("portability", *options, f"shipped={tmp_path / 'shipped.json'}")
    document = json.loads((results / "portability/metrics.json").read_text())
    (row,) = document["rules"].values()
    assert (row["name"], row["graph"]) == ("residual-bias-to-sum", "bert_tiny")
    assert {*row["gains"]} == {*document["runtimes"]} == {"deployed", "openvino"}
    assert json.loads((tmp_path / "shipped.json").read_text()) == document
    assert "residual-bias-to-sum" in (results / "portability/table.md").read_text()
