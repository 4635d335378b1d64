"""Models after public reports, which ONNX Runtime runs as written and cannot run, or runs otherwise, as deployed.

If a later version of ONNX Runtime no longer stumbles over one, its test fails: that version needs another example.
"""

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper
from support.examined import subject_of
from support.small_models import dense_model

from rlflow.doctor.examination import examine
from rlflow.doctor.findings.wrong_fusions import wrong_fusions
from rlflow.doctor.subject import NotLookedFor
from rlflow.equivalence import equivalence
from rlflow.optimise.gate import judgeable
from rlflow.runtime.session import open_session, run

N = 8


def model_of(
    nodes: list[tuple], inputs: list[str], weights: dict[str, np.ndarray], shape: tuple[int, ...]
) -> ModelProto:
    """A model of nodes (operator, operands, results, attributes), whose inputs and output "y" have one shape."""
    made = [helper.make_node(op, i.split(), o.split(), **attributes) for op, i, o, attributes in nodes]
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in (*inputs, "y")}
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = helper.make_graph(made, "g", [values[name] for name in inputs], [values["y"]], held)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    checker.check_model(model, full_check=True)
    return model


def factor_of_one(operator: str, **attributes: int) -> ModelProto:
    """After microsoft/onnxruntime#32413, 32414 and 32416: a node that does nothing, and a factor of 1 / w behind it."""
    nodes = [
        (operator, "x", "mid", attributes),
        ("Div", "one w", "inverse", {}),
        ("Mul", "inverse mid", "y", {}),
    ]
    return model_of(nodes, ["x", "w"], {"one": np.float32(1.0)}, (N,))


def wrongly_fused() -> ModelProto:
    """After microsoft/onnxruntime#31144: a normalisation of columns by statistics of rows, fused as if of rows."""
    row = {"axes": [-1], "keepdims": 0}
    nodes = [
        ("ReduceMean", "x", "mean", row),
        ("Sub", "x mean", "d", {}),
        ("Pow", "d two", "square", {}),
        ("ReduceMean", "square", "variance", row),
        ("Add", "variance eps", "v", {}),
        ("Sqrt", "v", "s", {}),
        ("Div", "d s", "n", {}),
        ("Mul", "n scale", "m", {}),
        ("Add", "m shift", "y", {}),
    ]
    rng = np.random.default_rng(0)
    weights = {"two": np.float32(2.0), "eps": np.float32(1e-5)}
    weights |= {name: rng.standard_normal(N).astype(np.float32) for name in ("scale", "shift")}
    return model_of(nodes, ["x"], weights, (N, N))


BROKEN = {
    "a cast": (factor_of_one("Cast", to=TensorProto.FLOAT), "CastElimination"),
    "dropout": (factor_of_one("Dropout"), "EliminateDropout"),
    "identity": (factor_of_one("Identity"), "EliminateIdentity"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_model_that_does_not_open_as_deployed_is_mended(name, tmp_path):
    """Two optimisers break it together; without either it opens, and so does what was written anew."""
    model, optimiser = BROKEN[name]
    subject = subject_of(model, tmp_path)
    assert "`rlflow doctor` looks for the optimiser to blame" in subject.judgement.unjudgeable
    (finding,) = wrong_fusions(subject)
    assert optimiser in finding.found or "DivMulFusion" in finding.found
    assert "disabled_optimizers" in finding.advice
    assert finding.remedy is not None
    inputs = {name: np.arange(1, N + 1, dtype=np.float32) for name in ("x", "w")}
    assert np.array_equal(run(open_session(finding.remedy, "deployed"), inputs)["y"], np.ones(N))


def test_what_comes_after_looks_at_the_mended_model(tmp_path):
    """Not vacuous: of the model as it is, the threads could not be looked for."""
    model, _ = BROKEN["identity"]
    examined = examine(model, finders=["wrong fusions", "harmful fusions"], budget_s=None)
    assert [name for name, _ in examined.findings][:1] == ["wrong fusions"]
    assert examined.not_looked_for == {}
    assert equivalence(model, examined.model, setting="as_written").equivalent
    assert not judgeable(examined.model, examined.config).unjudgeable


def test_a_model_that_computes_something_else_as_deployed_is_told_of(tmp_path):
    (finding,) = wrong_fusions(subject_of(wrongly_fused(), tmp_path))
    assert "computes something else because of its LayerNormFusion" in finding.found
    assert "the original itself differs by" in finding.found
    assert "disabled_optimizers" in finding.advice
    assert finding.remedy is None, "as it is or as it runs: which of them is meant, nobody but its author knows"


def test_a_model_that_is_right_has_no_finding(tmp_path):
    assert list(wrong_fusions(subject_of(dense_model(), tmp_path))) == []


def test_a_model_that_does_not_run_as_written_is_not_looked_at(tmp_path):
    """The reason is that of the judgement."""
    model = model_of([("Gather", "x outside", "y", {})], ["x"], {"outside": np.full(N, 100)}, (N,))
    subject = subject_of(model, tmp_path)
    with pytest.raises(NotLookedFor, match="could not be tried here"):
        list(wrong_fusions(subject))
