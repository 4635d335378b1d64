"""The opsets of ai.onnx that the installed packages support."""

from functools import cache

import onnx
from onnx import TensorProto, helper

from rlflow.errors import RLFlowError
from rlflow.runtime.session import open_session


@cache
def is_supported(opset: int) -> bool:
    """Return True if the installed onnx knows this opset of ai.onnx and the installed ONNX Runtime opens its models."""
    if opset > onnx.defs.onnx_opset_version():
        return False
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "opset", ends[:1], ends[1:])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])
    try:
        open_session(model, "as_written")
    except RLFlowError:
        return False
    return True
