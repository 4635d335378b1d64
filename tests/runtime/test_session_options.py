"""Session options: a model carries them, runs with them as deployed, and tells its users how to do the same."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_models import dense_model

import rlflow
from rlflow.errors import InputError, ModelFormatError
from rlflow.onnx_io.metadata import with_metadata
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.kernel_runs import operators
from rlflow.runtime.onnx_runtime import OpenSession
from rlflow.runtime.runtimes import open_model
from rlflow.runtime.session_options import DEFAULTS, KEY, SessionOptions, write_beside

UNFUSED = SessionOptions(disabled_optimizers=("MatMulAddFusion",))
OPTIONS = st.builds(
    SessionOptions,
    st.sampled_from(["ORT_ENABLE_ALL", "ORT_DISABLE_ALL"]),
    st.lists(st.sampled_from(["MatMulAddFusion", "GeluFusion"]), unique=True).map(tuple),
    st.integers(0, 64),
)


def saved(options: SessionOptions, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(options.put_into(dense_model()), path)
    return path


@settings(max_examples=30)
@given(OPTIONS, OPTIONS)
def test_a_model_carries_the_last_that_were_put_into_it(first: SessionOptions, last: SessionOptions) -> None:
    model = last.put_into(first.put_into(dense_model()))
    assert SessionOptions.of(model) == last
    assert SessionOptions.of(dense_model()) == DEFAULTS
    assert model.graph == dense_model().graph


@pytest.mark.parametrize("text", ["no JSON", "[1]", '{"a": 1}', '{"intra_op_num_threads": "all"}'])
def test_what_are_no_options_is_refused(text: str) -> None:
    """Nor is any that a stranger might think of: none but three are read."""
    with pytest.raises(ModelFormatError, match=KEY):
        SessionOptions.of(with_metadata(dense_model(), {KEY: text}))


def opened(path: Path, setting: str, threads: int) -> ort.SessionOptions:
    model = open_model(path, setting, threads)
    assert isinstance(model, OpenSession)
    return model.session.get_session_options()


def test_a_model_runs_with_its_options_as_deployed_alone(tmp_path: Path) -> None:
    path = saved(SessionOptions(intra_op_num_threads=1), tmp_path)
    assert opened(path, "deployed", 2).intra_op_num_threads == 1
    assert opened(path, "as_written", 2).intra_op_num_threads == 2
    path = saved(SessionOptions(graph_optimization_level="ORT_DISABLE_ALL"), tmp_path)
    assert opened(path, "deployed", 2).graph_optimization_level == ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    assert opened(path, "deployed", 2).intra_op_num_threads == 2


def test_its_users_have_the_kernels_that_were_timed(tmp_path: Path) -> None:
    """Without the fusion; what opens a model in a test of speed switches it off by an argument, users by an option."""
    path, inputs = saved(UNFUSED, tmp_path), draw_inputs(dense_model(), np.random.default_rng(0))
    options = rlflow.session_options(path)
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    session.run(None, inputs)
    events = json.loads(Path(session.end_profiling()).read_text())
    kernels = Counter(each["args"]["op_name"] for each in events if each["name"].endswith("_kernel_time"))
    assert kernels == operators(path, inputs, ["MatMulAddFusion"]) != operators(path, inputs)


@pytest.mark.parametrize(
    "options",
    [
        SessionOptions(intra_op_num_threads=1),
        UNFUSED,
        SessionOptions(graph_optimization_level="ORT_DISABLE_ALL"),
        replace(UNFUSED, intra_op_num_threads=2),
    ],
    ids=str,
)
def test_the_lines_of_python_open_a_session(options: SessionOptions, tmp_path: Path) -> None:
    lines = list(options.lines(str(saved(options, tmp_path))))
    assert len(lines) == 2 + len(options.to_json())
    names = {"onnxruntime": ort}
    exec("\n".join(lines), names)
    inputs = draw_inputs(dense_model(), np.random.default_rng(0))
    (result,) = names["session"].run(None, inputs)
    assert result.shape == (4, 8)
    found, known = names["options"], options.for_onnxruntime()
    for name in ("intra_op_num_threads", "graph_optimization_level"):
        assert getattr(found, name) == getattr(known, name)


def test_the_file_beside_a_model_is_of_the_last_that_was_written(tmp_path: Path) -> None:
    beside = tmp_path / "model.onnx.options.json"
    write_beside(tmp_path / "model.onnx", UNFUSED)
    assert json.loads(beside.read_text()) == {"disabled_optimizers": ["MatMulAddFusion"]}
    write_beside(tmp_path / "model.onnx", DEFAULTS)
    assert not beside.exists()
    write_beside(tmp_path / "model.onnx", DEFAULTS)


def test_a_model_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="no model file"):
        rlflow.session_options("absent.onnx")
