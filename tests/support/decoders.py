"""Zoo models that write token by token, and inputs for them."""

import numpy as np
import onnx

WRITTEN = {
    "dalle": "image",
    "gpt2": "input_ids",
    "t5_decoder": "input_ids",
    "transformer_transducer": "label_ids",
}
"""The input of the tokens that are written."""
DEPTH, TERMS = 100, 24
"""More operators in a row, and as many terms in a sum, as any of the small models has."""


def draw_feeds(model: onnx.ModelProto, batch: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    feeds = {}
    for value in model.graph.input:
        shape = [batch, *(d.dim_value for d in value.type.tensor_type.shape.dim[1:])]
        ids = value.type.tensor_type.elem_type == onnx.TensorProto.INT64
        feeds[value.name] = rng.integers(0, 14, shape) if ids else rng.standard_normal(shape, dtype=np.float32)
    return feeds
