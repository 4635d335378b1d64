"""Weights of every element type and storage come through unchanged; what they are identified by."""

import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.element_types import ELEMENT_TYPES, whole_numbers
from support.onnx_models import Build, Survives, floats

from rlflow.errors import RLFlowError
from rlflow.ir import structural_hash
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.onnx_io.payload import InitializerPayload, SparsePayload
from rlflow.runtime.session import open_session, run


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_every_element_type(model: Build, survives: Survives, dtype: str) -> None:
    tensor = numpy_helper.from_array(whole_numbers(dtype))
    output = helper.make_tensor_value_info("y", tensor.data_type, [2, 3])
    before = model([helper.make_node("Identity", ["w"], ["y"])], [], [output], weights={"w": tensor}, opset=21)
    after = survives(before, runs=False)
    kept = numpy_helper.to_array(after.graph.initializer[0])
    assert kept.dtype == whole_numbers(dtype).dtype
    assert kept.tobytes() == whole_numbers(dtype).tobytes()


def test_strings(model: Build, survives: Survives) -> None:
    tensor = helper.make_tensor("", TensorProto.STRING, [2], [b"one", "zwölf".encode()])
    output = helper.make_tensor_value_info("y", TensorProto.STRING, [2])
    nodes = [helper.make_node("Identity", ["w"], ["i"]), helper.make_node("Concat", ["i"], ["y"], axis=0)]
    survives(model(nodes, [], [output], weights={"w": tensor}), {})


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_scalars_and_empty_tensors(model: Build, survives: Survives, shape: tuple[int, ...]) -> None:
    weights = {"w": np.zeros(shape, np.float32)}
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    survives(model(nodes, [floats("x", *shape)], [floats("y", *shape)], weights=weights), {"x": np.ones(shape, "f4")})


@pytest.mark.parametrize("rank", [1, 2])
def test_sparse_weights(model: Build, survives: Survives, rank: int) -> None:
    indices = [[1, 0], [2, 1]] if rank == 2 else [2, 5]
    coordinates = numpy_helper.from_array(np.array(indices, np.int64))
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [5.0, 7.0])
    sparse = helper.make_sparse_tensor(values, coordinates, [3, 2])
    assert SparsePayload(sparse).array().tolist() == [[0, 0], [5, 0], [0, 7]]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    before = model(nodes, [floats("x", 1, 3)], [floats("y", 1, 2)], sparse_initializer=[sparse])
    after = survives(before, {"x": np.ones((1, 3), np.float32)})
    assert len(after.graph.sparse_initializer) == 1


def test_sparse_weights_are_folded(model: Build, survives: Survives) -> None:
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [5.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("", TensorProto.INT64, [1], [1]), [3])
    nodes = [helper.make_node("Neg", ["w"], ["n"]), helper.make_node("Add", ["x", "n"], ["y"])]
    after = survives(model(nodes, [floats("x", 3)], [floats("y", 3)], sparse_initializer=[sparse]))
    assert [n.op_type for n in after.graph.node] == ["Add"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "int4", "uint8", "bool"])
def test_a_digest_does_not_depend_on_storage(dtype: str) -> None:
    array = whole_numbers(dtype)
    raw = numpy_helper.from_array(array, "raw")
    typed = helper.make_tensor("typed", raw.data_type, array.shape, array.reshape(-1).tolist())
    assert raw.HasField("raw_data") != typed.HasField("raw_data")
    assert InitializerPayload(raw).digest == InitializerPayload(typed).digest
    other = numpy_helper.from_array(array.reshape(-1)[::-1].reshape(2, 3))
    assert InitializerPayload(other).digest != InitializerPayload(raw).digest
    assert InitializerPayload(numpy_helper.from_array(array.reshape(3, 2))).digest != InitializerPayload(raw).digest


