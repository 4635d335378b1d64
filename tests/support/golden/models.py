"""The section `models`: every architecture of the zoo at a small size, as it is built, read and exported again."""

from collections.abc import Mapping
from functools import partial

from onnx import ModelProto
from onnx.numpy_helper import to_array

from rlflow import zoo
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx, to_onnx
from support.golden.digests import Value, digest
from support.golden.entries import Compute
from support.zoo_names import SMALL, ZOO


def entries() -> Mapping[str, Compute]:
    """Return the models."""
    return {name: partial(_model, name) for name in ZOO}


def _model(name: str) -> Value:
    model = zoo.build(name, **SMALL[name])
    graph = from_onnx(model)
    return {
        "built": digest(model.SerializeToString(deterministic=True)),
        "exported": digest(_without_folded(to_onnx(graph), model).SerializeToString(deterministic=True)),
        "graph": structural_hash(graph),
        "nodes": len(graph.nodes),
    }


def _without_folded(exported: ModelProto, built: ModelProto) -> ModelProto:
    """Empty the weights that were folded on the way, whose last digits are the processor's."""
    kept = {to_array(tensor).tobytes() for tensor in built.graph.initializer}
    for tensor in exported.graph.initializer:
        if to_array(tensor).tobytes() not in kept:
            tensor.ClearField("raw_data")
    return exported
