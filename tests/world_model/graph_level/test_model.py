"""A world model on disk: safetensors and JSON, the same bytes for the same model, no pickles."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support.contents import contents

from rlflow.errors import InputError
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.dream_env import visited_states
from rlflow.world_model.graph_level.model import GraphLevelModel


def test_a_loaded_model_is_the_saved_one(world_model: GraphLevelModel, rollouts: Rollouts, tmp_path: Path) -> None:
    world_model.save(tmp_path)
    loaded = GraphLevelModel.load(tmp_path)
    assert loaded.arguments == world_model.arguments
    assert loaded.arguments.rule_ids == rollouts.rule_ids
    assert loaded.arguments.vocabulary == rollouts.vocabulary
    assert loaded.arguments.library_hash == "synthetic"
    graphs = rollouts.graphs[:3]
    assert torch.equal(loaded.encoder.encode(graphs), world_model.encoder.encode(graphs))
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in world_model.state_dict().items())


def test_equal_models_are_equal_files(world_model: GraphLevelModel, tmp_path: Path) -> None:
    for name in ("a", "b"):
        world_model.save(tmp_path / name)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a").keys() == {"world_model.json", "world_model.safetensors"}


def test_a_broken_folder_is_refused(world_model: GraphLevelModel, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run fit_world_model"):
        GraphLevelModel.load(tmp_path)
    world_model.save(tmp_path)
    weights = (tmp_path / "world_model.safetensors").read_bytes()
    (tmp_path / "world_model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(InputError, match="run fit_world_model"):
        GraphLevelModel.load(tmp_path)
    description = json.loads((tmp_path / "world_model.json").read_text())
    description["config"]["tau"] = 1
    (tmp_path / "world_model.json").write_text(json.dumps(description))
    with pytest.raises(InputError, match="tau"):
        GraphLevelModel.load(tmp_path)


def test_the_action_space_is_the_rollouts(world_model: GraphLevelModel, rollouts: Rollouts) -> None:
    assert world_model.action_space == rollouts.action_space
    assert world_model.memory.num_rules == len(np.unique(rollouts.rule_ids))


def test_a_model_that_does_not_name_its_vocabulary_is_refused(world_model: GraphLevelModel, tmp_path: Path) -> None:
    """As one that was saved when only the size was told."""
    world_model.save(tmp_path)
    description = json.loads((tmp_path / "world_model.json").read_text())
    size = len(description.pop("vocabulary")["operators"])
    (tmp_path / "world_model.json").write_text(json.dumps(description | {"vocabulary_size": size, "num_features": 2}))
    with pytest.raises(InputError, match=r"unknown setting .*vocabulary_size.*run fit_world_model"):
        GraphLevelModel.load(tmp_path)


def test_weights_for_another_vocabulary_are_refused(world_model: GraphLevelModel, tmp_path: Path) -> None:
    """The embedding has a row for each name that was saved, whatever today's code knows."""
    world_model.save(tmp_path)
    description = json.loads((tmp_path / "world_model.json").read_text())
    description["vocabulary"]["operators"].append("Abacus")
    (tmp_path / "world_model.json").write_text(json.dumps(description))
    with pytest.raises(InputError, match="size mismatch"):
        GraphLevelModel.load(tmp_path)


def test_rollouts_are_read_in_the_vocabulary_of_the_model_or_not_at_all(
    world_model: GraphLevelModel, rollouts: Rollouts
) -> None:
    assert torch.equal(world_model.latents(rollouts), world_model.encoder.encode(rollouts.graphs))
    words = rollouts.vocabulary
    swapped = (words.operators[0], words.operators[2], words.operators[1], *words.operators[3:])
    other = replace(rollouts, vocabulary=replace(words, operators=swapped))
    with pytest.raises(InputError, match="another vocabulary than the world model's, operators in another order"):
        world_model.latents(other)
    with pytest.raises(InputError, match="another vocabulary"):
        visited_states(world_model, other)
    reversed_rules = replace(rollouts, rule_ids=rollouts.rule_ids[::-1])
    with pytest.raises(InputError, match="of other rules than the world model"):
        world_model.latents(reversed_rules)
