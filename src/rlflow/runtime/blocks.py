"""The channels that ONNX Runtime puts into one block on this machine's processor: see `cost/blocked_layout.py`.

    block_channels()        # 8 on AVX2, 16 on AVX-512, 1 where it blocks nothing

It is asked, not derived from the processor: pools of 4, 8, 16 and 32 channels are optimised, of which those are blocked
whose channels fill blocks.
"""

from functools import cache

from onnx import TensorProto, helper

from rlflow.runtime.session import fused_model

_ASKED = (4, 8, 16, 32)


@cache
def block_channels() -> int:
    """Return the channels of a block, asked once a process."""
    nodes = [helper.make_node("MaxPool", [f"x{c}"], [f"y{c}"], name=str(c), kernel_shape=[2, 2]) for c in _ASKED]
    images = [helper.make_tensor_value_info(f"x{c}", TensorProto.FLOAT, [1, c, 2, 2]) for c in _ASKED]
    pooled = [helper.make_tensor_value_info(f"y{c}", TensorProto.FLOAT, [1, c, 1, 1]) for c in _ASKED]
    graph = helper.make_graph(nodes, "pools", images, pooled)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    plain = {node.output[0] for node in fused_model(model).graph.node if not node.domain}
    return min((c for c in _ASKED if f"y{c}" not in plain), default=1)
