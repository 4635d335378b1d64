"""A world model over match tokens on disk, and the vocabulary in which it reads."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.contents import contents

from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.match_level.model import MatchLevelModel

FILES = ("world_model.json", "world_model.safetensors")


def test_a_loaded_model_is_the_saved_one(
    token_model: MatchLevelModel, token_rollouts: TokenRollouts, tmp_path: Path
) -> None:
    token_model.save(tmp_path)
    loaded = MatchLevelModel.load(tmp_path)
    assert loaded.arguments == token_model.arguments
    assert loaded.arguments.vocabulary == token_rollouts.vocabulary
    assert loaded.arguments.library_hash == token_rollouts.library_hash
    for name, value in token_model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name
    for one, other in zip(loaded.read(token_rollouts), token_model.read(token_rollouts), strict=True):
        assert torch.equal(one, other)


def test_equal_models_are_equal_files(token_model: MatchLevelModel, tmp_path: Path) -> None:
    token_model.save(tmp_path / "a")
    MatchLevelModel.load(tmp_path / "a").save(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_broken_folder_is_refused(token_model: MatchLevelModel, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run fit_world_model"):
        MatchLevelModel.load(tmp_path)
    token_model.save(tmp_path)
    description = json.loads((tmp_path / FILES[0]).read_text())
    for change in ({"rule_ids": ["a"]}, {"config": description["config"] | {"tau": 1}}):
        (tmp_path / FILES[0]).write_text(json.dumps(description | change))
        with pytest.raises(InputError, match=r"rule_ids.*run fit_world_model|tau"):
            MatchLevelModel.load(tmp_path)


def test_rollouts_are_read_in_the_vocabulary_of_the_model_or_not_at_all(
    token_model: MatchLevelModel, token_rollouts: TokenRollouts
) -> None:
    words = token_rollouts.vocabulary
    longer = replace(token_rollouts, vocabulary=replace(words, operators=(*words.operators, "Abacus")))
    with pytest.raises(InputError, match="another vocabulary than the world model's, operators with Abacus"):
        token_model.read(longer)
