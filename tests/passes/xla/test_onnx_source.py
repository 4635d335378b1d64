"""ONNX models as programs of XLA."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from rlflow import zoo
from rlflow.equivalence.difference import differences
from rlflow.equivalence.tolerance import tolerance_of
from rlflow.errors import InputError
from rlflow.passes.xla.compiler import compiled, on_device
from rlflow.passes.xla.compiler import run as run_program
from rlflow.passes.xla.onnx_source import XlaOnnxBackend, as_program, model_of
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import open_session, run

pytest.importorskip("torch_mlir")

_BERT = "zoo/bert?layers=1&hidden=16&heads=2&intermediate=24&vocabulary=20&positions=16&sequence=8"


@pytest.fixture(scope="module")
def backend() -> XlaOnnxBackend:
    return XlaOnnxBackend()


def _problems(model: ModelProto, program: bytes) -> list[str]:
    inputs = draw_inputs(model, np.random.default_rng(0), None)
    expected = run(open_session(model, "as_written"), inputs)
    outputs = run_program(compiled(program), on_device(list(inputs.values())))
    actual = dict(zip(expected, outputs, strict=True))
    return [each.problem for each in differences(expected, actual, tolerance_of(model)) if each.problem]


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        "zoo/nasrnn?steps=1&hidden=12",
        "zoo/conv",
        _BERT,
    ],
)
def test_programs_compute_what_onnx_runtime_computes(backend: XlaOnnxBackend, source: str) -> None:
    """Before any pass and after the simplifiers, to within rounding."""
    model, program = model_of(source), backend.load(source)
    assert not _problems(model, program.payload)
    simpler = backend.apply(program.payload, "simplifiers")
    assert simpler.facts.key != program.facts.key
    assert not _problems(model, simpler.payload)


@pytest.mark.study
def test_all_sources_compute_what_onnx_runtime_computes(backend: XlaOnnxBackend) -> None:
    for source in backend.sources():
        assert not _problems(model_of(source.name), backend.load(source.name).payload), source.name


def test_sources_are_of_many_families() -> None:
    sources = XlaOnnxBackend().sources()
    assert len({source.name for source in sources}) == len(sources) >= 25
    assert {"bert", "gpt2", "resnet18", "vit"} <= {source.family for source in sources}


def test_a_file_and_its_content_are_the_model(backend: XlaOnnxBackend, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(zoo.build("mlp"), path)
    assert backend.load(str(path)) == backend.load(path.read_bytes()) == backend.load("zoo/mlp")


def test_the_model_is_left_as_it_is() -> None:
    model = zoo.build("tiny_transpose")
    before = model.SerializeToString()
    assert as_program(model) == as_program(model)
    assert model.SerializeToString() == before


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("zoo/loop", "torch-mlir cannot write the model 'loop' as StableHLO: .*torch.operator"),
        ("zoo/nothing", "there is no model of the zoo 'nothing'"),
        ("zoo/bert?layers=0", "bert cannot have layers=0"),
        (f"{_BERT}&batch=N", "input 'input_ids' has a dimension without a size"),
        ("nowhere.onnx", "cannot read nowhere.onnx as an ONNX model"),
        (b"garbage", "cannot read the content given as an ONNX model"),
    ],
)
def test_what_cannot_be_a_program_is_refused(backend: XlaOnnxBackend, source: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        backend.load(source)
