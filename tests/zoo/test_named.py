"""Models by name, as a file and as they are."""

from pathlib import Path

import onnx
import pytest
from support.named_models import configured as of_conf

from rlflow import zoo
from rlflow.errors import InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.zoo.named import configured, graph_of, names


def test_what_ships_is_what_conf_says() -> None:
    """`make renew NAME=named_models` writes it anew."""
    assert configured() == of_conf()


def test_a_name_of_both_means_the_same_model() -> None:
    """The zoo's defaults are what conf/ says of the graph of that name."""
    both = set(configured()) & set(zoo.names())
    assert len(both) > 10
    for name in both:
        graph = configured()[name]
        defaults = zoo.describe(name).settings
        assert graph["entry"] == name
        assert {key: defaults[key] for key in graph["settings"]} == graph["settings"]


def test_a_model_is_the_same_by_its_name_as_a_file_and_as_it_is(tmp_path: Path) -> None:
    model = zoo.build("tiny_merge")
    onnx.save(model, tmp_path / "mine.onnx")
    graphs = [graph_of(one) for one in ("tiny_merge", model, str(tmp_path / "mine.onnx"), tmp_path / "mine.onnx")]
    assert {structural_hash(graph) for graph in (*graphs, graph_of(graphs[0]))} == {structural_hash(graphs[0])}


def test_a_configured_model_has_its_settings() -> None:
    """One thin layer of BERT, which is no name of the zoo."""
    assert "bert_tiny" not in zoo.names()
    small = zoo.build("bert", layers=1, hidden=64, heads=2, intermediate=128, sequence=16, head="none")
    assert structural_hash(graph_of("bert_tiny")) == structural_hash(graph_of(small))


@pytest.mark.parametrize(("wrong", "meant"), [("brt_tiny", "bert_tiny"), ("resnet-50", "resnet50")])
def test_a_wrong_name_is_answered_with_the_nearest(wrong: str, meant: str) -> None:
    assert meant in names()
    with pytest.raises(InputError, match=rf"no model '{wrong}': did you mean .*{meant}.*path of an ONNX file"):
        graph_of(wrong)


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"no model 'missing\.onnx'"):
        graph_of("missing.onnx")
