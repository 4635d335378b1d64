"""The interface of a model to its caller: names, order, types and shapes of its inputs and outputs."""

from collections.abc import Mapping

from onnx import ModelProto, TensorProto, TypeProto, ValueInfoProto

from rlflow.runtime.inputs import required_inputs


def interface_problem(original: ModelProto, optimised: ModelProto, dimensions: Mapping[str, int] | None = None) -> str:
    """Return the first difference in names, order, types or shapes of the inputs fed and of the outputs, or "".

    Where the original has a symbol of `dimensions`, the other may have this very size: at that size they are the same.
    Before IR version 4 weights are listed among the inputs, too; nobody feeds them, and they are not compared.
    """
    sides = {
        "input": (required_inputs(original), required_inputs(optimised)),
        "output": (original.graph.output, optimised.graph.output),
    }
    for role, (left, right) in sides.items():
        left_names, right_names = [value.name for value in left], [value.name for value in right]
        if left_names != right_names:
            return f"{role}s are {right_names}, should be {left_names}"
        for expected, actual in zip(left, right, strict=True):
            if not _same_type(expected.type, actual.type, dimensions or {}):
                declared, wanted = _type_text(actual), _type_text(expected)
                return f"{role} {expected.name!r} is declared {declared}, should be {wanted}"
    return ""


def _same_type(expected: TypeProto, actual: TypeProto, dimensions: Mapping[str, int]) -> bool:
    """Return True if the types are equal, except that a dynamic dimension of the original may be known."""
    if expected.WhichOneof("value") != "tensor_type" or actual.WhichOneof("value") != "tensor_type":
        return expected == actual
    left, right = expected.tensor_type, actual.tensor_type
    if left.elem_type != right.elem_type:
        return False
    if not left.HasField("shape"):
        return True
    return len(left.shape.dim) == len(right.shape.dim) and all(
        ours.WhichOneof("value") is None
        or (ours.dim_value, ours.dim_param) == (theirs.dim_value, theirs.dim_param)
        or (theirs.HasField("dim_value") and dimensions.get(ours.dim_param) == theirs.dim_value)
        for ours, theirs in zip(left.shape.dim, right.shape.dim, strict=True)
    )


def _type_text(value: ValueInfoProto) -> str:
    tensor = value.type.tensor_type
    dimensions = [dimension.dim_param or dimension.dim_value or "?" for dimension in tensor.shape.dim]
    return f"{TensorProto.DataType.Name(tensor.elem_type)}{dimensions}"
