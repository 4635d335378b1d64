"""A network on disk is told by its description, which is checked before any weight is read."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from rlflow.errors import InputError
from rlflow.representation.vocabulary import PADDING, Vocabulary
from rlflow.world_model import stored

WORDS = {"operators": [PADDING, "Add"], "features": ["rank", "price", "readers"]}


def build(description: dict[str, Any]) -> nn.Linear:
    """A row for each operator, a column for each feature."""
    vocabulary = description["vocabulary"]
    assert isinstance(vocabulary, Vocabulary)
    return nn.Linear(len(vocabulary.features), len(vocabulary.operators), bias=description["bias"])


@pytest.fixture
def saved(tmp_path: Path) -> nn.Linear:
    model = nn.Linear(3, 2)
    stored.save(model, {"vocabulary": WORDS, "bias": True}, tmp_path)
    return model


def test_a_model_is_built_of_its_description_and_given_its_weights(saved: nn.Linear, tmp_path: Path) -> None:
    loaded = stored.load(tmp_path, build)
    assert torch.equal(loaded.weight, saved.weight)
    assert torch.equal(loaded.bias, saved.bias)
    assert not loaded.training
    assert not loaded.weight.requires_grad


def test_the_files_depend_on_the_model_alone(saved: nn.Linear, tmp_path: Path) -> None:
    names = ("world_model.json", "world_model.safetensors")
    stored.save(stored.load(tmp_path, build), {"vocabulary": WORDS, "bias": True}, tmp_path / "again")
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == list(names)
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocabulary": WORDS | {"operators": [PADDING]}}, "size mismatch"),
        ({"vocabulary": WORDS | {"operators": ["Add"]}}, "must begin with"),
        ({"bias": False}, "Unexpected key"),
    ],
)
def test_a_description_of_another_network_is_refused(
    saved: nn.Linear, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    description = json.loads((tmp_path / "world_model.json").read_text())
    (tmp_path / "world_model.json").write_text(json.dumps(description | change))
    with pytest.raises(InputError, match=message):
        stored.load(tmp_path, build)


@pytest.mark.parametrize("name", ["world_model.json", "world_model.safetensors"])
def test_a_missing_or_half_file_is_refused(saved: nn.Linear, tmp_path: Path, name: str) -> None:
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        stored.load(tmp_path, build)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match="run fit_world_model"):
        stored.load(tmp_path, build)


def test_a_model_without_a_vocabulary_is_refused(saved: nn.Linear, tmp_path: Path) -> None:
    (tmp_path / "world_model.json").write_text('{"bias": true}')
    with pytest.raises(InputError, match="does not name its operators and features"):
        stored.load(tmp_path, build)


@pytest.mark.parametrize(("description", "expected"), [({"rule_ids": []}, True), ({"config": {}}, False)])
def test_the_pooled_formulation_is_told_by_the_rules_that_it_names(
    description: dict[str, Any], expected: bool, tmp_path: Path
) -> None:
    stored.save(nn.Linear(3, 2), {"vocabulary": WORDS} | description, tmp_path)
    assert stored.is_pooled(tmp_path) is expected
    with pytest.raises(InputError, match="run fit_world_model"):
        stored.is_pooled(tmp_path / "elsewhere")
