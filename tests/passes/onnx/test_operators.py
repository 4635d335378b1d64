"""The lists of names are names of operators, and hold what the dataset has."""

from __future__ import annotations

from collections import Counter

import onnx

from rlflow.passes.onnx.backend import OnnxBackend
from rlflow.passes.onnx.operators import OPERATIONS, TRANSCENDENTAL

KNOWN = {schema.name for schema in onnx.defs.get_all_schemas()}
FEWEST_COUNTED = 0.9
SOURCES = (
    "zoo/gpt2?layers=1",
    "zoo/yolo_v5?width=1",
    "zoo/t5_decoder?layers=1",
    "zoo/loop?steps=2",
    "detours/vit?layers=1&layer_norm=decomposed",
)


def test_names_are_names() -> None:
    """A mistyped one would be counted never. One of ONNX Runtime's own bears no domain."""
    own = {name for name in OPERATIONS if "." not in name} - {"SimplifiedLayerNormalization"}

    assert own <= KNOWN
    assert TRANSCENDENTAL - KNOWN == {"BiasGelu", "FastGelu", "QuickGelu"}
    assert sorted(own) == [name for name in OPERATIONS if name in own]
    assert len(set(OPERATIONS)) == len(OPERATIONS)


def test_most_operations_are_counted_one_by_one() -> None:
    backend, counts = OnnxBackend(), Counter[str]()
    for source in SOURCES:
        counts.update(dict(backend.load(source).facts.counts))

    counted = sum(counts[name] for name in OPERATIONS)
    assert counted / counts.total() > FEWEST_COUNTED, {n: c for n, c in counts.items() if n not in OPERATIONS}


def test_functions_are_among_them() -> None:
    assert {"Exp", "Tanh", "Erf", "Sigmoid", "Softmax", "Gelu", "Log", "Sin"} <= TRANSCENDENTAL
    assert not {"Add", "Relu", "Div", "MatMul", "Reshape"} & TRANSCENDENTAL
