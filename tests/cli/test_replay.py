"""`rlflow replay` as a person meets it."""

import json

import onnx
import pytest
from support.onnx_models import save
from support.recording import FOLDER as RECORDED
from support.recording import MODELS

from rlflow import schemas
from rlflow.equivalence.compare import compare
from rlflow.schemas.replay import ReplayReport


def test_a_recorded_trajectory_replays_to_the_same_model(rlflow, tmp_path):
    """Greedy search on a tiny graph, recorded, replayed from the file by the command, and refused on another model."""
    from rlflow.cost.analytic import AnalyticCost
    from rlflow.method import Budget
    from rlflow.onnx_io import from_onnx
    from rlflow.rules import library
    from rlflow.rules.matching.rewriter import Rewriter
    from rlflow.search.greedy import Greedy
    from rlflow.trajectory import record

    source, other = save(tmp_path / "in.onnx", "tiny_chain"), save(tmp_path / "other.onnx", "tiny_chain", seed=1)
    rules = library.load()
    result = Greedy(rules, Rewriter(rules.rules), AnalyticCost()).optimise(from_onnx(source), Budget())
    assert result.trajectory.steps
    recorded, target = tmp_path / "trajectory.jsonl", tmp_path / "out.onnx"
    record.save([result.trajectory], recorded)
    code, out, err = rlflow("replay", recorded, source, "-o", target, "--json")
    assert code == 0, err
    schemas.validate(ReplayReport, json.loads(out))
    assert compare(source, target).equivalent
    code, _, err = rlflow("replay", recorded, other)
    assert code == 1
    assert "starts from graph" in err


def test_a_trajectory_of_sharing_matching_is_replayed_by_the_rewriter_that_shares(rlflow, tmp_path):
    """The command reads from the file how locations were counted; with the other way of counting it leads elsewhere."""
    from support.episodes import SMALL_BERT, record

    from rlflow import zoo
    from rlflow.onnx_io import from_onnx
    from rlflow.rules import library
    from rlflow.rules.matching.sharing import SharingRewriter
    from rlflow.trajectory.record import save as save_trajectories

    source, recorded = tmp_path / "in.onnx", tmp_path / "trajectory.jsonl"
    onnx.save(zoo.build("bert", **SMALL_BERT, positions=16), source)
    rules = library.load()
    save_trajectories([record(from_onnx(source), SharingRewriter(rules.rules), rules.hash, 20, seed=1)], recorded)
    code, out, err = rlflow("replay", recorded, source, "-o", tmp_path / "out.onnx")
    assert code == 0, err
    assert "every hash agrees" in out
    private = json.loads(recorded.read_text()) | {"matching": "private"}
    recorded.write_text(json.dumps(private) + "\n")
    assert rlflow("replay", recorded, source)[0] == 1


@pytest.mark.slow
def test_a_model_that_is_replayed_to_a_file_is_compared_where_its_sizes_are_known(rlflow, tmp_path, caplog):
    """A recorded trajectory over a BERT of open batch: what is written without a shape comes with a warning."""
    name = "bert_open_batch"
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(MODELS[name](), source)
    code, out, err = rlflow("replay", RECORDED / f"{name}.jsonl", source, "-o", target)
    assert code == 0, err
    assert "every hash agrees" in out
    assert "was not compared with the original: its dimensions batch are dynamic" in caplog.text
    target.unlink()
    caplog.clear()
    code, _, err = rlflow("replay", RECORDED / f"{name}.jsonl", source, "-o", target, "--shape", "input_ids=3x8")
    assert code == 0, err
    assert caplog.text == ""
    assert compare(source, target, dimensions={"batch": 3}).equivalent
    code, out, err = rlflow("replay", RECORDED / f"{name}.jsonl", source, "-o", target, "--shape", "ids=3x8")
    assert (code, out) == (2, "")
    assert "no input 'ids'" in err
