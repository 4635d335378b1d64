"""The block of channels is asked of the runtime, and is one that a processor has."""

from onnx import TensorProto, helper
from support.drawn_cnns import runtime_reorders

from rlflow.runtime.blocks import block_channels


def test_a_pool_is_blocked_from_one_block_on() -> None:
    """Asked again with other models: one channel less than a block is left as it is."""
    block = block_channels()
    assert block in (1, 4, 8, 16, 32)
    for channels in {block, 2 * block, max(1, block - 1)}:
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, 4, 4]) for name in "xy"]
        pool = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[1, 1])
        model = helper.make_model(
            helper.make_graph([pool], "pool", values[:1], values[1:]),
            ir_version=10,
            opset_imports=[helper.make_opsetid("", 17)],
        )
        assert any(runtime_reorders(model)) == (block > 1 and channels % block == 0)
