"""A world model on disk: safetensors and JSON, the same bytes for the same model, no pickles."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from rlflow.errors import InputError
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.model import WorldModel


def test_a_loaded_model_is_the_saved_one(world_model: WorldModel, rollouts: Rollouts, tmp_path: Path) -> None:
    world_model.save(tmp_path)
    loaded = WorldModel.load(tmp_path)
    assert loaded.arguments == world_model.arguments
    assert loaded.arguments.rule_ids == rollouts.rule_ids
    assert loaded.arguments.library_hash == "synthetic"
    graphs = rollouts.graphs[:3]
    assert torch.equal(loaded.encoder.encode(graphs), world_model.encoder.encode(graphs))
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in world_model.state_dict().items())


def test_equal_models_are_equal_files(world_model: WorldModel, tmp_path: Path) -> None:
    for name in ("a", "b"):
        world_model.save(tmp_path / name)
    for file in ("world_model.safetensors", "world_model.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["world_model.json", "world_model.safetensors"]


def test_a_broken_folder_is_refused(world_model: WorldModel, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run fit_world_model"):
        WorldModel.load(tmp_path)
    world_model.save(tmp_path)
    weights = (tmp_path / "world_model.safetensors").read_bytes()
    (tmp_path / "world_model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(InputError, match="run fit_world_model"):
        WorldModel.load(tmp_path)
    description = json.loads((tmp_path / "world_model.json").read_text())
    description["config"]["tau"] = 1
    (tmp_path / "world_model.json").write_text(json.dumps(description))
    with pytest.raises(InputError, match="tau"):
        WorldModel.load(tmp_path)


def test_the_action_space_is_the_rollouts(world_model: WorldModel, rollouts: Rollouts) -> None:
    assert world_model.action_space == rollouts.action_space
    assert world_model.memory.num_rules == len(np.unique(rollouts.rule_ids))
