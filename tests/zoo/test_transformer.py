"""The activations by themselves: inside a model their arguments are too small for their constants to show."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from rlflow.zoo.builder import GraphBuilder
from rlflow.zoo.transformer import gelu, gelu_tanh


@pytest.mark.parametrize(("activation", "approximate"), [(gelu, "none"), (gelu_tanh, "tanh")])
def test_gelu_equals_torch(activation, approximate, run, assert_close, assert_differs):
    """To eight roundings, which tells the two forms apart, and the constants in their fifth digit."""
    b = GraphBuilder("activation", seed=0, opset=17)
    b.output("y", activation(b, "activation", b.input("x", (1001,))), (1001,))
    x = np.linspace(-4, 4, 1001, dtype=np.float32)
    other = {"none": "tanh", "tanh": "none"}[approximate]
    y = run(b.finish(), {"x": x})["y"]
    assert_close(y, F.gelu(torch.tensor(x), approximate=approximate).numpy(), depth=8, terms=1)
    assert_differs(y, F.gelu(torch.tensor(x), approximate=other).numpy(), depth=8, terms=1)
