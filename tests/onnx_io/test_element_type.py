"""Element types and types of values, from ONNX and back."""

import onnx
import pytest
from onnx import TensorProto, helper

from rlflow.errors import ModelFormatError
from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io.element_type import dtype_name, element_type, from_type_proto, to_value_info

KNOWN = [code for name, code in TensorProto.DataType.items() if name != "UNDEFINED"]


@pytest.mark.parametrize("code", KNOWN, ids=TensorProto.DataType.Name)
def test_every_element_type_has_a_name_of_its_own(code: int) -> None:
    assert element_type(dtype_name(code)) == code


def test_names_are_those_of_numpy_where_numpy_has_one() -> None:
    named = {helper.tensor_dtype_to_np_dtype(code).name: dtype_name(code) for code in (1, 2, 3, 6, 7, 10, 11, 12)}
    assert all(ours == theirs for theirs, ours in named.items())
    assert dtype_name(TensorProto.BFLOAT16) == "bfloat16"


@pytest.mark.parametrize("code", [-1, 99])
def test_a_number_that_is_no_element_type_is_refused(code: int) -> None:
    with pytest.raises(ModelFormatError, match=f"no element type {code}"):
        dtype_name(code)


@pytest.mark.parametrize("shape", [None, (), (3, "batch", None), (0,)])
def test_a_type_survives_its_proto(shape: tuple[int | str | None, ...] | None) -> None:
    kind = TensorType("float16", shape)
    assert from_type_proto(to_value_info("x", kind).type) == kind


def test_a_size_below_zero_is_not_known() -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [-1, 2])
    assert from_type_proto(value.type) == TensorType("float32", (None, 2))


@pytest.mark.parametrize(
    "proto",
    [
        onnx.TypeProto(),
        onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor()),
        helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [1])),
    ],
    ids=["nothing", "no element type", "sequence"],
)
def test_what_is_no_tensor_has_no_type(proto: onnx.TypeProto) -> None:
    assert from_type_proto(proto) is None
