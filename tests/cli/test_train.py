"""`rlflow train`: models go in, a policy that `rlflow optimise` reads comes out, or nothing and a sentence."""

import json
from pathlib import Path

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from support.contents import contents
from support.onnx_models import save

from rlflow.agents.match_level import taught_guide
from rlflow.agents.match_level.guide import Guide, shipped
from rlflow.agents.match_level.taught_guide import TaughtGuide

DREAMED = ("--episodes", 2, "--dream-steps", 2000)
QUICK = ("--effort", 300, "--rewrites", 20, "--epochs", 2, "--cost-model", "analytic", *DREAMED)
OLDER = ("--evaluations", 10)
"""An older name of --rewrites."""
SMALL = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50, "positions": 16}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    return [save(folder / "bert.onnx", "bert", **SMALL, head="cls"), save(folder / "merge.onnx", "tiny_merge")]


@pytest.mark.slow
def test_a_policy_comes_out_that_optimises(rlflow, models: list[Path], tmp_path: Path):
    folder = tmp_path / "made" / "policy"
    code, out, err = rlflow("train", *models, "--policy-out", folder, *QUICK, "--json", *OLDER)
    assert code == 0, err
    told = json.loads(out)
    assert told["evaluations"] == 10, "not the 20 of --rewrites"
    assert [row["model"] for row in told["models"]] == ["bert", "merge"]
    for row in told["models"]:
        assert row["steps"] > 0
        assert min(row["before_percent"], row["after_percent"], row["expert_percent"]) >= row["greedy_percent"] - 1e-9
    policy = TaughtGuide.load(folder)
    before, after = (one.controller.policy.state_dict() for one in (taught_guide.shipped(), policy) if one.controller)
    assert before.keys() == after.keys()
    assert not any(torch.equal(before[name], after[name]) for name in before), "C has gone on learning"
    assert policy.trained_on == {**shipped().trained_on, "tuned_on": ["bert", "merge"]}

    options = ("--method", "rlflow", "--policy", folder, "--cost-model", "analytic", "--budget", "2s")
    code, out, err = rlflow("optimise", models[0], "-o", tmp_path / "out.onnx", *options)
    assert code == 0, err
    assert (tmp_path / "out.onnx").exists()


@pytest.mark.study  # trains twice
def test_the_same_models_give_the_same_policy_which_can_go_on(rlflow, models: list[Path], tmp_path: Path):
    first, again, further = (tmp_path / name for name in ("first", "again", "further"))
    for folder, *options in ((first,), (again,), (further, "--policy", first, "--expert", "chains")):
        code, out, err = rlflow("train", models[1], "--policy-out", folder, *QUICK, *options)
        assert code == 0, err
    assert "merge: greedy search saves" in out
    assert f"--policy {further}" in out
    files = contents(first)
    assert files == contents(again)
    assert Guide.load(further).trained_on["tuned_on"] == ["merge", "merge"]


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """A model in which there is nothing to rewrite."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]
    nodes = [helper.make_node("Tanh", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "one", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph), tmp_path / "one.onnx")
    return tmp_path / "one.onnx"


@pytest.mark.slow
def test_models_without_anything_to_rewrite_teach_nothing(refused, finished: Path, tmp_path: Path):
    """Two of the same name are called by their paths."""
    elsewhere = tmp_path / "elsewhere" / finished.name
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(finished.read_bytes())
    nothing = "there is nothing to learn: the expert found nothing to rewrite in"
    options = (tmp_path / "policy", *QUICK)
    assert f"{nothing} one\n" in refused("train", finished, "--policy-out", *options)
    assert f"{nothing} {finished}, {elsewhere}\n" in refused("train", finished, elsewhere, "--policy-out", *options)


@pytest.mark.study  # a quarter of a minute
def test_one_of_them_does_not_cost_what_others_have_taught(rlflow, models, finished: Path, tmp_path: Path):
    code, out, err = rlflow("train", models[1], finished, "--policy-out", tmp_path / "policy", *QUICK)
    assert code == 0, err
    assert "one: the expert found nothing to rewrite, so nothing was learned" in out
    assert Guide.load(tmp_path / "policy").trained_on["tuned_on"] == ["merge"]


def test_an_interrupt_leaves_no_half_of_a_folder(rlflow, models: list[Path], tmp_path: Path, monkeypatch):
    def interrupted(policy: TaughtGuide, folder: Path) -> None:
        folder.mkdir()
        (folder / "world_model.json").write_text("{")
        raise KeyboardInterrupt

    monkeypatch.setattr(TaughtGuide, "save", interrupted)
    code, _, err = rlflow("train", models[1], "--policy-out", tmp_path / "policy", *QUICK)
    assert code == 130
    assert "no file was left half written" in err
    assert not [path for path in tmp_path.iterdir() if path.name != "cache"]
