"""Convolutions, normalisations and heads of image classifiers, written the way torch's exporter writes them."""

from math import sqrt

import numpy as np

from rlflow.zoo.builder import GraphBuilder

_NOISE = 0.1


def convolution(
    b: GraphBuilder,
    scope: str,
    x: str,
    inputs: int,
    outputs: int,
    kernel: tuple[int, int],
    *,
    stride: int = 1,
    groups: int = 1,
    padded: bool = True,
    bias: bool = True,
) -> str:
    """Conv from `inputs` to `outputs` channels, with the weights of He et al. (2015).

    x (batch, inputs, height, width). `padded`: padded with zeros, so that an odd kernel of stride 1 keeps height and
    width. `groups`: that many convolutions side by side, each from and to its share of the channels.
    """
    height, width = kernel
    fan_in = inputs // groups
    weight = b.parameter(f"{scope}/weight", (outputs, fan_in, *kernel), std=sqrt(2 / (fan_in * height * width)))
    optional = [b.parameter(f"{scope}/bias", (outputs,), std=_NOISE)] if bias else []
    above, beside = ((height - 1) // 2, (width - 1) // 2) if padded else (0, 0)
    grouped = {"group": groups} if groups > 1 else {}
    return b.node(
        "Conv",
        *(x, weight, *optional),
        scope=scope,
        kernel_shape=kernel,
        pads=[above, beside, above, beside],
        strides=[stride, stride],
        **grouped,
    )


def batch_normalisation(
    b: GraphBuilder, scope: str, x: str, channels: int, *, epsilon: float = 1e-5, gain: float = 1.0
) -> str:
    """BatchNormalization as after training, with running statistics; `gain` is the mean of the gains drawn."""
    variance = b.random(f"{scope}/variance").uniform(0.5, 1.5, channels).astype(np.float32)
    parameters = (
        b.parameter(f"{scope}/gain", (channels,), mean=gain, std=_NOISE * gain),
        b.parameter(f"{scope}/shift", (channels,), std=_NOISE),
        b.parameter(f"{scope}/mean", (channels,), std=_NOISE),
        b.initialiser(f"{scope}/variance", variance),
    )
    return b.node("BatchNormalization", x, *parameters, scope=scope, epsilon=epsilon)


def normalised_convolution(
    b: GraphBuilder,
    scope: str,
    x: str,
    inputs: int,
    outputs: int,
    kernel: tuple[int, int],
    *,
    stride: int = 1,
    groups: int = 1,
    padded: bool = True,
    epsilon: float = 1e-5,
    gain: float = 1.0,
) -> str:
    """Conv without a bias, then BatchNormalization, whose shift replaces the bias."""
    x = convolution(b, scope, x, inputs, outputs, kernel, stride=stride, groups=groups, padded=padded, bias=False)
    return batch_normalisation(b, scope, x, outputs, epsilon=epsilon, gain=gain)


def pooled_classifier(b: GraphBuilder, scope: str, x: str, channels: int, classes: int) -> str:
    """Average pooling and a linear layer, W mean(x) + b: x (batch, channels, height, width) -> (batch, classes)."""
    x = b.node("GlobalAveragePool", x, scope=f"{scope}/pool")
    x = b.node("Flatten", x, scope=f"{scope}/pool", axis=1)
    return fully_connected(b, f"{scope}/classifier", x, channels, classes, std=1 / sqrt(channels))


def fully_connected(b: GraphBuilder, scope: str, x: str, inputs: int, outputs: int, *, std: float) -> str:
    """A linear layer, W x + b with W from Normal(0, std): x (batch, inputs) -> (batch, outputs)."""
    weight = b.parameter(f"{scope}/weight", (outputs, inputs), std=std)
    bias = b.parameter(f"{scope}/bias", (outputs,), std=_NOISE)
    return b.node("Gemm", x, weight, bias, scope=scope, transB=1)
