"""A drawn node run in ONNX Runtime under two opsets, word for word the same: does it compute the same?"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from onnx.defs import OpSchema

from rlflow.equivalence.tolerance import tolerance_of
from rlflow.errors import RLFlowError
from rlflow.ir.tensor_type import TensorType
from rlflow.runtime.session import Session, open_session, run
from support.kernels import close
from support.opset_changes.attributes import draw_attributes, draw_shape
from support.opset_changes.drawing import MOODS, Draw, Value, code_of, element_of, fed_as
from support.opset_changes.inputs import draw_inputs

_UNREADABLE = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError)
_ALL_INPUTS_ARE_FED = 0.6
_MORE_RUNS = 2


@dataclass(frozen=True)
class Trial:
    """A node with its inputs, one set of values for each mood; an input of None is left out.

    `constant` are all inputs but the first; a node that `may_draw` may give other outputs each time.
    """

    node: NodeProto
    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]
    output_dtypes: Mapping[str, str]
    constant: bool
    may_draw: bool

    @property
    def types(self) -> list[TensorType | None]:
        """Types of the inputs, None for one that is left out or no tensor."""
        return [
            None if value is None or " " in dtype else TensorType(dtype, value.shape)
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
            outer = name if _fed(dtype) == dtype else f"{name}_wide"
            if outer != name:
                before.append(helper.make_node("Cast", [outer], [name], to=code_of(dtype)))
            if self.constant and place and " " not in dtype:
                weights.append(onnx.numpy_helper.from_array(value, outer))
            else:
                inputs.append(_declared(outer, dtype, value))
                feeds[outer] = value
        outputs = []
        for name in filter(None, self.node.output):
            dtype = self.output_dtypes.get(name, "float32")
            wide = name if _fed(dtype) == dtype else f"{name}_wide"
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
        values = [[v if v is None or isinstance(v, list) else np.asarray(v) for v in draw_inputs(d)] for d in draws]
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
        may_draw="seed" in schema.attributes,
    )


def outputs_of(trial: Trial, opset: int) -> list[dict[str, Any] | None]:
    """The outputs in each mood, None where ONNX Runtime does not run the node; nothing if it draws them anew."""
    outputs = []
    for model, feeds in trial.models(opset):
        outputs.append(first := _outputs(trial, model, feeds))
        again = range(_MORE_RUNS if first is not None and trial.may_draw else 0)
        if not all(_agree(first or {}, _outputs(trial, model, feeds), 0.0) for _ in again):
            return []
    return outputs


def is_same(trial: Trial, before: int, after: int) -> bool | None:
    """Whether all outputs agree in type, shape and values, up to rounding; None where there are none to compare."""
    verdict = None
    for expected, (old, _), (new, feeds) in zip(
        outputs_of(trial, before), trial.models(before), trial.models(after), strict=False
    ):
        if expected is not None:
            if not _agree(expected, _outputs(trial, new, feeds), tolerance_of(old)):
                return False
            verdict = True
    return verdict


def _outputs(trial: Trial, model: ModelProto, feeds: dict[str, Value]) -> dict[str, Any] | None:
    opened = _session if trial.may_draw else _kept_session  # one that has run draws other numbers next
    session = opened(model.SerializeToString(deterministic=True))
    try:
        return None if session is None else run(session, feeds)
    except RLFlowError:
        return None


def _session(model: bytes) -> Session | None:
    try:
        return open_session(ModelProto.FromString(model), "as_written")
    except RLFlowError:
        return None


_kept_session = lru_cache(1)(_session)


def _agree(expected: dict[str, Any], actual: dict[str, Any] | None, tolerance: float) -> bool:
    return actual is not None and all(close(expected[name], actual[name], tolerance) for name in expected)


def _attribute(schema: OpSchema, name: str, value: Any) -> AttributeProto:
    if value == [] and name in schema.attributes:
        return AttributeProto(name=name, type=schema.attributes[name].type.value)  # type: ignore[arg-type]
    return helper.make_attribute(name, value)


def _declared(name: str, dtype: str, value: Value) -> ValueInfoProto:
    element = element_of(dtype)
    tensor = helper.make_tensor_type_proto(code_of(_fed(element)), getattr(value, "shape", None))
    kind = {"seq": helper.make_sequence_type_proto, "optional": helper.make_optional_type_proto}.get(dtype.split()[0])
    return helper.make_value_info(name, kind(tensor) if kind else tensor)


def _fed(dtype: str) -> str:
    """The type in which an input is fed and an output is read: the node's own unless numpy has none of that name."""
    return dtype if " " in dtype or dtype == "string" else fed_as(dtype)


def _output_types(draw: Draw) -> dict[str, str]:
    """The element type of each output whose type is that of an input, or named by an attribute."""
    formal, types = draw.schema.outputs, {}
    for place, name in enumerate(draw.outputs):
        text = formal[min(place, len(formal) - 1)].type_str
        types[name] = draw.types.get(text, text.removeprefix("tensor(").removesuffix(")"))
    return types
