"""Graphs, cost models and prices from the sections of a configuration."""

from pathlib import Path

import pytest
from tracking.factories import cost_model_of, graph_of, model_file_of, save_prices, selection_graph_of

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.measured import MeasuredCost
from rlflow.cost.price_list import Price, PriceList, read
from rlflow.errors import InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx, save_model

CHAIN = {"kind": "zoo", "entry": "mlp", "settings": {}}


def test_a_graph_comes_from_the_zoo_or_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save_model(zoo.build("mlp"), path)
    in_file = {"kind": "file", "path": str(path)}
    assert structural_hash(graph_of(CHAIN)) == structural_hash(graph_of(in_file)) == structural_hash(from_onnx(path))
    assert selection_graph_of(in_file).order == graph_of(in_file).order


def test_rules_are_chosen_on_the_smaller_model_that_selection_names() -> None:
    chain = {"kind": "zoo", "entry": "bert", "settings": {"layers": 2, "hidden": 12, "heads": 2, "vocabulary": 9}}
    small = selection_graph_of({**chain, "selection": {"layers": 1}})
    assert len(small.order) < len(graph_of(chain).order)
    assert structural_hash(selection_graph_of(chain)) == structural_hash(graph_of(chain))


def test_the_file_of_a_model_is_its_own_or_is_written(tmp_path: Path) -> None:
    place = tmp_path / "written.onnx"
    assert model_file_of({"kind": "file", "path": "given.onnx"}, place) == Path("given.onnx")
    assert not place.exists()
    assert model_file_of(CHAIN, place) == place
    assert structural_hash(from_onnx(place)) == structural_hash(graph_of(CHAIN))


def test_an_unknown_cost_model_is_refused_with_the_known_ones() -> None:
    assert isinstance(cost_model_of({"kind": "analytic"}), AnalyticCost)
    with pytest.raises(InputError, match="no cost model 'guessed': choose"):
        cost_model_of({"kind": "guessed"})


def test_published_prices_are_those_of_the_section(tmp_path: Path) -> None:
    """A measured model that knows one price, of the machine that it was taken on."""
    listed = PriceList("elsewhere", "an old laptop")
    listed.add("deployed", "f1", Price(0.5, "MatMul"))
    listed.save(tmp_path / "zoo.json.gz")
    made = cost_model_of({"kind": "measured", "setting": "deployed", "prices": str(tmp_path / "zoo.json.gz")})
    assert isinstance(made, MeasuredCost)
    assert (made.price_list, made.pricing) == (listed, None)
    save_prices(made, tmp_path / "prices.json")
    assert read(tmp_path / "prices.json") == listed


def test_a_model_that_measures_nothing_leaves_an_empty_list(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    save_prices(AnalyticCost(), path)
    assert path.exists()
