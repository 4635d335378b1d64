"""Applications of operators, drawn; and ONNX Runtime's opinion of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from rlflow.ir.node import Attributes
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import FloatDomain
from rlflow.ops.registry import OPERATORS
from rlflow.runtime.session import open_session, run

OPSET = 18


@dataclass(frozen=True)
class Application:
    """An operator with canonical attributes, and the same written in ONNX: operands that are parameters, attributes."""

    op: str
    operands: tuple[np.ndarray, ...]
    attributes: Attributes = field(default_factory=dict)
    parameters: tuple[np.ndarray | None, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict)
    results: int = 1

    @property
    def types(self) -> list[TensorType]:
        return [TensorType(x.dtype.name, x.shape) for x in self.operands]

    def evaluated(self) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            return [np.asarray(v) for v in OPERATORS[self.op].evaluate(FloatDomain(), self.attributes, self.operands)]

    def model(self) -> onnx.ModelProto:
        names = [f"x{i}" for i in range(len(self.operands))]
        weights = {f"p{i}": p for i, p in enumerate(self.parameters) if p is not None}
        given = [*names, *(f"p{i}" if p is not None else "" for i, p in enumerate(self.parameters))]
        outputs = [f"y{i}" for i in range(self.results)]
        operator, needed = OPERATORS[self.op], {"": OPSET}
        needed[operator.domain] = max(needed.get(operator.domain, 0), operator.since)
        proto = helper.make_node(operator.op_type, given, outputs, domain=operator.domain)
        for name, value in self.written.items():
            empty = onnx.AttributeProto(name=name, type=onnx.AttributeProto.INTS)
            proto.attribute.append(empty if value == () else helper.make_attribute(name, value))
        infos = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in zip(names, self.operands, strict=True)
        ]
        graph = helper.make_graph(
            [proto],
            "one",
            infos,
            [self._output(o) for o in outputs],
            initializer=[numpy_helper.from_array(w, n) for n, w in weights.items()],
        )
        opsets = [helper.make_opsetid(domain, version) for domain, version in needed.items()]
        bare = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        if operator.domain:
            return bare
        inferred = onnx.shape_inference.infer_shapes(bare, strict_mode=True, data_prop=True)
        onnx.checker.check_model(inferred)
        return inferred

    def _output(self, name: str) -> onnx.ValueInfoProto:
        """Of a type that ONNX is to tell, or of the first operand's where it knows nothing of the operator."""
        if not OPERATORS[self.op].domain:
            return onnx.ValueInfoProto(name=name)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(self.operands[0].dtype), None)

    def by_onnx_runtime(self) -> list[np.ndarray]:
        feeds = {f"x{i}": x for i, x in enumerate(self.operands)}
        return list(run(open_session(self.model(), "as_written"), feeds).values())


SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
PROPER = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def array(draw: st.DrawFn, shape: tuple[int, ...], dtype: str = "float32", *, positive: bool = False) -> np.ndarray:
    """Standard normal numbers (their absolute values from a half on), or small integers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if np.issubdtype(np.dtype(dtype), np.integer):
        values = rng.integers(1 if positive else -9, 10, shape)
    else:
        values = rng.standard_normal(shape)
        values = np.abs(values) + 0.5 if positive else values
    return np.asarray(values).astype(dtype)


def broadcastable(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to the given one."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    return tuple(1 if draw(st.booleans()) else d for d in kept)


def axes_of(draw: st.DrawFn, rank: int, *, least: int = 0) -> tuple[int, ...]:
    """Distinct axes, each counted from either end."""
    places = draw(st.lists(st.integers(0, rank - 1), unique=True, min_size=least)) if rank else []
    return tuple(a - rank if draw(st.booleans()) else a for a in places)
