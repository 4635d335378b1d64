"""Both backends keep what `PassBackend` promises, over short random walks as over single passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from rlflow import zoo
from rlflow.errors import InputError
from rlflow.passes.backend import PassBackend, PassError, Program
from rlflow.passes.onnx.backend import OnnxBackend, OnnxContribBackend

BERT = "zoo/bert?layers=1&layer_norm=decomposed"
WITH_DETOURS = "detours/conv?blocks=3&channels=4"
BACKENDS: dict[str, Callable[[], PassBackend]] = {"onnx": OnnxBackend, "onnx-contrib": OnnxContribBackend}
WALKED = (BERT, WITH_DETOURS, "detours/mlp?layers=2&hidden=16", "detours/nasrnn?steps=1&hidden=8")


@pytest.fixture(scope="module", params=BACKENDS, ids=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> PassBackend:
    return BACKENDS[request.param]()


@pytest.fixture(scope="module")
def standard() -> OnnxBackend:
    return OnnxBackend()


def test_everything_in_the_catalogue_can_be_applied(backend: PassBackend) -> None:
    """On one program, on which no pass fails; a good part of them must change it, or nothing was tried."""
    catalogue, start = backend.catalogue(), backend.load(BERT.replace("zoo", "detours"))

    made = {name: backend.apply(start.payload, name) for name in (*catalogue.passes, *catalogue.pipelines)}

    assert sum(after.facts.key != start.facts.key for after in made.values()) > len(made) / 3
    assert all(made[name].facts.key != start.facts.key for name in catalogue.pipelines)
    assert {catalogue.default, *catalogue.chain} <= set(catalogue.pipelines)
    assert set(catalogue.simplifiers) <= set(catalogue.passes)
    assert len(set(catalogue.passes)) == len(catalogue.passes)


def test_the_default_pipelines_compute_the_same(backend: PassBackend) -> None:
    start = backend.load(BERT)

    for name in backend.catalogue().pipelines:
        assert backend.check(start.payload, backend.apply(start.payload, name).payload, seed=0) == ""


@pytest.mark.parametrize("source", WALKED)
def test_a_random_walk_ends_at_an_equal_program(backend: PassBackend, source: str) -> None:
    """Two dozen passes, of which one at least changes something; the operators are those that the backend allows."""
    start, steps = backend.load(source), 0
    program, chosen = start, Random(0).choices(backend.catalogue().passes, k=24)
    for name in chosen:
        after = _applied(backend, program, name)
        steps += after.facts.key != program.facts.key
        program = after

    assert steps >= 1
    assert backend.check(start.payload, program.payload, seed=1) == ""
    foreign = {name for name, _ in program.facts.counts if "." in name}
    assert not foreign if backend.catalogue().name == "onnx" else all(n.startswith("com.microsoft.") for n in foreign)


def test_a_wrong_program_does_not_pass_the_check(standard: OnnxBackend) -> None:
    """A weight that is off by a tenth."""
    start = standard.load("zoo/mlp")
    model = onnx.load_from_string(start.payload)
    weight = model.graph.initializer[0]
    weight.raw_data = (onnx.numpy_helper.to_array(weight) * np.float32(1.1)).tobytes()

    assert "not equivalent" in standard.check(start.payload, model.SerializeToString(), seed=0)


def test_the_same_pass_on_the_same_program_gives_the_same_bytes(backend: PassBackend) -> None:
    start = backend.load(WITH_DETOURS)

    for name in backend.catalogue().passes[::5]:
        assert backend.apply(start.payload, name) == backend.apply(start.payload, name)


def test_the_program_stays_as_it_is(backend: PassBackend) -> None:
    start = backend.load(BERT)
    before = bytes(start.payload)

    backend.apply(start.payload, "onnxslim")

    assert start.payload == before


def test_contrib_operators_come_from_the_contrib_backend_alone() -> None:
    contrib, standard = OnnxContribBackend(), OnnxBackend()
    program = contrib.apply(contrib.load(BERT).payload, "onnxruntime:GeluFusionL2")

    assert dict(program.facts.counts)["com.microsoft.Gelu"]
    with pytest.raises(PassError, match=r"onnxruntime:CastElimination .* operators of com\.microsoft"):
        standard.apply(program.payload, "onnxruntime:CastElimination")
    with pytest.raises(InputError, match="has no pass or pipeline 'ort_extended': choose one of"):
        standard.apply(program.payload, "ort_extended")


def test_a_model_of_contrib_operators_is_refused_where_they_are_not_admitted() -> None:
    contrib = OnnxContribBackend()
    payload = contrib.apply(contrib.load(BERT).payload, "onnxruntime:GeluFusionL2").payload

    assert contrib.load(payload).facts.operations > 0
    with pytest.raises(InputError, match=r"operators of com\.microsoft"):
        OnnxBackend().load(payload)


def test_a_library_that_fails_is_a_pass_error(standard: OnnxBackend) -> None:
    """An operator that there is not."""
    broken = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 17]> g (string[2] x) => (string[2] y) { y = Identity(x) }'
    )
    broken.graph.node[0].op_type = "NoSuchOperator"

    with pytest.raises(PassError, match=r"onnxruntime:ConstantFolding cannot be applied here: .*NoSuchOperator"):
        standard.apply(broken.SerializeToString(), "onnxruntime:ConstantFolding")


def test_files_and_contents_load_as_addresses_do(standard: OnnxBackend, tmp_path: Path) -> None:
    onnx.save(zoo.build("mlp"), tmp_path / "m.onnx")
    by_address = standard.load("zoo/mlp")

    assert standard.load(str(tmp_path / "m.onnx")).facts == by_address.facts
    assert standard.load((tmp_path / "m.onnx").read_bytes()) == by_address


def test_weights_in_other_files_are_read_from_a_path_alone(standard: OnnxBackend, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(zoo.build("mlp"), path, save_as_external_data=True, location="w", size_threshold=0)

    assert standard.load(str(path)).facts == standard.load("zoo/mlp").facts
    with pytest.raises(InputError, match="weights in other files"):
        standard.load(path.read_bytes())
    (tmp_path / "w").unlink()
    with pytest.raises(InputError, match=r"there is no file .w., where its data should be"):
        standard.load(str(path))


@pytest.mark.parametrize("model", [ModelProto(), helper.make_model(helper.make_graph([], "g", [], []))])
def test_a_model_without_computation_is_refused(standard: OnnxBackend, model: ModelProto) -> None:
    with pytest.raises(InputError, match="not an ONNX model"):
        standard.load(b"\x08\x0a" + model.SerializeToString())


def test_an_invalid_model_is_refused(standard: OnnxBackend) -> None:
    """A node that reads what nobody computes."""
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [], [value]))

    with pytest.raises(InputError, match="cannot be brought into normal form"):
        standard.load(model.SerializeToString())


def test_a_graph_for_encoders_and_what_the_runtime_is_left_with(standard: OnnxBackend) -> None:
    program = standard.load("zoo/bert?layers=1&layer_norm=decomposed")

    assert len(standard.graph(program.payload).order) > 10
    assert 0 < standard.compiled_operations(program.payload) < program.facts.operations


def test_times_are_by_place(standard: OnnxBackend) -> None:
    """Equal programs may stand in several places."""
    program = standard.load("zoo/tiny_chain").payload

    times = standard.times_ms([program, program], rounds=2, runs=1, seed=0)

    assert {place: len(row) for place, row in times.items()} == {0: 2, 1: 2}
    assert min(min(row) for row in times.values()) > 0


def _applied(backend: PassBackend, program: Program, name: str) -> Program:
    try:
        return backend.apply(program.payload, name)
    except PassError:
        return program
