"""Networks on images: their shapes and the operations that passes are there for."""

import jax
import pytest

from rlflow.passes.xla.images import autoencoder, mobilenet, resnet, vgg
from rlflow.passes.xla.lowering import forward, lowered, step


@pytest.mark.parametrize(
    ("build", "in_forward", "in_step"),
    [
        (resnet, "stablehlo.convolution", "stablehlo.batch_norm_grad"),
        (mobilenet, "feature_group_count = 16", "batch_group_count = 16"),
        (vgg, "stablehlo.reduce_window", "stablehlo.select_and_scatter"),
        (autoencoder, "lhs_dilate = [2, 2]", "stablehlo.convolution"),
    ],
)
def test_the_operations_that_each_is_there_for(build, in_forward: str, in_step: str) -> None:
    model = build()
    assert in_forward in lowered(forward(model)).decode()
    assert in_step in lowered(step(model)).decode()


@pytest.mark.parametrize("build", [resnet, mobilenet, vgg])
def test_classifiers_give_a_score_a_class(build) -> None:
    model = build(batch=3)
    assert jax.eval_shape(model.apply, model.parameters, *model.inputs).shape == (3, 8)


def test_an_autoencoder_gives_an_image_back() -> None:
    model = autoencoder(levels=3, image=16, batch=2)
    assert jax.eval_shape(model.apply, model.parameters, *model.inputs).shape == (2, 16, 16, 3)


def test_a_resnet_widens_every_second_block() -> None:
    """By a short cut of one by one, where the image is halved."""
    parameters = resnet(blocks=4, width=8).parameters
    assert {name for name in parameters if name.endswith("short")} == {"1.short", "3.short"}
    assert parameters["classes"].shape == (32, 8)
