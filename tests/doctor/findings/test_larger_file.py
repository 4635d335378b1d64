"""Weights that nobody reads, and notes on nodes."""

import numpy as np
from onnx import helper, numpy_helper
from support.examined import subject_of
from support.small_models import FLOAT, dense_model
from support.subnormal_models import loop

from rlflow.doctor.findings.larger_file import larger_file
from rlflow.equivalence.compare import compare


def test_an_idle_weight_goes(tmp_path):
    model = dense_model()
    model.graph.initializer.append(numpy_helper.from_array(np.ones(1000, np.float32), "idle"))
    (finding,) = larger_file(subject_of(model, tmp_path))
    assert "1 weight of 0.00 MB that no node reads" in finding.found
    assert finding.bytes_saved == 4000
    assert [tensor.name for tensor in finding.remedy.graph.initializer] == ["w", "b"]
    assert compare(model, finding.remedy).max_absolute_error == 0.0


def test_notes_go_inside_bodies_too(tmp_path):
    model = loop()
    note = "a traceback of the exporter " * 100
    model.graph.node[0].attribute[0].g.node[0].doc_string = note
    (finding,) = larger_file(subject_of(model, tmp_path))
    assert len(note) <= finding.bytes_saved <= len(note) + 64, "and what a message writes of their lengths"
    assert note.encode() not in finding.remedy.SerializeToString()
    assert compare(model, finding.remedy).max_absolute_error == 0.0


def test_weights_of_bodies_and_outputs_are_read(tmp_path):
    """Each is large enough to be reported."""
    large = np.ones(1000, np.float32)
    model = loop()
    model.graph.initializer.append(numpy_helper.from_array(large, "told"))
    model.graph.output.append(helper.make_tensor_value_info("told", FLOAT, [1000]))
    assert not list(larger_file(subject_of(model, tmp_path)))
    captured = loop()
    captured.graph.initializer[2].CopyFrom(numpy_helper.from_array(np.ones((8, 8), np.float32), "outer"))
    assert not list(larger_file(subject_of(captured, tmp_path)))
