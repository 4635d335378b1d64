"""How the outputs of dvc.yaml reproduce, and what dvc.lock says that they are."""

from pathlib import Path

import pytest
from studies.documents import document_type
from tracking.declaration import digests, outputs_by_kind

from rlflow.errors import InputError
from rlflow.schemas import Kind

DERIVED = (".png", ".md", ".csv", ".yaml")
"""Pictures, tables, rows of plots and summaries follow from figures, times among them."""


def test_of_every_output_something_says_how_it_reproduces(repository: Path) -> None:
    """Its schema or `meta`, and not both."""
    outputs = outputs_by_kind(repository)
    assert len(outputs) >= 15
    for path, kind in outputs.items():
        if not path.endswith(DERIVED) or path == "params.yaml":
            assert (kind is None) == (document_type(Path(path)) is not None), path


def test_rules_must_be_equal_and_rollouts_but_for_the_rounding_of_prices(repository: Path) -> None:
    outputs = outputs_by_kind(repository)
    assert outputs["data/rollouts"] is Kind.DIGITS
    assert {path for path, kind in outputs.items() if kind is Kind.EQUAL} == {
        "data/code.yaml",
        "params.yaml",
        "data/rules",
    }


def test_a_kind_that_there_is_not_is_refused(tmp_path: Path) -> None:
    stage = "{cmd: 'true', outs: [data/plain, data/rules: {meta: {reproduces: roughly}}]}"
    (tmp_path / "dvc.yaml").write_text(f"stages: {{first: {stage}}}\n")
    with pytest.raises(InputError, match="data/rules reproduces as 'roughly', which is none of equal, digits, timing"):
        outputs_by_kind(tmp_path)
    (tmp_path / "dvc.yaml").write_text(f"stages: {{first: {stage.replace('roughly', 'digits')}}}\n")
    assert outputs_by_kind(tmp_path) == {"data/plain": None, "data/rules": Kind.DIGITS}


def test_the_lock_has_a_digest_of_every_output(repository: Path) -> None:
    locked = digests((repository / "dvc.lock").read_text())
    assert {"params.yaml", "data/rules", "data/results/evaluate/metrics.json"} <= set(locked)
    assert all(len(digest.removesuffix(".dir")) == 32 for digest in locked.values())
    assert digests("") == {}
    with pytest.raises(InputError, match=r"(?s)dvc\.lock cannot be read: .*line 3"):
        digests("stages:\n<<<<<<< HEAD\n  first: {}\n=======\n")