def _filled(build: Build, shape: tuple[int, ...], value: onnx.TensorProto | None, **fields: object) -> onnx.ModelProto:
    """x + ConstantOfShape(shape)."""
    node = helper.make_node("ConstantOfShape", ["shape"], ["k"], **({} if value is None else {"value": value}))
    code = value.data_type if value is not None else TensorProto.FLOAT
    values = [helper.make_tensor_value_info(name, code, shape) for name in "xy"]
    nodes = [node, helper.make_node("Add", ["x", "k"], ["y"])]
    return build(nodes, values[:1], values[1:], weights={"shape": np.array(shape, np.int64)}, **fields)


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3), (40, 40)])
@pytest.mark.parametrize("dtype", [None, "float32", "float64", "float16", "int64", "int32"])
def test_a_tensor_of_one_number_is_a_weight(
    model: Build, survives: Survives, shape: tuple[int, ...], dtype: str | None
) -> None:
    """A large one is made when the model runs, as it was before, and not stored."""
    value = None if dtype is None else numpy_helper.from_array(np.array([3], dtype))
    before = _filled(model, shape, value)
    graph = from_onnx(before)
    (weight,) = (n for n in graph.nodes.values() if n.names == ("k",))
    assert (weight.op, weight.constant) == ("Weight", True)
    after = survives(before)
    assert [n.op_type for n in after.graph.node] == ["ConstantOfShape"] * (shape == (40, 40)) + ["Add"]


def test_a_tensor_of_one_number_is_told_from_others(model: Build) -> None:
    three, four = (numpy_helper.from_array(np.array([n], np.float32)) for n in (3, 4))
    typed = helper.make_tensor("", TensorProto.FLOAT, [1], [3.0])
    cases = [((2, 3), three), ((2, 3), four), ((3, 2), three), ((6,), three), ((2, 3), None)]
    hashes = [structural_hash(from_onnx(_filled(model, *case))) for case in cases]
    assert len(set(hashes)) == len(cases)
    assert structural_hash(from_onnx(_filled(model, (2, 3), typed))) == hashes[0]


def test_a_tensor_of_one_number_takes_no_memory_until_it_is_part_of_an_expression(
    model: Build, survives: Survives
) -> None:
    """A gigabyte of it comes through; of an expression that would fill the memory nothing is evaluated."""
    large = (2**14, 2**14)
    tracemalloc.start()
    exported = to_onnx(from_onnx(_filled(model, large, None)))
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()
    assert exported.ByteSize() < 4096
    nodes = [
        helper.make_node("ConstantOfShape", ["n"], ["k"]),
        helper.make_node("Neg", ["k"], ["m"]),
        helper.make_node("Add", ["x", "m"], ["y"]),
    ]
    for elements, folded in ((10**12, False), (3, True)):
        weights = {"n": np.array([elements], np.int64)}
        before = model(nodes, [floats("x", 1)], [floats("y", elements)], weights=weights)
        after = survives(before, runs=folded)
        assert [n.op_type for n in after.graph.node] == (["Add"] if folded else [n.op_type for n in nodes])


def test_weights_of_old_files_are_listed_among_the_inputs_and_are_constants(model: Build, survives: Survives) -> None:
    """Before version 4 of the format; ONNX Runtime lets nobody feed them, and an export lists them, too."""
    before = _filled(model, (40, 40), None, opset=9)
    before.graph.input.append(helper.make_tensor_value_info("shape", TensorProto.INT64, [2]))
    before.ir_version = 3
    session = open_session(before, "as_written")
    assert [i.name for i in session.get_inputs()] == ["x"]
    feeds = {"x": np.ones((40, 40), np.float32)}
    with pytest.raises(RLFlowError, match=r"[Ii]nvalid.*shape"):
        run(session, {**feeds, "shape": np.array([1, 1])})
    graph = from_onnx(before)
    assert len(graph.inputs) == 1
    after = to_onnx(graph)
    assert len(after.graph.input) == 2
    check_model(after)
    assert np.array_equal(run(open_session(after, "as_written"), feeds)["y"], feeds["x"])
