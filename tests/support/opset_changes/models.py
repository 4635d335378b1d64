"""Drawn nodes as whole models, which are read, upgraded and written as those of a user."""

from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, helper

from rlflow.equivalence.tolerance import tolerance_of
from rlflow.errors import RLFlowError
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.onnx_io.opset_upgrade import upgraded
from rlflow.runtime.session import open_session, run
from support.kernels import all_close
from support.opset_changes.drawing import schemas
from support.opset_changes.trial import drawn

FIRST, LAST = 7, 23
"""The opsets from and to which models are upgraded: the last one is the newest that a rule of the library wants."""

Key = tuple[str, int, int]
"""An operator, the opset of its schema, and the seed of a draw."""


def keys(seeds: range) -> list[Key]:
    """All operators in all their versions that a model may be upgraded from."""
    return [
        (name, schema.since_version, seed)
        for name, versions in schemas().items()
        for schema in versions
        if schema.since_version < LAST and not schema.deprecated
        for seed in seeds
    ]


def fate_of(key: Key) -> str:
    """Return "same" or "other" for what the upgraded model computes, "left" if none is, and "" where nothing runs.

    It is compared with what the graph computes in its own opset.
    """
    operator, version, seed = key
    later = [schema.since_version for schema in schemas()[operator] if schema.since_version > version]
    opset = max(FIRST, min([*later, LAST]) - 1)
    trial = drawn(onnx.defs.get_schema(operator, version, ""), seed) if opset >= version else None
    fates = []
    for model, feeds in [] if trial is None or trial.may_draw else trial.models(opset):
        try:
            _declare(model, run(open_session(model, "as_written"), feeds))
            run(open_session(model, "as_written"), feeds)  # an optional output is not what it looks like
            graph = from_onnx(model)
            expected = run(open_session(to_onnx(graph), "as_written"), feeds)
        except (RLFlowError, TypeError):
            continue
        newer = upgraded(graph, LAST)
        if newer is None:
            return "left"
        found = run(open_session(to_onnx(newer), "as_written"), feeds)
        fates.append("same" if all_close(expected, found, tolerance_of(model)) else "other")
    return max(fates, default="", key=lambda fate: fate == "other")


def _declare(model: ModelProto, outputs: dict[str, Any]) -> None:
    """Give the outputs the types of their values; `TypeError` for a sequence."""
    for value in model.graph.output:
        found = outputs[value.name]
        if not isinstance(found, np.ndarray):
            raise TypeError(f"{value.name} is no tensor")
        element = onnx.TensorProto.STRING if found.dtype == object else helper.np_dtype_to_tensor_dtype(found.dtype)
        value.CopyFrom(helper.make_tensor_value_info(value.name, element, [None] * found.ndim))
