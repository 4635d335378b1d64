"""Operators as each opset writes them, read back: the canonical form does not depend on the opset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, AttributeValue
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.onnx_form import PLAIN
from rlflow.ops.registry import OPERATORS

OPSETS = range(7, 24)
FILTERS = TensorType("float32", (6, 4, 3, 3))
IMAGE = TensorType("float32", (2, 4, 9, 9))
WINDOW: Attributes = {"auto_pad": "NOTSET", "strides": (1, 1), "pads": (1, 1, 1, 1), "kernel_shape": (3, 3)}

EXAMPLES: Mapping[str, Attributes] = {
    "AveragePool": WINDOW | {"ceil_mode": 0, "count_include_pad": 1},
    "Clip": {"min": -1.0, "max": 6.0},
    "Concat": {"axis": -3},
    "Conv": {"auto_pad": "NOTSET", "group": 1, "strides": (2, 2), "pads": (0, 1, 1, 0), "dilations": (1, 1)},
    "DequantizeLinear": {"scale": 0.5, "zero_point": -3},
    "Gather": {"axis": -2},
    "MaxPool": WINDOW | {"ceil_mode": 0, "dilations": (1, 1)},
    "Pad": {"mode": "constant", "pads": (0, 0, 1, 0, 0, 0, 1, 2), "constant_value": 0.5},
    "Pow": {"exponent": 1.5},
    "QuantizeLinear": {"scale": 0.5, "zero_point": 3, "to": "uint8"},
    "ReduceMean": {"axes": (-1, -3), "keepdims": 0},
    "ReduceSum": {"axes": (-4,), "keepdims": 1},
    "Reshape": {"shape": (8, 81)},
    "Slice": {"axes": (-1, -2), "starts": (1, 0), "ends": (5, -1), "steps": (1, 2)},
    "Softmax": {"axis": -1},
    "Split": {"axis": -3, "split": (1, 3)},
    "Squeeze": {"axes": (-4,)},
    "Transpose": {"perm": (0, 2, 1, 3)},
    "Unsqueeze": {"axes": (0, 5)},
}


@dataclass
class WrittenNode:
    """A node as `OnnxForm.write` writes it, to be read again."""

    opset: int
    attributes: dict[str, AttributeValue]
    types: dict[int, TensorType]
    constants: dict[int, np.ndarray] = field(default_factory=dict)
    results: int = 1

    def is_given(self, place: int) -> bool:
        return place in self.types or place in self.constants

    def type_of(self, place: int) -> TensorType | None:
        return self.types.get(place)

    def constant(self, place: int) -> np.ndarray | None:
        return self.constants.get(place)

    def dynamic_shape(self, place: int, shape: Sequence[Dimension]) -> tuple[int, ...] | None:
        return None

    def element_type(self, number: int) -> str:
        raise NotImplementedError


def _written(name: str, attributes: Attributes, opset: int) -> WrittenNode:
    image = IMAGE._replace(dtype="int8") if OPERATORS[name].traits.dequantises else IMAGE
    written, parameters = OPERATORS[name].onnx.write(attributes, opset, image)
    arrays = {p.operand: np.asarray(value, p.dtype_beside(image)) for p, value in parameters}
    types = {0: image, **({1: FILTERS} if name == "Conv" else {})}
    stored = {place: TensorType(array.dtype.name, array.shape) for place, array in arrays.items()}
    return WrittenNode(opset, written, stored | types, arrays)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_what_an_opset_writes_is_read_back(name: str) -> None:
    """In every opset that has the operator, or had an older one that does the same on the last axis (Softmax)."""
    operator = OPERATORS[name]
    first = 1 if operator.onnx.flattening_before else operator.since
    for opset in OPSETS[max(0, first - OPSETS[0]) :]:
        node = _written(name, EXAMPLES[name], opset)
        assert operator.onnx.read(node, operator.defaults) == EXAMPLES[name], opset


def test_every_form_that_completes_or_moves_something_is_among_the_examples() -> None:
    forms = {name for name, operator in OPERATORS.items() if operator.onnx != PLAIN and not operator.domain}
    assert forms - EXAMPLES.keys() == {
        "Attention",
        "BatchNormalization",
        "Cast",
        "LayerNormalization",
        "RMSNormalization",
    }


def test_opsets_write_differently() -> None:
    """Not vacuous: Split's sizes and its axis are written in two ways."""
    old, new = (_written("Split", EXAMPLES["Split"], opset) for opset in (12, 13))
    assert old.attributes == {"axis": 1, "split": (1, 3)}
    assert new.attributes == {"axis": -3}
    assert new.constants[1].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("name", "attributes", "completed"),
    [
        ("Transpose", {}, {"perm": (3, 2, 1, 0)}),
        ("ReduceSum", {}, {"axes": (-4, -3, -2, -1), "keepdims": 1}),
        ("Split", {"axis": 2}, {"axis": -2, "split": (5, 4)}),
        ("MaxPool", {"kernel_shape": (2, 2), "auto_pad": "SAME_UPPER"}, {"auto_pad": "NOTSET", "pads": (0, 0, 1, 1)}),
        ("Attention", {}, {"scale": float(1 / np.sqrt(np.float32(9)))}),
    ],
)
def test_what_a_model_leaves_out_is_written_out(name: str, attributes: Attributes, completed: Attributes) -> None:
    node = WrittenNode(17, dict(attributes), {0: IMAGE}, results=2)
    read = OPERATORS[name].onnx.read(node, OPERATORS[name].defaults)
    assert completed.items() <= read.items()


@pytest.mark.parametrize(
    ("name", "attributes", "reason"),
    [
        ("Squeeze", {}, "no axes"),
        ("ReduceSum", {"noop_with_empty_axes": 1}, "over no axes"),
        ("Split", {"axis": 1, "split": None}, "'split' is None"),
        ("Attention", {"is_causal": 1}, "'is_causal' is 1"),
        ("Concat", {"axis": 4}, "axes \\(4,\\) of a tensor of rank 4"),
        ("Reshape", {}, "no operand for 'shape'"),
    ],
)
def test_what_is_not_understood_is_refused(name: str, attributes: dict[str, AttributeValue], reason: str) -> None:
    with pytest.raises(TypeInferenceError, match=reason):
        OPERATORS[name].onnx.read(WrittenNode(17, attributes, {0: IMAGE}), OPERATORS[name].defaults)


def test_softmax_on_several_axes_is_refused() -> None:
    """Before opset 13, where the axis is not the last one, or is left to a default that was another one."""
    form, defaults = OPERATORS["Softmax"].onnx, OPERATORS["Softmax"].defaults
    for attributes in ({}, {"axis": 1}):
        with pytest.raises(TypeInferenceError, match="several axes at once"):
            form.read(WrittenNode(12, dict(attributes), {0: IMAGE}), defaults)
    assert form.read(WrittenNode(13, {}, {0: IMAGE}), defaults) == {"axis": -1}
