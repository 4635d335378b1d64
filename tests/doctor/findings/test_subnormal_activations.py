"""Subnormal values between nodes, and the truth about the session option of the installed ONNX Runtime."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import helper
from support.examined import subject_of
from support.small_models import FLOAT, build_model, dense_model
from support.subnormal_models import convolutions

from rlflow.doctor.findings.subnormal_activations import OPTION, subnormal_activations
from rlflow.subnormal.flush import decayed, multiplied
from rlflow.subnormal.numbers import subnormal
from rlflow.subnormal.weights import weights_of


def damped():
    """Two factors of 1e-20: no weight is subnormal, and what comes out is."""
    nodes = [helper.make_node("Mul", ["x", "small"], ["h"]), helper.make_node("Mul", ["h", "small"], ["tiny"])]
    nodes.append(helper.make_node("Add", ["tiny", "x"], ["y"]))
    return build_model(nodes, [("x", FLOAT, [4, 8])], [("y", FLOAT, [4, 8])], {"small": np.full(8, 1e-20, np.float32)})


def test_they_are_found_by_running(tmp_path):
    (finding,) = subnormal_activations(subject_of(damped(), tmp_path))
    assert "1 value between nodes hold" in finding.found
    assert "tiny (100 %)" in finding.found or "tiny (9" in finding.found
    assert OPTION in finding.advice
    assert finding.effect.before_ms > 0
    assert finding.remedy is None


def test_a_model_without_them_is_healthy(tmp_path):
    assert not list(subnormal_activations(subject_of(dense_model(), tmp_path)))


def test_weights_that_are_nearly_subnormal_make_values_that_are(tmp_path):
    """With the subnormal numbers alone at zero there are some; without those that are nearly so there are none."""
    model = convolutions(decay=1e-37)
    strict = convolutions(decay=1e-37)
    for weight in weights_of(strict):
        weight.store(np.where(subnormal(weight.values()), np.float32(0), weight.values()))
    assert list(subnormal_activations(subject_of(strict, tmp_path)))
    flushed = multiplied(model, decayed(model).weights, 0.0)
    assert not list(subnormal_activations(subject_of(flushed, tmp_path)))


PROGRAM = f"""
import threading
import numpy as np
import onnxruntime as ort

def opened(on):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    if on:
        options.add_session_config_entry("{OPTION}", "1")
    return ort.InferenceSession("model.onnx", options, providers=["CPUExecutionProvider"])

def kept(session):
    return bool(session.run(None, {{"x": np.ones((2, 4), np.float32)}})[0].any())

def in_a_thread(work):
    done = []
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()
    thread.join()
    return done[0]
"""


@pytest.mark.parametrize(
    ("work", "is_kept"),
    [
        ("kept(opened(False))", True),
        ("kept(opened(True))", False),
        ("opened(False) and kept(opened(True))", True),
        ("opened(True) and kept(opened(False))", False),
        ("kept(in_a_thread(lambda: opened(True)))", True),
    ],
    ids=["without it", "the first session", "a second session", "one without it after it", "opened in another thread"],
)
def test_the_option_works_in_the_first_session_and_its_thread_alone(tmp_path, work, is_kept):
    """Told by a product that is subnormal: is it there, or zero? The advice of the finding rests on this."""
    weights = {"w": np.full(4, 1e-40, np.float32)}
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    onnx.save(build_model([node], [("x", FLOAT, [2, 4])], [("y", FLOAT, [2, 4])], weights), tmp_path / "model.onnx")
    said = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM}\nprint({work})"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == str(is_kept)
