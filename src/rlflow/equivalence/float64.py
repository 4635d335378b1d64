"""A model in float64: the reference where float32 is in doubt."""

from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from rlflow.errors import RLFlowError
from rlflow.onnx_io import from_onnx
from rlflow.ops.reference import evaluate
from rlflow.runtime.session import open_session, run

_NARROW = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16})
_TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_datatype"})

Outputs = dict[str, Any]


def in_double(model: ModelProto) -> ModelProto:
    """A copy that computes in float64: what it declares, stores and casts to in a narrower float is double.

    Stored numbers keep their values, so that both models start from the same ones.
    """
    double = ModelProto()
    double.CopyFrom(model)
    _widen_graph(double.graph)
    for function in double.functions:
        _widen_nodes(function.node)
    return double


def nudged(double: ModelProto, spared: Container[bytes], epsilon: float, rng: np.random.Generator) -> ModelProto:
    """A copy with each stored float half an `epsilon` up or down, as if it had been rounded once more.

    Scalars are left alone, which are literals, and so are tensors with the raw data of one that is `spared`.
    """
    copy = ModelProto()
    copy.CopyFrom(double)
    for tensor in copy.graph.initializer:
        if tensor.data_type == TensorProto.DOUBLE and tensor.dims and tensor.raw_data not in spared:
            values = numpy_helper.to_array(tensor)
            signs = rng.choice((-1.0, 1.0), values.shape)
            tensor.CopyFrom(numpy_helper.from_array(values * (1 + signs * epsilon / 2), tensor.name))
    return copy


def run_in_double(double: ModelProto, inputs: list[dict[str, np.ndarray]]) -> list[Outputs]:
    """The outputs of a model from `in_double` on each of the drawn inputs, whose floats may be narrower.

    On ONNX Runtime where that has float64 kernels for all of it, otherwise by this library's interpreter, otherwise by
    ONNX's (whose Erf is as good as float32 only: it may leave two models different that are equal, never the other way
    round). Raises RLFlowError if none of them can.
    """
    wide = [{name: _wide(array) for name, array in drawn.items()} for drawn in inputs]
    reasons = []
    for evaluator in (_on_onnx_runtime, _interpreted, _interpreted_by_onnx):
        try:
            compute = evaluator(double)
            return [compute(drawn) for drawn in wide]
        except Exception as error:  # an interpreter stops in its own way on what it does not know
            reasons.append(str(error).partition("\n")[0])
    raise RLFlowError(f"no float64 reference: {'; '.join(reasons)}")


def _on_onnx_runtime(double: ModelProto) -> Callable[[Mapping[str, np.ndarray]], Outputs]:
    session = open_session(double, "as_written")
    return lambda inputs: run(session, inputs)


def _interpreted(double: ModelProto) -> Callable[[Mapping[str, np.ndarray]], Outputs]:
    graph = from_onnx(double)
    return lambda inputs: evaluate(graph, inputs)


def _interpreted_by_onnx(double: ModelProto) -> Callable[[Mapping[str, np.ndarray]], Outputs]:
    evaluator = ReferenceEvaluator(double)

    def compute(inputs: Mapping[str, np.ndarray]) -> Outputs:
        with np.errstate(all="ignore"):
            return dict(zip(evaluator.output_names, evaluator.run(None, dict(inputs)), strict=True))

    return compute


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _widen_graph(graph: GraphProto) -> None:
    for value in (*graph.input, *graph.output):
        _widen_type(value.type)
    del graph.value_info[:]
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for sparse in graph.sparse_initializer:
        _widen_tensor(sparse.values)
    _widen_nodes(graph.node)


def _widen_type(kind: TypeProto) -> None:
    match kind.WhichOneof("value"):
        case "tensor_type" if kind.tensor_type.elem_type in _NARROW:
            kind.tensor_type.elem_type = TensorProto.DOUBLE
        case "sequence_type":
            _widen_type(kind.sequence_type.elem_type)
        case "optional_type":
            _widen_type(kind.optional_type.elem_type)


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type in _NARROW:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def _widen_nodes(nodes: Any) -> None:
    for node in nodes:
        _make_types_explicit(node)
        for attribute in node.attribute:
            _widen_attribute(attribute)


def _make_types_explicit(node: NodeProto) -> None:
    """Types that a node leaves to a default of float32."""
    present = {attribute.name for attribute in node.attribute}
    zero = numpy_helper.from_array(np.zeros(1))
    if node.op_type == "ConstantOfShape" and "value" not in present:
        node.attribute.append(onnx.helper.make_attribute("value", zero))
    elif node.op_type == "Constant" and (numbers := next((a for a in node.attribute if a.name in _PLAIN), None)):
        values = np.array(numbers.floats if numbers.name == "value_floats" else numbers.f, np.float64)
        node.attribute[0].CopyFrom(onnx.helper.make_attribute("value", numpy_helper.from_array(values)))


_PLAIN = ("value_float", "value_floats")


def _widen_attribute(attribute: AttributeProto) -> None:
    if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _NARROW:
        attribute.i = TensorProto.DOUBLE
    for tensor in (attribute.t, *attribute.tensors):
        if tensor.data_type:
            _widen_tensor(tensor)
    for body in (attribute.g, *attribute.graphs):
        if body.node or body.output:
            _widen_graph(body)
