"""Models of which ONNX Runtime dies, or which never end: the command says so and lives on."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from rlflow.equivalence import equivalence
from rlflow.errors import EquivalenceError, InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx
from rlflow.optimise import optimise
from rlflow.optimise.clock import NO_DEADLINE
from rlflow.optimise.diagnose import Derivation
from rlflow.optimise.gate import GateConfig, check, judging
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.isolation import Limits
from rlflow.trajectory.record import Trajectory

LIMITS = Limits(longest_s=60.0, most_memory_bytes=2**32)
SHORT = Limits(longest_s=3.0)
"""Of what would never end; a machine that is busy needs longer for the others."""


def _model(nodes: list[onnx.NodeProto], weights: dict[str, object]) -> ModelProto:
    """y = f(x) of four floats."""
    value, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    tensors = [numpy_helper.from_array(np.array(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "deadly", [value], [result], tensors)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    return model


def _divided(least: int) -> ModelProto:
    """x + least / -1 in int64, which no processor can divide if `least` is -2^63."""
    nodes = [
        helper.make_node("Mul", ["x", "zero"], ["nothing"]),
        helper.make_node("Cast", ["nothing"], ["none"], to=TensorProto.INT64),
        helper.make_node("Add", ["none", "least"], ["a"]),
        helper.make_node("Sub", ["none", "one"], ["b"]),
        helper.make_node("Div", ["a", "b"], ["q"]),
        helper.make_node("Cast", ["q"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "f"], ["y"]),
    ]
    return _model(nodes, {"zero": np.float32(0), "least": np.int64(least), "one": np.int64(1)})


def _looped(trips: int) -> ModelProto:
    scalar = [helper.make_tensor_value_info(n, t, []) for n, t in (("i", TensorProto.INT64), ("c", TensorProto.BOOL))]
    carried, kept = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("v", "w"))
    again = helper.make_tensor_value_info("d", TensorProto.BOOL, [])
    nodes = [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Relu", ["v"], ["w"])]
    body = helper.make_graph(nodes, "body", [*scalar, carried], [again, kept])
    node = helper.make_node("Loop", ["trips", "true", "x"], ["y"], body=body)
    return _model([node], {"trips": np.int64(trips), "true": np.array(True)})


def _filled(elements: int) -> ModelProto:
    nodes = [
        helper.make_node("ConstantOfShape", ["elements"], ["many"]),
        helper.make_node("ReduceSum", ["many"], ["sum"]),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    return _model(nodes, {"elements": np.array([elements], np.int64)})


DEADLY = {
    "crash": (_divided(-(2**63)), r"the process that ran it was ended \(SIGFPE\)"),
    "hang": (_looped(2**62), "did not finish within 3 s"),
    "memory": (_filled(10**12), "ConstantOfShape"),
    "memory that the machine would give": (_filled(2**30), "ConstantOfShape"),
}
HARMLESS = {"crash": _divided(-3), "hang": _looped(3), "memory": _filled(10)}


def limits_of(name):
    return SHORT if name == "hang" else LIMITS


def test_the_first_model_really_kills_what_runs_it(tmp_path):
    """Without a process of its own nothing could be said about the others."""
    onnx.save(DEADLY["crash"][0], tmp_path / "model.onnx")
    run = "import sys, numpy, onnxruntime as o; o.InferenceSession(sys.argv[1]).run(None, {'x': numpy.ones(4, 'f4')})"
    done = subprocess.run([sys.executable, "-c", run, str(tmp_path / "model.onnx")])
    assert done.returncode == -signal.SIGFPE


@pytest.mark.parametrize("name", DEADLY)
def test_the_original_comes_back_with_the_reason(name):
    model, reason = DEADLY[name]
    found = optimise(model, method="greedy", budget_s=120.0, gate=GateConfig(limits=limits_of(name)))
    assert found.written == "original"
    assert found.model == model
    assert found.reason.startswith("it could not be tried here: ")
    assert re.search(reason, found.reason)
    assert "\n" not in found.reason


@pytest.mark.parametrize("name", HARMLESS)
def test_only_the_numbers_make_them_deadly(name):
    assert equivalence(HARMLESS[name], HARMLESS[name], limits=LIMITS).equivalent


@pytest.mark.parametrize("name", DEADLY)
def test_equivalence_refuses_a_deadly_original(name):
    model, reason = DEADLY[name]
    with pytest.raises(InputError, match="the original could not be tried here: .*" + reason):
        equivalence(model, HARMLESS[name.split()[0]], limits=limits_of(name))


@pytest.mark.parametrize("name", ["crash", "memory"])  # one that hangs would cost its limit twice
def test_equivalence_rejects_a_deadly_candidate(name):
    model, reason = DEADLY[name]
    report = equivalence(HARMLESS[name], model, limits=LIMITS)
    assert not report.equivalent
    assert re.search(reason, report.reason)


def test_a_deadly_candidate_is_refused():
    """As if a rewrite had made it, which only a fault of ONNX Runtime could do."""
    original, candidate = HARMLESS["crash"], DEADLY["crash"][0]
    rules = library.load()
    graph = from_onnx(original)
    nothing_done = Trajectory(structural_hash(graph), 0.0, "analytic", rules.hash, ())
    derivation = Derivation(original, candidate, graph, nothing_done, Rewriter(rules.rules))
    with pytest.raises(EquivalenceError, match=r"the rewritten model could not be run: .*SIGFPE"):
        check(derivation, GateConfig(limits=LIMITS))


def test_the_commands_live_on(rlflow, tmp_path):
    path, output = tmp_path / "model.onnx", tmp_path / "output.onnx"
    onnx.save(DEADLY["crash"][0], path)
    before = path.read_bytes()
    code, out, _ = rlflow("optimise", path, "-o", output, "--budget", "2m")
    assert code == 0
    assert "it could not be tried here: the process that ran it was ended (SIGFPE)" in out
    assert output.read_bytes() == path.read_bytes() == before
    code, out, err = rlflow("equivalence", path, path)
    assert (code, out) == (2, "")
    assert err == ("rlflow: the original could not be tried here: the process that ran it was ended (SIGFPE)\n")
    assert {file.name for file in tmp_path.iterdir()} - {"cache"} == {"model.onnx", "output.onnx"}


def test_who_leaves_does_not_wait_for_the_judgement(tmp_path: Path) -> None:
    """Of a model that never ends, on whose process a limit of an hour lies."""
    path = tmp_path / "hang.onnx"
    onnx.save(DEADLY["hang"][0], path)
    with judging(path, GateConfig(limits=Limits(longest_s=3600.0)), NO_DEADLINE) as judgement:
        assert not judgement.done()
    assert "it was interrupted" in judgement.result().unjudgeable
