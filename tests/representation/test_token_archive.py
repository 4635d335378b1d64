"""Token rollouts survive the disk bit by bit, and broken files are refused."""

import json
import math
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.contents import contents
from support.random_token_rollouts import WORDS, random_rollouts

from rlflow.errors import InputError
from rlflow.representation.token_archive import load, save
from rlflow.representation.token_rollouts import TokenRollouts

FILES = ("token_rollouts.npz", "token_rollouts.json")


def assert_same(one: object, other: object) -> None:
    """The same to the bit, type of numbers included."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, strict=True)
    elif isinstance(one, tuple):
        for left, right in zip(one, other, strict=True):  # type: ignore[call-overload]
            assert_same(left, right)
    elif hasattr(one, "__dataclass_fields__"):
        for field in fields(one):  # type: ignore[arg-type]
            assert_same(getattr(one, field.name), getattr(other, field.name))
    else:
        np.testing.assert_equal(one, other)  # a number that is not known is like another one


@given(st.integers(0, 2**32 - 1), st.integers(0, 4), st.integers(0, 5), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_what_is_loaded_is_what_was_saved(seed: int, episodes: int, steps: int, tokens: int) -> None:
    rollouts = random_rollouts(seed, episodes, steps, tokens)
    with TemporaryDirectory() as folder:
        save(rollouts, Path(folder))
        assert_same(load(Path(folder)), rollouts)


def test_drawn_rollouts_are_not_vacuous() -> None:
    """Among them there are steps that end, turn and bear matches, and episodes with and without demonstrations."""
    drawn = [episode for seed in range(20) for episode in random_rollouts(seed).episodes]
    steps = [step for episode in drawn for step in episode.steps]
    assert sum(len(episode.steps) for episode in drawn) > 50
    assert all(any(part(step) for step in steps) for part in (lambda s: s.gone.any(), lambda s: len(s.turned)))
    assert any(len(step.born) for step in steps)
    assert {episode.demonstration is None for episode in drawn} == {True, False}
    assert {math.isnan(step.latency_saved) for step in steps} == {True, False}


def test_nothing_at_all_can_be_saved(tmp_path: Path) -> None:
    nothing = TokenRollouts((), (), (), (), WORDS, "none")
    save(nothing, tmp_path)
    assert_same(load(tmp_path), nothing)


def test_equal_rollouts_are_equal_files(tmp_path: Path) -> None:
    save(random_rollouts(3), tmp_path / "a")
    save(random_rollouts(3), tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a").keys() == {*FILES}


def test_integers_are_narrow(tmp_path: Path) -> None:
    """All numbers of these rollouts fit into one byte."""
    save(random_rollouts(3), tmp_path)
    with np.load(tmp_path / FILES[0]) as stored:
        assert {array.itemsize for array in stored.values() if array.dtype.kind in "iu"} == {1}


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_truncated_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"cannot be read.*run collect_rollouts"):
        load(tmp_path)
    save(random_rollouts(3), tmp_path)
    content = (tmp_path / name).read_bytes()
    for length in (0, 10, len(content) // 2, len(content) - 3):
        (tmp_path / name).write_bytes(content[:length])
        with pytest.raises(InputError, match=r"cannot be read.*run collect_rollouts"):
            load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=r"cannot be read.*run collect_rollouts"):
        load(tmp_path)


def test_a_flipped_bit_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    """Not vacuous: most flips are refused, by the checksums of the archive."""
    rollouts = random_rollouts(3, episodes=30)
    save(rollouts, tmp_path)
    content, refused = (tmp_path / FILES[0]).read_bytes(), 0
    for place in np.random.default_rng(0).integers(0, len(content), 40).tolist():
        flipped = bytearray(content)
        flipped[place] ^= 0x10
        (tmp_path / FILES[0]).write_bytes(flipped)
        try:
            assert_same(load(tmp_path), rollouts)
        except InputError:
            refused += 1
    assert refused > 20


def changed(folder: Path, **arrays: np.ndarray) -> None:
    """Write the archive again with other arrays in it."""
    with np.load(folder / FILES[0]) as stored:
        content = dict(stored)
    np.savez_compressed(folder / FILES[0], **content | {k.replace("__", "/"): v for k, v in arrays.items()})


def test_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    rollouts = random_rollouts(3)
    save(rollouts, tmp_path)
    with np.load(tmp_path / FILES[0]) as stored:
        content = dict(stored)
    for name, array in content.items():
        changed(tmp_path, **{name.replace("/", "__"): array[:-1]})
        with pytest.raises(InputError, match="token rollouts"):
            load(tmp_path)
    for name, value in (("state/token", 99), ("step/chosen", 99), ("token/op", 0), ("state/count", 0)):
        changed(tmp_path, **content | {name.replace("/", "__"): np.full_like(content[name], value)})
        with pytest.raises(InputError, match="token rollouts"):
            load(tmp_path)


def test_files_of_different_rollouts_are_refused(tmp_path: Path) -> None:
    save(random_rollouts(3), tmp_path)
    description = (tmp_path / FILES[1]).read_bytes()
    save(random_rollouts(4), tmp_path)
    (tmp_path / FILES[1]).write_bytes(description)
    with pytest.raises(InputError, match="do not belong together; run collect_rollouts"):
        load(tmp_path)


def test_another_format_is_refused(tmp_path: Path) -> None:
    rollouts = random_rollouts(3)
    save(rollouts, tmp_path)
    description = json.loads((tmp_path / FILES[1]).read_text())
    (tmp_path / FILES[1]).write_text(json.dumps(description | {"format_version": 0}))
    with pytest.raises(InputError, match="another format version; run collect_rollouts again"):
        load(tmp_path)
    (tmp_path / FILES[1]).write_text("[]")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path)
