"""A checkpoint is whole or is not there."""

from pathlib import Path

import pytest
import torch

from rlflow.world_model.checkpoint import read_checkpoint, write_checkpoint


def test_what_is_written_is_read_for_the_same_run_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "checkpoint"
    assert read_checkpoint(path, "run") is None
    write_checkpoint(path, "run", 3, {"weight": torch.ones(2)})
    found = read_checkpoint(path, "run")
    assert found is not None
    assert found[0] == 3
    assert torch.equal(found[1]["weight"], torch.ones(2))
    assert read_checkpoint(path, "another") is None


def test_a_failing_write_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    write_checkpoint(path, "run", 1, {})
    with pytest.raises(Exception, match="pickle"):
        write_checkpoint(path, "run", 2, {"no tensor": lambda: None})
    found = read_checkpoint(path, "run")
    assert found == (1, {})


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"\x80\x02cbuiltins\neval\n."])
def test_a_broken_or_hostile_file_is_not_executed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(content)
    assert read_checkpoint(path, "run") is None
