"""What a person meets when a rule is false: the step, the rule, the value, and a folder that shows it again.

The rule is made up and has no certificate, so that no library could be loaded with it: it is put there by hand.
"""

import os
import re
import shlex
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.wrong_rule import WRONG

import rlflow
from rlflow.cli import replay as replay_command
from rlflow.rules import library as rule_library
from rlflow.rules import user_rules
from rlflow.rules.library import Library
from rlflow.trajectory import record

WIDTH = 256


@pytest.fixture
def with_the_wrong_rule(monkeypatch):
    shipped = rule_library.load()
    right = [shipped.get(name) for name in ("bias-add-to-sum",)]
    spoiled = Library((*right, WRONG))
    monkeypatch.setattr(user_rules, "load", lambda path=None: spoiled)
    monkeypatch.setattr(replay_command.rule_library, "load", lambda path=None: spoiled)
    return spoiled


@pytest.fixture
def model(tmp_path):
    """Three layers with biases; it takes so much time that to lose an Add pays."""
    rng = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for layer in range(3):
        named = f"layer{layer}"
        nodes.append(helper.make_node("MatMul", [value, f"{named}/w"], [f"{named}/product"]))
        nodes.append(helper.make_node("Add", [f"{named}/product", f"{named}/b"], [f"{named}/sum"]))
        nodes.append(helper.make_node("Tanh", [f"{named}/sum"], [f"{named}/y"]))
        weights.append(numpy_helper.from_array(rng.standard_normal((WIDTH, WIDTH), np.float32) / 16, f"{named}/w"))
        weights.append(numpy_helper.from_array(rng.standard_normal(WIDTH, np.float32), f"{named}/b"))
        value = f"{named}/y"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [512, WIDTH]) for name in ("x", value)]
    graph = helper.make_graph(nodes, "layers", ends[:1], ends[1:], weights)
    path = tmp_path / "a model.onnx"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_optimise_names_the_step_and_leaves_a_reproducer(
    rlflow, with_the_wrong_rule, model, tmp_path, monkeypatch, caplog
):
    """The run ends well, loudly: without the wrong rule nothing is found, and the original is written."""
    target = tmp_path / "faster.onnx"
    folder = tmp_path / "faster.onnx.reproducer"
    code, out, err = rlflow("optimise", model, "-o", target, "--method", "greedy", "--setting", "as_written")
    assert code == 0
    assert target.read_bytes() == model.read_bytes()
    found = re.search(
        rf"it broke at step (\d+), rule lose-a-bias \({WRONG.id}\) at location \d, replacing 'layer\d/sum'", out
    )
    assert found, out
    assert "computes something else and was refused" in out
    assert "computes something else and was refused" in caplog.text
    assert str(folder / "README.txt") in out
    names = {"README.txt", "after.onnx", "before.onnx", "inputs.npz", "trajectory.jsonl"}
    assert {path.name for path in folder.iterdir()} == names

    before, after = (onnx.load(folder / name).graph for name in ("before.onnx", "after.onnx"))
    assert [node.op_type for node in before.node] == ["MatMul", "Add"], "the match alone, of nine nodes"
    assert [node.op_type for node in after.node] == ["MatMul"]
    (recorded,) = record.load(folder / "trajectory.jsonl")
    assert [step.rule for step in recorded.steps] == [WRONG.id]

    text = (folder / "README.txt").read_text()
    commands = [line.strip() for line in text.splitlines() if line.startswith("    rlflow ")]
    assert len(commands) == 2
    monkeypatch.chdir(folder)
    code, out, _ = rlflow(*shlex.split(commands[0])[1:])
    assert code == 1
    assert "not equivalent: output 'output_0' differs" in out
    code, _, err = rlflow(*shlex.split(commands[1])[1:])
    assert code == 1
    assert "it broke at step 1, rule lose-a-bias" in err
    assert not Path("broken.onnx").exists()


def test_without_a_folder_for_the_reproducer_nothing_is_written(with_the_wrong_rule, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = rlflow.optimise(model, method="greedy", setting="as_written").report
    (refusal,) = report.refusals
    assert re.search(r"it broke at step \d+, rule lose-a-bias", refusal.reason)
    assert (refusal.rules, report.rule_names[WRONG.id]) == ((WRONG.id,), "lose-a-bias")
    assert os.listdir() == ["a model.onnx"]


def test_a_folder_that_cannot_be_written_does_not_hide_the_fault(rlflow, with_the_wrong_rule, model, tmp_path):
    (tmp_path / "faster.onnx.reproducer").write_text("a file of this name")
    target = tmp_path / "faster.onnx"
    code, out, _ = rlflow("optimise", model, "-o", target, "--method", "greedy", "--setting", "as_written")
    assert code == 0
    assert "rule lose-a-bias" in out
    assert "no reproducer could be written" in out
