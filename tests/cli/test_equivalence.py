"""`rlflow equivalence` and `rlflow.equivalence`: the same verdict, from files and from memory."""

import json

import numpy as np
import onnx
import pytest
from onnx import helper
from support.small_models import FLOAT, build_model, scaled

import rlflow as library
from rlflow import schemas, zoo
from rlflow.schemas.equivalence import EquivalenceReport


def report_of(rlflow, *arguments):
    code, out, err = rlflow("equivalence", *arguments, "--json")
    document = json.loads(out)
    schemas.validate(EquivalenceReport, document)
    assert err == ""
    return code, document


@pytest.mark.slow
def test_equivalent_models_exit_with_0(rlflow, tmp_path):
    first, second = scaled(tmp_path / "a.onnx", 2.0), scaled(tmp_path / "b.onnx", 2.0)
    code, out, err = rlflow("equivalence", first, second)
    assert (code, err) == (0, "")
    assert out.startswith("equivalent: ")
    code, document = report_of(rlflow, first, second, "--draws", "5", "--seed", "3")
    assert code == 0
    assert (document["draws"], document["non_vacuous_draws"], document["seed"]) == (5, 5, 3)


def test_different_models_exit_with_1_and_say_where(rlflow, tmp_path):
    first, second = scaled(tmp_path / "a.onnx", 2.0), scaled(tmp_path / "b.onnx", 2.1)
    code, out, err = rlflow("equivalence", first, second)
    assert (code, err) == (1, "")
    assert out.startswith("not equivalent: output 'y' differs by 5.00e-02")
    code, document = report_of(rlflow, first, second)
    assert (code, document["equivalent"], document["worst_output"]) == (1, False, "y")
    assert "float64" not in document, "five per cent leave no doubt"


@pytest.mark.parametrize("finite", [False, True])
def test_a_bound_tells_two_models_apart(rlflow, tmp_path, finite):
    """Standard normal numbers do not reach it."""
    paths = [tmp_path / "relu6.onnx", tmp_path / "relu.onnx"]
    shape, bounds = [("x", FLOAT, [64])], {"low": np.array(0, np.float32), "high": np.array(6, np.float32)}
    for path, node in zip(paths, (["Clip", "x", "low", "high"], ["Relu", "x"]), strict=True):
        nodes = [helper.make_node(node[0], node[1:], ["y"], name="bounded")]
        onnx.save(build_model(nodes, shape, [("y", FLOAT, [64])], bounds), path)
    code, document = report_of(rlflow, *paths, *(["--finite"] if finite else []))
    assert (code, document["equivalent"]) == (1, False)
    assert document["exceptional_draws"] == (0 if finite else 3)
    assert "mutants" not in document, "what differs needs no further evidence"


@pytest.mark.slow
def test_the_share_of_mutants_is_told(rlflow, tmp_path):
    """And below 95 % the nodes that nobody looked at: on inputs that are given, none of which is negative."""
    model = tmp_path / "model.onnx"
    nodes = [helper.make_node("Relu", ["x"], ["v"], name="idle"), helper.make_node("Neg", ["v"], ["y"], name="busy")]
    onnx.save(build_model(nodes, [("x", FLOAT, [8])], [("y", FLOAT, [8])]), model)
    code, out, _ = rlflow("equivalence", model, model)
    assert code == 0
    assert out.endswith("(3 of 3 draws informative; the draws told 3 of 3 mutants apart)\n")

    np.savez(tmp_path / "inputs.npz", x=np.arange(8, dtype=np.float32))
    code, document = report_of(rlflow, model, model, "--inputs", tmp_path / "inputs.npz")
    survivors = ["idle (Relu left out)", "idle (Relu became LeakyRelu)"]
    assert (code, document["mutants"]) == (0, {"mutants": 3, "killed": 1, "survivors": survivors})
    out = rlflow("equivalence", model, model, "--inputs", tmp_path / "inputs.npz")[1]
    assert f"the draws told 1 of 3 mutants apart; nobody looked at {'; '.join(survivors)}" in out
    code, document = report_of(rlflow, model, model, "--mutants", "0")
    assert (code, "mutants" in document) == (0, False)


def test_inputs_that_tell_no_mutant_are_no_evidence(rlflow, tmp_path):
    """Two outputs are as different as can be, and neither depends on what the nodes do."""
    model = tmp_path / "model.onnx"
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="idle")]
    onnx.save(build_model(nodes, [("x", FLOAT, [8])], [("y", FLOAT, [8])]), model)
    np.savez(tmp_path / "inputs.npz", x=np.arange(8, dtype=np.float32))
    code, out, _ = rlflow("equivalence", model, model, "--inputs", tmp_path / "inputs.npz")
    assert code == 1
    assert out.startswith("no difference, but no drawn input could have shown one")


def test_what_float64_says_is_reported(rlflow, tmp_path):
    first, second = (scaled(tmp_path / f"{far}.onnx", 1.0, there_and_back=far) for far in (1000.0, 3000.0))
    code, document = report_of(rlflow, first, second)
    assert code == 0
    assert document["max_relative_error"] > document["tolerance"]
    assert document["float64"]["difference"] <= document["float64"]["allowed"]


def test_an_infinite_error_is_null(rlflow, tmp_path):
    code, document = report_of(rlflow, scaled(tmp_path / "a.onnx", 1.0), scaled(tmp_path / "b.onnx", np.nan))
    assert (code, document["max_relative_error"]) == (1, None)


def test_no_evidence_is_no_equivalence(rlflow, tmp_path):
    first = scaled(tmp_path / "a.onnx", 0.0)
    code, out, _ = rlflow("equivalence", first, first)
    assert code == 1
    assert "no drawn input could have shown one" in out


def test_sizes_and_inputs_can_be_given(rlflow, tmp_path):
    """On zeros both models agree: so the verdict shows that those inputs were used."""
    first, second = (scaled(tmp_path / f"{factor}.onnx", factor, ("n", 4)) for factor in (2.0, 3.0))
    inputs = tmp_path / "inputs.npz"
    for values, equivalent in ((np.zeros((5, 4)), True), (np.arange(20).reshape(5, 4), False)):
        np.savez(inputs, x=values.astype(np.float32))
        code, document = report_of(rlflow, first, second, "--inputs", inputs)
        assert (code, document["equivalent"], document["draws"]) == (1, equivalent, 1)
    assert report_of(rlflow, first, first, "--shape", "x=7x4")[0] == 0


def test_a_rewritten_model_is_equivalent(tmp_path):
    """Not a copy: the known optimum of a model of the zoo."""
    first, second = zoo.build("tiny_chain"), zoo.optimum("tiny_chain")
    assert len(first.graph.node) != len(second.graph.node)
    assert library.equivalence(first, second).equivalent
