"""The section `models`: every architecture of the zoo at a small size, as it is built, read and exported again."""

from collections.abc import Mapping
from functools import partial

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
        "exported": digest(to_onnx(graph).SerializeToString(deterministic=True)),
        "graph": structural_hash(graph),
        "nodes": len(graph.nodes),
    }
