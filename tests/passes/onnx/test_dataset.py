"""Addresses build the models that they name, and the dataset is large and varied, its programs small."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import pytest

from rlflow import zoo
from rlflow.errors import InputError
from rlflow.passes.onnx.dataset import family_of, is_address, model_at, read, sources

MOST_BYTES = 1_000_000


def test_there_are_many_programs_of_many_families() -> None:
    found = sources()
    families = Counter(source.family for source in found)

    assert len(found) >= 150
    assert len(families) >= 10
    assert len({source.name for source in found}) == len(found)
    assert max(families.values()) <= len(found) / 4, "no family outweighs the others"
    assert found == sources()


def test_every_model_of_the_zoo_is_in_it() -> None:
    """A new model of the zoo is a new architecture to optimise."""
    named = {source.name.partition("/")[2].partition("?")[0] for source in sources()}

    assert set(zoo.names()) <= named


def test_every_program_can_be_built_and_is_small() -> None:
    """One in four."""
    sizes = {source.name: model_at(source.name).ByteSize() for source in sources()[::4]}

    assert all(size < MOST_BYTES for name, size in sizes.items() if not name.startswith("light/")), sizes


def test_settings_beside_the_sources_can_be_asked_for() -> None:
    asked = model_at("zoo/bert?layers=3&hidden=24&heads=3&layer_norm=decomposed&attention_mask=false")
    built = zoo.build(
        "bert",
        **{**zoo.describe("bert").small, "layers": 3, "hidden": 24, "heads": 3},
        layer_norm="decomposed",
        attention_mask=False,
    )

    assert asked.SerializeToString(deterministic=True) == built.SerializeToString(deterministic=True)


def test_the_same_model_with_detours_has_more_nodes() -> None:
    assert len(model_at("detours/mlp").graph.node) > len(model_at("zoo/mlp").graph.node)


def test_sizes_of_one_architecture_are_one_family() -> None:
    assert family_of("resnet18") == family_of("resnet50") != family_of("resnext50")


def test_files_and_their_content_are_read(tmp_path: Path) -> None:
    model = zoo.build("mlp")
    onnx.save(model, tmp_path / "m.onnx")

    assert read(str(tmp_path / "m.onnx")) == model
    assert read((tmp_path / "m.onnx").read_bytes()) == model


def test_a_folder_named_like_a_scheme_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zoo").mkdir()
    onnx.save(zoo.build("mlp"), tmp_path / "zoo/mine.onnx")

    assert not is_address("zoo/mine.onnx")
    assert len(read("zoo/mine.onnx").graph.node) == len(zoo.build("mlp").graph.node)


@pytest.mark.parametrize(
    ("source", "choices"),
    [
        ("zoo/brt", "choose one of .*bert"),
        ("zoo/bert?layer=2", "choose from .*layers"),
        ("zoo/bert?layers=0", "whole number from 1"),
        ("light/alexnet", "choose one of squeezenet"),
        ("nowhere.onnx", "zoo has .*bert"),
        (b"not a model", "no ONNX model"),
    ],
)
def test_what_there_is_not_is_refused_with_the_choices(source: str | bytes, choices: str) -> None:
    with pytest.raises(InputError, match=choices):
        read(source)
