"""A model gives way to a faster one once, and one for which there is none, or none that fits, is not touched."""

import os
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from support.onnx_models import save, with_drawn_weights
from support.texts import SUMMED

from rlflow.equivalence.compare import compare
from rlflow.errors import InputError
from rlflow.optimise import in_place
from rlflow.optimise.answers import Answers
from rlflow.optimise.asked import Asked
from rlflow.optimise.in_place import OUTSIDE, PINNED, STAMPED, Improvement, improvement
from rlflow.optimise.pipeline import NOTHING_FOUND

GREEDY = Asked(method="greedy", threads=1, default_options=True)


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    return Answers(tmp_path / "answers")


def looked_for(path: Path, answers: Answers, asked: Asked = GREEDY) -> Improvement:
    return improvement(path, asked, budget_s=20.0, answers=answers, prices=None)


def test_a_faster_model_takes_the_place_once(tmp_path: Path, answers: Answers) -> None:
    """Of a chain of products, which is several times as fast; then it stays, also where no answers are kept."""
    original, path = save(tmp_path / "original.onnx", "tiny_chain"), save(tmp_path / "model.onnx", "tiny_chain")
    found = looked_for(path, answers)
    assert found.left_because == ""
    assert found.report is not None
    assert path.read_bytes() == original.read_bytes(), "looking for it writes nothing"
    found.save()
    agreement = compare(original, path, draws=2, seed=7)
    assert agreement.equivalent, agreement.reason
    assert len(onnx.load(str(path)).graph.node) < len(onnx.load(str(original)).graph.node)
    assert looked_for(path, Answers(tmp_path / "no answers")) == Improvement(path, STAMPED)


@pytest.mark.slow
def test_what_was_found_before_is_not_searched_again(
    tmp_path: Path, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy elsewhere is answered as well, be there a faster model or none."""
    chain, mlp = save(tmp_path / "chain.onnx", "tiny_chain"), save(tmp_path / "mlp.onnx", "mlp")
    faster, same = looked_for(chain, answers), looked_for(mlp, answers)

    def searched(*_: object, **__: object) -> None:
        raise AssertionError("it was searched again")

    monkeypatch.setattr(in_place, "optimise", searched)
    copy = save(tmp_path / "copy.onnx", "tiny_chain")
    again = looked_for(copy, answers)
    assert again == replace(faster, path=copy)
    again.save()
    assert looked_for(copy, answers) == Improvement(copy, STAMPED)
    assert looked_for(mlp, answers) == same
    with pytest.raises(AssertionError, match="searched again"):
        looked_for(chain, answers, replace(GREEDY, threads=2))


def test_a_model_for_which_there_is_no_faster_one_is_not_touched(tmp_path: Path, answers: Answers) -> None:
    path = save(tmp_path / "model.onnx", "mlp")
    os.utime(path, (0, 0))
    found = looked_for(path, answers)
    found.save()
    assert (found.left_because, found.model) == (NOTHING_FOUND, None)
    assert path.stat().st_mtime == 0


@pytest.mark.slow
def test_a_link_leads_to_the_file_that_is_replaced(tmp_path: Path, answers: Answers) -> None:
    path, link = save(tmp_path / "model.onnx", "tiny_chain"), tmp_path / "link.onnx"
    link.symlink_to(path.name)
    looked_for(link, answers).save()
    assert link.is_symlink()
    assert looked_for(path, answers) == Improvement(path, STAMPED)


def test_weights_in_other_files_stay_there(tmp_path: Path, answers: Answers) -> None:
    path = tmp_path / "model.onnx"
    model = onnx.load(str(save(tmp_path / "one_file.onnx", "tiny_chain")))
    onnx.save_model(model, str(path), save_as_external_data=True, location="weights", size_threshold=0)
    assert looked_for(path, answers) == Improvement(path, OUTSIDE)


@pytest.mark.slow
def test_inputs_stay_as_open_as_they_are(tmp_path: Path, answers: Answers) -> None:
    """The same model is rewritten to one that accepts these sizes alone, where that is asked for by its own command."""
    path = tmp_path / "model.onnx"
    onnx.save(with_drawn_weights(SUMMED), path)
    found = looked_for(path, answers, replace(GREEDY, shape={"x": (256, 64), "z": (256, 64)}))
    assert found.report is not None
    assert found.report.pinned
    assert found.model is None
    assert (found.left_because == PINNED) == (found.report.written == "optimised"), "faster, unless noise hides it"


def test_no_model_is_one_sentence(tmp_path: Path, answers: Answers) -> None:
    (tmp_path / "model.onnx").write_text("no model")
    with pytest.raises(InputError, match=r"model\.onnx is not an ONNX model"):
        looked_for(tmp_path / "model.onnx", answers)
    with pytest.raises(InputError, match="no file"):
        looked_for(tmp_path / "absent.onnx", answers)
