"""Models in float64: a reference for what float32 cannot decide.

    widened = in_float64(model)
    (outputs,) = run_in_float64(widened, [{"x": x}])

A widened model declares, stores and casts to float64 wherever the model has a narrower float, also inside subgraphs and
functions, and where a node relies on ONNX's default of float32 (`_make_types_explicit`).

Invariant: stored numbers keep their values, so that a model and its rewritten form still start from the same ones.
"""

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


def in_float64(model: ModelProto) -> ModelProto:
    """Copy a model so that it computes in float64 wherever it declares, stores or casts to a narrower float.

    Stored numbers keep their values, so that both models start from the same ones.
    """
    widened = ModelProto()
    widened.CopyFrom(model)
    _widen_graph(widened.graph)
    for function in widened.functions:
        _widen_nodes(function.node)
    return widened


def nudged(widened: ModelProto, spared: Container[bytes], epsilon: float, rng: np.random.Generator) -> ModelProto:
    """Copy a model with each stored float moved half an `epsilon` up or down, as if it were rounded once more.

    Scalars are left alone, since they are literals, and so are tensors whose raw data are in `spared`.
    """
    copy = ModelProto()
    copy.CopyFrom(widened)
    for tensor in copy.graph.initializer:
        if tensor.data_type == TensorProto.DOUBLE and tensor.dims and tensor.raw_data not in spared:
            values = numpy_helper.to_array(tensor)
            signs = rng.choice((-1.0, 1.0), values.shape)
            tensor.CopyFrom(numpy_helper.from_array(values * (1 + signs * epsilon / 2), tensor.name))
    return copy


def run_in_float64(widened: ModelProto, inputs: list[dict[str, np.ndarray]]) -> list[Outputs]:
    """Run a model from `in_float64` on each of the drawn inputs, whose floats may be narrower; return all outputs.

    ONNX Runtime runs it if it has float64 kernels for all of it, otherwise this library's interpreter, otherwise ONNX's
    (whose Erf is only as good as float32: equal models may come out different, never the other way round). Raises
    `RLFlowError` if none of them can.
    """
    wide = [{name: _wide(array) for name, array in drawn.items()} for drawn in inputs]
    reasons = []
    for evaluator in (_on_onnx_runtime, _interpreted, _interpreted_by_onnx):
        try:
            compute = evaluator(widened)
            return [compute(drawn) for drawn in wide]
        except Exception as error:  # an interpreter stops in its own way on what it does not know
            reasons.append(str(error).partition("\n")[0])
    raise RLFlowError(f"no float64 reference: {'; '.join(reasons)}")


def _on_onnx_runtime(widened: ModelProto) -> Callable[[Mapping[str, np.ndarray]], Outputs]:
    session = open_session(widened, "as_written")
    return lambda inputs: run(session, inputs)


def _interpreted(widened: ModelProto) -> Callable[[Mapping[str, np.ndarray]], Outputs]:
    graph = from_onnx(widened)
    return lambda inputs: evaluate(graph, inputs)


def _interpreted_by_onnx(widened: ModelProto) -> Callable[[Mapping[str, np.ndarray]], Outputs]:
    evaluator = ReferenceEvaluator(widened)

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


def _widen_type(proto: TypeProto) -> None:
    match proto.WhichOneof("value"):
        case "tensor_type" if proto.tensor_type.elem_type in _NARROW:
            proto.tensor_type.elem_type = TensorProto.DOUBLE
        case "sequence_type":
            _widen_type(proto.sequence_type.elem_type)
        case "optional_type":
            _widen_type(proto.optional_type.elem_type)


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type in _NARROW:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def _widen_nodes(nodes: Any) -> None:
    for node in nodes:
        _make_types_explicit(node)
        for attribute in node.attribute:
            _widen_attribute(attribute)


def _make_types_explicit(node: NodeProto) -> None:
    """Write out the values of a node whose type ONNX would take to be float32 by default."""
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
    for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
        if sparse.values.data_type:
            _widen_tensor(sparse.values)
    for body in (attribute.g, *attribute.graphs):
        if body.node or body.output:
            _widen_graph(body)
