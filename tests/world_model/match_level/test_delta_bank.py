"""What is remembered of birth sets is enough to dream of another graph, and is the same after the disk."""

from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from support.contents import contents
from torch import Tensor

from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.match_level.delta_bank import DeltaBank
from rlflow.world_model.match_level.match_deltas import NONE, MatchDeltas, match_deltas
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.precomputed import PrecomputedModel

LARGEST = 8


@pytest.fixture
def sets(token_rollouts: TokenRollouts) -> MatchDeltas:
    return match_deltas(token_rollouts.episodes[:6], LARGEST).sets


@pytest.fixture
def memory(token_rollouts: TokenRollouts, token_model: MatchLevelModel, sets: MatchDeltas) -> DeltaBank:
    return DeltaBank.of(token_rollouts.tokens, token_model.read(token_rollouts), sets)


def named(keys: list[bytes], tokens: Tensor) -> list[bytes | None]:
    return [None if token == NONE else keys[token] for token in tokens.flatten().tolist()]


def test_the_sets_name_the_same_tokens(token_rollouts: TokenRollouts, sets: MatchDeltas, memory: DeltaBank) -> None:
    """Not vacuous: there are tokens that no set names, and matches that turned."""
    keys = [token.key for token in token_rollouts.tokens]
    assert 0 < len(memory.keys) < len(keys)
    assert (sets.before != NONE).any()
    for name in ("parent", "token", "before"):
        assert named(list(memory.keys), getattr(memory.sets, name)) == named(keys, getattr(sets, name))
    for name in ("seen", "count", "distance"):
        assert torch.equal(getattr(memory.sets, name), getattr(sets, name))


def test_what_is_read_of_them_is_kept(
    token_rollouts: TokenRollouts, token_model: MatchLevelModel, memory: DeltaBank
) -> None:
    place = {token.key: number for number, token in enumerate(token_rollouts.tokens)}
    of_kept = torch.tensor([place[key] for key in memory.keys])
    for kept, read in zip(memory.reading, token_model.read(token_rollouts), strict=True):
        assert torch.equal(kept, read[of_kept])


def test_a_loaded_memory_is_the_saved_one(memory: DeltaBank, tmp_path: Path) -> None:
    memory.save(tmp_path / "a")
    loaded = DeltaBank.load(tmp_path / "a")
    assert loaded.keys == memory.keys
    for one, other in zip(loaded.reading, memory.reading, strict=True):
        assert torch.equal(one, other)
    for entry in fields(MatchDeltas):
        one, other = getattr(loaded.sets, entry.name), getattr(memory.sets, entry.name)
        assert torch.equal(one, other)
        assert one.dtype == other.dtype
    loaded.save(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_broken_file_is_refused(memory: DeltaBank, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run fit_world_model"):
        DeltaBank.load(tmp_path)
    memory.save(tmp_path)
    file = tmp_path / "birth_memory.safetensors"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(InputError, match="run fit_world_model"):
        DeltaBank.load(tmp_path)


def test_tokens_of_another_graph_are_told_from_those_that_are_known(
    token_rollouts: TokenRollouts, token_model: MatchLevelModel, memory: DeltaBank
) -> None:
    """Every token is told by its key, and what is read of it is the same, wherever it came from."""
    tokens, reading = token_rollouts.tokens[::-2], token_model.read(token_rollouts)
    given = type(reading)(*(column.flip(0)[::2] for column in reading))
    together, sets, places = memory.joined(tokens, given)
    keys = list(memory.keys) + [token.key for token in tokens if token.key not in memory.keys]
    assert len(memory.keys) < len(keys) == len(together.saving) < len(memory.keys) + len(tokens)
    assert [keys[place] for place in places.tolist()] == [token.key for token in tokens]
    assert torch.equal(together.saving[places], given.saving)
    assert torch.equal(together.embedding[places], given.embedding)
    assert named(keys, sets.token) == named(list(memory.keys), memory.sets.token)


def test_the_dream_knows_the_same_with_and_without_the_rollouts(
    token_rollouts: TokenRollouts, token_model: MatchLevelModel, sets: MatchDeltas, memory: DeltaBank
) -> None:
    """Of every token of the rollouts: the same likeliest sets, with the same weights."""
    reading = token_model.read(token_rollouts)
    wanted = PrecomputedModel.of(token_model.memory, reading, sets, candidates=4)
    together, kept_sets, places = memory.joined(token_rollouts.tokens, reading)
    known = PrecomputedModel.of(token_model.memory, together, kept_sets, candidates=4)
    assert torch.equal(known.birth_logits[places], wanted.birth_logits)
    assert torch.equal(known.likeliest[places], wanted.likeliest)


def test_no_sets_can_be_remembered(memory: DeltaBank, tmp_path: Path) -> None:
    nothing = replace(memory.sets, **{name: tensor[:0] for name, tensor in vars(memory.sets).items()})
    empty = DeltaBank.of((), type(memory.reading)(*(column[:0] for column in memory.reading)), nothing)
    empty.save(tmp_path)
    assert DeltaBank.load(tmp_path).keys == ()
