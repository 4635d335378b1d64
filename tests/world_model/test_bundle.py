"""What was saved is loaded, frozen; files that are missing, broken or of another network are refused in one line."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from rlflow.errors import InputError
from rlflow.representation.vocabulary import PADDING, Vocabulary
from rlflow.world_model.bundle import Arguments, Bundle

BUNDLE = Bundle("toaster", "toaster", "buy one")
FILES = ("toaster.json", "toaster.safetensors")


@dataclass(frozen=True)
class Size(Arguments):
    """A row for each operator, a column for each feature."""

    vocabulary: Vocabulary
    bias: bool = True

    def network(self) -> nn.Linear:
        return nn.Linear(len(self.vocabulary.features), len(self.vocabulary.operators), bias=self.bias)


SIZE = Size(Vocabulary((PADDING, "Add"), ("rank", "price", "readers")))


def load(folder: Path) -> tuple[nn.Linear, Size]:
    return BUNDLE.load(folder, Size, Size.network)


@pytest.fixture
def saved(tmp_path: Path) -> nn.Linear:
    network = SIZE.network()
    BUNDLE.save(network, SIZE, tmp_path)
    return network


def test_a_network_is_built_of_its_arguments_and_given_its_weights(saved: nn.Linear, tmp_path: Path) -> None:
    loaded, arguments = load(tmp_path)
    assert arguments == SIZE
    assert torch.equal(loaded.weight, saved.weight)
    assert torch.equal(loaded.bias, saved.bias)
    assert not loaded.training
    assert not loaded.weight.requires_grad


def test_the_files_depend_on_the_network_alone(saved: nn.Linear, tmp_path: Path) -> None:
    BUNDLE.save(*load(tmp_path), tmp_path / "again")
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == list(FILES)
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / name).read_bytes()
        assert (tmp_path / name).stat().st_mode & 0o444 == 0o444, "others can read it"


WORDS = SIZE.description()["vocabulary"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocabulary": WORDS | {"operators": [PADDING]}}, "size mismatch"),
        ({"vocabulary": WORDS | {"operators": ["Add"]}}, "must begin with"),
        ({"vocabulary": "english"}, "got `str`"),
        ({"bias": False}, "Unexpected key"),
        ({"bias": float("nan")}, "NaN is no number"),
        ({"tau": 1}, "unknown setting tau"),
    ],
)
def test_a_description_of_another_network_is_refused(
    saved: nn.Linear, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    description = json.loads((tmp_path / "toaster.json").read_text())
    (tmp_path / "toaster.json").write_text(json.dumps(description | change))
    with pytest.raises(InputError, match=f"^toaster: .* cannot be read .*{message}.*; buy one$"):
        load(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"bias": true}', "cbuiltins\neval\n."])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_holds_something_else_is_refused(saved: nn.Linear, tmp_path: Path, name: str, content: str) -> None:
    """Nothing, a list, too little, and a pickle."""
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=r"^toaster: .* cannot be read .*; buy one$"):
        load(tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_half_file_is_refused(saved: nn.Linear, tmp_path: Path, name: str) -> None:
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match="buy one"):
        load(tmp_path)


def test_tensors_are_kept_by_themselves(tmp_path: Path) -> None:
    tensors = {"columns": torch.arange(6).reshape(2, 3).T, "none": torch.zeros(0)}
    BUNDLE.save_tensors(tensors, tmp_path)
    assert not (tmp_path / "toaster.json").exists()
    found = BUNDLE.tensors(tmp_path)
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
