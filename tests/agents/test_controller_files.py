"""Weights and description come back from disk as they were; what is no controller is refused in one sentence."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from rlflow.agents import controller_files
from rlflow.errors import InputError


def arguments_of(description: dict[str, Any]) -> int:
    return int(description["width"])


def new_network(width: int) -> nn.Module:
    return nn.Linear(width, 1)


def stored(folder: Path, width: int = 3) -> nn.Module:
    torch.manual_seed(0)
    network = new_network(width)
    controller_files.save(network, {"width": width}, folder)
    return network


def test_what_was_saved_is_loaded_and_frozen(tmp_path: Path) -> None:
    network = stored(tmp_path)
    loaded, width = controller_files.load(tmp_path, arguments_of, new_network)
    assert width == 3
    assert all(torch.equal(value, network.state_dict()[name]) for name, value in loaded.state_dict().items())
    assert not any(parameter.requires_grad for parameter in loaded.parameters())
    assert not loaded.training


@pytest.mark.parametrize("content", [None, "", "{}", '{"width": 4}', '{"width": "many"}'])
def test_what_is_no_controller_is_refused(tmp_path: Path, content: str | None) -> None:
    """No folder, no description, one that lacks something, is of another network, or says nonsense."""
    if content is not None:
        stored(tmp_path)
        (tmp_path / "controller.json").write_text(content)
    with pytest.raises(InputError, match=r"(?s)controller: .* cannot be read \(.*\); run train_controller"):
        controller_files.load(tmp_path, arguments_of, new_network)


def test_weights_are_no_pickle(tmp_path: Path) -> None:
    stored(tmp_path)
    (tmp_path / "controller.safetensors").write_bytes(b"cbuiltins\neval\n.")
    with pytest.raises(InputError, match="run train_controller"):
        controller_files.load(tmp_path, arguments_of, new_network)
