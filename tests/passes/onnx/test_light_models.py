"""The light models run, and their weights tell one channel from another."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from rlflow.equivalence.compare import compare
from rlflow.errors import InputError
from rlflow.passes.onnx.light_models import LIGHT, light_model


@pytest.mark.parametrize("name", LIGHT)
def test_outputs_could_show_a_fault(name: str) -> None:
    """Made as the package makes them, weights are one number each, all outputs are equal and no draw says anything."""
    model = light_model(name)
    report = compare(model, model, draws=1)

    assert report.equivalent
    assert report.non_vacuous_draws == 1
    assert any(np.ptp(numpy_helper.to_array(tensor)) > 0 for tensor in model.graph.initializer if len(tensor.dims) == 4)
    assert not any(node.op_type in ("ConstantOfShape", "Softmax") for node in model.graph.node)


def test_weights_are_the_same_every_time() -> None:
    first, again = (light_model("squeezenet").SerializeToString(deterministic=True) for _ in range(2))

    assert first == again


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="choose one of squeezenet, shufflenet"):
        light_model("vgg19")
