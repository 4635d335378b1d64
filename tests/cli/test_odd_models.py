"""Models that nobody can judge, or not without being told more: the original comes back, with the reason."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from rlflow import schemas
from rlflow.equivalence.compare import compare
from rlflow.errors import InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx
from rlflow.optimise import optimise
from rlflow.rules import library
from rlflow.schemas.optimise import OptimiseReport
from rlflow.trajectory import record
from rlflow.trajectory.record import Trajectory

FLOAT = TensorProto.FLOAT
WEIGHT = numpy_helper.from_array(np.random.default_rng(0).standard_normal((16, 16), np.float32), "w")
SCALE = numpy_helper.from_array(np.float32(2.0), "s")
SCALED = (("MatMul", ["x", "w"], ["h"]), ("Mul", ["h", "s"], ["y"]))  # one rewrite folds the factor into the weight


def model(nodes, x=(4, 16), opset=17, ir=10, elements=FLOAT, weights=(WEIGHT, SCALE)):
    inputs = [helper.make_tensor_value_info("x", elements, x)]
    if ir < 4:
        inputs += [helper.make_tensor_value_info(w.name, w.data_type, w.dims) for w in weights]
    output = helper.make_tensor_value_info("y", elements, x)
    graph = helper.make_graph([helper.make_node(*node) for node in nodes], "odd", inputs, [output], list(weights))
    return helper.make_model(graph, ir_version=ir, opset_imports=[helper.make_opsetid("", opset)])


@pytest.fixture
def optimised(tmp_path, monkeypatch):
    """Optimise by greedy search with few runs; returns the result."""

    def run(proto, **settings):
        path = tmp_path / "model.onnx"
        onnx.save(proto, str(path))
        return optimise(path, method="greedy", budget_s=120.0, **settings)

    return run


UNJUDGEABLE = {
    "open sizes": (model(SCALED, x=("n", 16)), "its dimensions n are dynamic"),
    "random": (model((("RandomNormalLike", ["x"], ["r"]), ("MatMul", ["r", "w"], ["y"]))), "change from run to run"),
    "all nan": (
        model((("Sqrt", ["m"], ["n"]), ("MatMul", ["n", "w"], ["y"])), weights=(WEIGHT,)),
        "could tell a wrong",
    ),
    "no kernel": (
        model((("MatMul", ["x", "x"], ["y"]),), x=(4, 4), elements=TensorProto.BFLOAT16, weights=()),
        "could not be tried here",
    ),
}
UNJUDGEABLE["all nan"][0].graph.initializer.append(numpy_helper.from_array(np.full((4, 16), -1, np.float32), "m"))


@pytest.mark.slow
@pytest.mark.parametrize("name", UNJUDGEABLE)
def test_the_original_comes_back_with_the_reason(optimised, name):
    proto, reason = UNJUDGEABLE[name]
    found = optimised(proto)
    assert found.written == "original"
    assert reason in found.reason
    assert found.model.SerializeToString() == proto.SerializeToString()
    schemas.validate(OptimiseReport, found.report.to_json())
    assert reason in found.report.summary()


@pytest.mark.slow
def test_a_model_of_open_sizes_is_optimised_at_the_shape_that_is_named(optimised):
    """The rewrite that is turned down without sizes is found with them, and keeps the dimension open."""
    found = optimised(model(SCALED, x=("n", 16)), shapes={"x": (4096, 16)}, setting="as_written")
    assert found.result.trajectory.steps
    assert found.equivalence.non_vacuous_draws > 0
    assert set(found.latency) == {"as_written"}, "the setting that was asked for"
    assert found.model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"z": (1,)}, "no input 'z'; it has: x"),
        ({"x": (1, 2, 3)}, "has 2 dimensions, not 3"),
        ({"x": (64, 8)}, "dimension 1 of input 'x' is 8, it must be 16"),
        ({"x": (0, 16)}, "dimension 0 of input 'x' is 0, it must be positive"),
        ({"x": (2**63, 16)}, f"dimension 0 of input 'x' is {2**63}, it must be positive and below "),
    ],
)
def test_impossible_shapes(optimised, shapes, message):
    with pytest.raises(InputError, match=message):
        optimised(model(SCALED, x=("n", 16)), shapes=shapes)


@pytest.mark.slow
def test_weights_among_the_inputs_are_not_the_interface(optimised):
    """IR version 3 lists weights as inputs; a rewrite that makes another weight changes nothing that anybody feeds."""
    proto = model(SCALED, x=(4096, 16), opset=9, ir=3)
    found = optimised(proto, setting="as_written")
    assert found.result.trajectory.steps
    assert found.equivalence.equivalent


def test_a_rule_does_not_write_what_the_opset_cannot(optimised):
    """Sum broadcasts from opset 8 on: at 7 no rule may make one of unequal operands."""
    bias = numpy_helper.from_array(np.ones(16, np.float32), "b")
    nodes = (("MatMul", ["x", "w"], ["h"]), ("Add", ["h", "b"], ["y"]))
    for opset, allowed in ((7, False), (8, True)):
        from rlflow.rules.matching.rewriter import Rewriter

        rule = library.load().get("bias-add-to-sum")
        (matches,) = Rewriter((rule,)).matches(from_onnx(model(nodes, opset=opset, weights=(WEIGHT, bias))))
        assert bool(matches) == allowed


@pytest.mark.slow
def test_a_price_cache_that_cannot_be_written_costs_nothing_but_time(optimised, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    found = optimised(model(SCALED), cost_model="measured", prices=tmp_path / "file" / "prices.json")
    assert found.written in ("optimised", "original")
    assert "could not be kept" in caplog.text


def test_a_constant_without_a_value_is_carried_or_refused_in_words(tmp_path):
    proto = model((("Constant", [], ["c"]), ("Add", ["x", "c"], ["y"])), weights=())
    graph = from_onnx(proto)
    assert any(node.is_opaque for node in graph.nodes.values())


def test_equal_documents_for_one_that_was_timed_and_one_that_was_not(optimised):
    found = optimised(model((("MatMul", ["x", "w"], ["y"]),), weights=(WEIGHT,)))
    assert found.written == "original"
    assert found.latency == {}
    assert json.dumps(found.report.to_json())
    assert compare(found.model, found.model).equivalent


def test_a_constant_without_a_value_is_named_with_its_file(rlflow, tmp_path):
    """Row 99 of a weight of 16: what is read of it can be neither computed here nor by ONNX Runtime."""
    proto = model((("Gather", ["w", "i"], ["row"]), ("MatMul", ["x", "row"], ["y"])))
    proto.graph.initializer.append(numpy_helper.from_array(np.full(16, 99), "i"))
    path, recorded = tmp_path / "model.onnx", tmp_path / "trajectory.jsonl"
    onnx.save(proto, path)
    nothing_done = Trajectory(structural_hash(from_onnx(path)), 0.0, "analytic", library.load().hash, ())
    record.save([nothing_done], recorded)
    code, out, err = rlflow("replay", recorded, path, "-o", tmp_path / "output.onnx")
    assert (code, out) == (1, "")
    assert err.startswith(f"rlflow: {path}: Gather ('row',) cannot be evaluated: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "output.onnx").exists()
