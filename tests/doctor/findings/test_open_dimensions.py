"""A model of dynamic sizes beside one that declares them."""

import numpy as np
from onnx import helper
from support.examined import subject_of
from support.small_models import FLOAT, build_model, dense_model

from rlflow.doctor.findings.open_dimensions import open_dimensions


def reshaped():
    """What its shape is read from is open: each run computes it again."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Expand", ["one", "s"], ["ones"]),
        helper.make_node("Add", ["x", "ones"], ["y"]),
    ]
    sizes = ["batch", 8]
    return build_model(nodes, [("x", FLOAT, sizes)], [("y", FLOAT, sizes)], {"one": np.ones(1, np.float32)})


def test_a_model_of_fixed_sizes_is_not_looked_at(tmp_path):
    assert not list(open_dimensions(subject_of(dense_model(), tmp_path)))


def test_the_sizes_are_told(tmp_path):
    """It is the clock's decision whether that is faster; the model itself stays open."""
    subject = subject_of(reshaped(), tmp_path, dimensions={"batch": 4})
    for finding in open_dimensions(subject):
        assert 'add_free_dimension_override_by_name("batch", 4)' in finding.advice
    assert (tmp_path / "pinned.onnx").exists()
    assert subject.model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
