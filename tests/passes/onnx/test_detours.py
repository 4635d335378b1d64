"""Detours are many, of every kind, and change nothing that a model computes."""

from __future__ import annotations

from collections import Counter

from onnx import ModelProto, parser

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.passes.onnx.detours import with_detours

SETTINGS = {"layers": 1, "hidden": 16, "heads": 2, "intermediate": 24, "vocabulary": 20, "positions": 16, "sequence": 8}
OF_DETOURS = {"Identity", "Dropout", "Cast", "Pad", "Expand", "Shape", "Slice", "Squeeze", "Concat"}


def _bert(opset: int = 17) -> ModelProto:
    return zoo.build("bert", layer_norm="decomposed", **SETTINGS, opset=opset)


def test_the_model_computes_what_it_computed() -> None:
    """Detours in front of every other node; the drawn inputs tell the outputs of a wrong one."""
    model = _bert()

    report = compare(model, with_detours(_bert()), draws=2)

    assert report.equivalent
    assert report.non_vacuous_draws == 2


def test_there_are_many_of_many_kinds() -> None:
    before = Counter(node.op_type for node in _bert().graph.node)
    after = Counter(node.op_type for seed in range(4) for node in with_detours(_bert(), seed).graph.node)

    assert {kind for kind in OF_DETOURS if after[kind] > 4 * before[kind]} == OF_DETOURS


def test_they_follow_from_model_and_seed() -> None:
    first, again, other = (with_detours(_bert(), seed).SerializeToString(deterministic=True) for seed in (0, 0, 1))

    assert first == again
    assert first != other


def test_the_interface_stays() -> None:
    before, after = _bert(), with_detours(_bert())

    assert [v.name for v in before.graph.input] == [v.name for v in after.graph.input]
    assert [v.name for v in before.graph.output] == [v.name for v in after.graph.output]


def test_an_old_opset_has_none() -> None:
    """The operators had other attributes then."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 12]> g (float[2] x) => (float[2] y) { a = Relu(x) b = Abs(a) y = Neg(b) }'
    )

    assert len(with_detours(model).graph.node) == 3
