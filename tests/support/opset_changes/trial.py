"""A drawn node run in ONNX Runtime under two opsets, word for word the same: does it compute the same?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from onnx.defs import OpSchema
from support.kernels import close
from support.opset_changes.attributes import draw_attributes, draw_shape
from support.opset_changes.drawing import MOODS, Draw, Value, code_of, fed_as
from support.opset_changes.inputs import draw_inputs

from rlflow.equivalence.tolerance import tolerance_of
from rlflow.errors import RLFlowError
from rlflow.ir.tensor_type import TensorType
from rlflow.runtime.session import open_session, run

_UNREADABLE = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError)
_ALL_INPUTS_ARE_FED = 0.6


@dataclass(frozen=True)
class Trial:
    """A node with its inputs, one set of values for each mood; an input of None is left out."""

    node: NodeProto
    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]
    output_dtypes: Mapping[str, str]
    constant: bool

    @property
    def types(self) -> list[TensorType | None]:
        """Types of the inputs, None for one that is left out or no tensor."""
        return [
            TensorType(dtype, value.shape) if isinstance(value, np.ndarray) else None
            for dtype, value in zip(self.dtypes, self.values[0], strict=True)
        ]

    def models(self, opset: int) -> list[tuple[ModelProto, dict[str, Value]]]:
        """The node as a model of this opset, with what it is fed, in each mood."""
        return [self._model(opset, values) for values in self.values]

    def _model(self, opset: int, values: tuple[Value, ...]) -> tuple[ModelProto, dict[str, Value]]:
        inputs, feeds, weights, before, after = [], {}, [], [], []
        for place, (name, dtype, value) in enumerate(zip(self.names, self.dtypes, values, strict=True)):
            if value is None:
                continue
            outer = name if isinstance(value, list) or fed_as(dtype) == dtype or dtype == "string" else f"{name}_wide"
            if outer != name:
                before.append(helper.make_node("Cast", [outer], [name], to=code_of(dtype)))
            if self.constant and place and isinstance(value, np.ndarray):
                weights.append(onnx.numpy_helper.from_array(value, outer))
            else:
                inputs.append(_declared(outer, dtype, value))
                feeds[outer] = value
        outputs = []
        for name in filter(None, self.node.output):
            dtype = self.output_dtypes.get(name, "float32")
            wide = name if dtype.startswith("seq ") or fed_as(dtype) == dtype or dtype == "string" else f"{name}_wide"
            if wide != name:
                after.append(helper.make_node("Cast", [name], [wide], to=TensorProto.FLOAT))
            outputs.append(ValueInfoProto(name=wide))
        graph = helper.make_graph([*before, self.node, *after], "trial", inputs, outputs, weights)
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)]), feeds


def drawn(schema: OpSchema, seed: int) -> Trial | None:
    """A node of the operator; None where what was drawn does not fit together."""
    try:
        draws = [Draw(schema, seed, mood) for mood in MOODS]
        for d in draws:
            draw_shape(d)
            draw_attributes(d)
        values = [draw_inputs(d) for d in draws]
    except _UNREADABLE:
        return None
    draw, names = draws[0], [f"i{place}" for place in range(len(values[0]))]
    written = [name if value is not None else "" for name, value in zip(names, values[0], strict=True)]
    while written and not written[-1]:
        written.pop()
    node = helper.make_node(schema.name, written, draw.outputs)
    node.attribute.extend(_attribute(schema, name, value) for name, value in sorted(draw.attributes.items()))
    return Trial(
        node,
        tuple(names[: len(written)]),
        tuple(draw.type_of(place) for place in range(len(written))),
        tuple(tuple(each[: len(written)]) for each in values),
        _output_types(draw),
        constant=draw.chance(1 - _ALL_INPUTS_ARE_FED),
    )


def is_same(trial: Trial, before: int, after: int) -> bool | None:
    """Whether all outputs agree in type, shape and values, up to rounding.

    None where ONNX Runtime does not run the node in the older opset, or draws its outputs anew each time.
    """
    verdict = None
    for (old, feeds), (new, _) in zip(trial.models(before), trial.models(after), strict=True):
        expected = _outputs(old, feeds)
        if expected is None or not _agree(expected, _outputs(old, feeds), 0.0):
            continue
        if not _agree(expected, _outputs(new, feeds), tolerance_of(old)):
            return False
        verdict = True
    return verdict


def _outputs(model: ModelProto, feeds: dict[str, Value]) -> dict[str, Any] | None:
    try:
        return run(open_session(model, "as_written"), feeds)
    except RLFlowError:
        return None


def _agree(expected: dict[str, Any], actual: dict[str, Any] | None, tolerance: float) -> bool:
    return actual is not None and all(close(expected[name], actual[name], tolerance) for name in expected)


def _attribute(schema: OpSchema, name: str, value: Any) -> AttributeProto:
    if value == [] and name in schema.attributes:
        return AttributeProto(name=name, type=schema.attributes[name].type.value)  # type: ignore[arg-type]
    return helper.make_attribute(name, value)


def _declared(name: str, dtype: str, value: Value) -> ValueInfoProto:
    if isinstance(value, list):
        return helper.make_tensor_sequence_value_info(name, code_of(dtype.removeprefix("seq ")), None)
    return helper.make_tensor_value_info(name, code_of(fed_as(dtype) if dtype != "string" else dtype), value.shape)


def _output_types(draw: Draw) -> dict[str, str]:
    """The element type of each output whose type is that of an input, or named by an attribute."""
    formal, types = draw.schema.outputs, {}
    for place, name in enumerate(draw.outputs):
        text = formal[min(place, len(formal) - 1)].type_str
        types[name] = draw.types.get(text, text.removeprefix("tensor(").removesuffix(")"))
    return types
