"""Weights that are stored twice, and the model that stores them once."""

import numpy as np
from onnx import helper
from support.examined import subject_of
from support.small_models import FLOAT, build_model, dense_model
from support.subnormal_models import loop

from rlflow.doctor.findings.stored_twice import stored_twice
from rlflow.equivalence.compare import compare
from rlflow.onnx_io import require_valid


def twins(*, equal=True):
    """x through two products, by weights that are equal or differ in one bit."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal((20, 20)).astype(np.float32)
    second = first.copy()
    if not equal:
        second[3, 3] = np.nextafter(second[3, 3], np.float32(9))
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node("MatMul", ["h", "b"], ["y"])]
    return build_model(nodes, [("x", FLOAT, [4, 20])], [("y", FLOAT, [4, 20])], {"a": first, "b": second})


def test_they_are_stored_once(tmp_path):
    model = twins()
    (finding,) = stored_twice(subject_of(model, tmp_path))
    assert finding.bytes_saved == 20 * 20 * 4
    assert [tensor.name for tensor in finding.remedy.graph.initializer] == ["a"]
    require_valid(finding.remedy)
    report = compare(model, finding.remedy)
    assert (report.equivalent, report.max_absolute_error) == (True, 0.0)


def test_readers_inside_a_body_follow(tmp_path):
    model = loop()
    large = np.random.default_rng(1).standard_normal((8, 64)).astype(np.float32)
    for name in ("p1", "p2"):
        model.graph.initializer.append(helper.make_tensor(name, FLOAT, large.shape, large.tobytes(), raw=True))
    body = model.graph.node[0].attribute[0].g
    body.node[0].CopyFrom(helper.make_node("MatMul", ["p2", "back"], ["inner"]))
    back = np.random.default_rng(2).standard_normal((64, 8)).astype(np.float32)
    model.graph.initializer.append(helper.make_tensor("back", FLOAT, back.shape, back.tobytes(), raw=True))
    (finding,) = stored_twice(subject_of(model, tmp_path))
    assert finding.remedy.graph.node[0].attribute[0].g.node[0].input[0] == "p1"
    assert compare(model, finding.remedy).max_absolute_error == 0.0


def test_one_bit_makes_two_weights(tmp_path):
    assert not list(stored_twice(subject_of(twins(equal=False), tmp_path)))


def test_an_output_keeps_its_name(tmp_path):
    model = twins()
    model.graph.output.append(helper.make_tensor_value_info("b", FLOAT, [20, 20]))
    assert not list(stored_twice(subject_of(model, tmp_path)))


def test_small_ones_are_not_worth_it(tmp_path):
    assert not list(stored_twice(subject_of(dense_model(), tmp_path)))
