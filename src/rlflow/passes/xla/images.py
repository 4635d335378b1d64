"""Networks on images: a ResNet, a network of depthwise convolutions, one with max pooling, and an autoencoder."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from rlflow.passes.xla.batch_norm import batch_norm
from rlflow.passes.xla.lowering import Model, Parameters, cross_entropy, tensor

_CLASSES = 8


def resnet(blocks: int = 2, width: int = 8, image: int = 16, batch: int = 2) -> Model:
    """A residual network of basic blocks, normalised by its running statistics when applied, by the batch's in a step.

    Every second block halves the image and doubles the channels.
    """
    widths = [width * 2 ** ((block + 1) // 2) for block in range(blocks)]
    types = {"stem": tensor(3, 3, 3, width), **_norm_types("stem", width), "classes": tensor(widths[-1], _CLASSES)}
    for block, (before, after) in enumerate(zip([width, *widths], widths, strict=False)):
        types |= {f"{block}.a": tensor(3, 3, before, after), **_norm_types(f"{block}.a", after)}
        types |= {f"{block}.b": tensor(3, 3, after, after), **_norm_types(f"{block}.b", after)}
        if before != after:
            types[f"{block}.short"] = tensor(1, 1, before, after)

    def features(p: Parameters, x: Any, training: bool) -> Any:
        x = jax.nn.relu(_norm(p, "stem", _conv(x, p["stem"]), training))
        for block in range(blocks):
            stride = 2 if f"{block}.short" in p else 1
            inner = jax.nn.relu(_norm(p, f"{block}.a", _conv(x, p[f"{block}.a"], stride), training))
            inner = _norm(p, f"{block}.b", _conv(inner, p[f"{block}.b"]), training)
            x = jax.nn.relu(inner + (_conv(x, p[f"{block}.short"], stride) if stride == 2 else x))
        return jnp.mean(x, (1, 2)) @ p["classes"]

    return Model(
        types,
        (tensor(batch, image, image, 3),),
        (tensor(batch, dtype="int32"),),
        lambda p, x: features(p, x, training=False),
        lambda p, x, labels: cross_entropy(features(p, x, training=True), labels),
    )


def mobilenet(blocks: int = 2, width: int = 8, image: int = 16, batch: int = 2) -> Model:
    """Inverted residual blocks: wider by a 1x1 convolution, depthwise, narrow again."""
    types: dict[str, Any] = {"stem": tensor(3, 3, 3, width), "classes": tensor(width, _CLASSES)}
    for block in range(blocks):
        types |= {f"{block}.up": tensor(1, 1, width, 2 * width), f"{block}.deep": tensor(3, 3, 1, 2 * width)}
        types |= {f"{block}.down": tensor(1, 1, 2 * width, width)}

    def apply(p: Parameters, x: Any) -> Any:
        x = jax.nn.relu6(_conv(x, p["stem"], 2))
        for block in range(blocks):
            inner = jax.nn.relu6(_conv(x, p[f"{block}.up"]))
            inner = jax.nn.relu6(_conv(inner, p[f"{block}.deep"], groups=2 * width))
            x = x + _conv(inner, p[f"{block}.down"])
        return jnp.mean(x, (1, 2)) @ p["classes"]

    return _classifier(types, image, batch, apply)


def vgg(blocks: int = 2, width: int = 8, image: int = 16, batch: int = 2) -> Model:
    """Convolutions with biases and max pooling, two dense layers on top."""
    side = image // 2**blocks
    types: dict[str, Any] = {"dense": tensor(side * side * width, 2 * width), "classes": tensor(2 * width, _CLASSES)}
    for block in range(blocks):
        types |= {f"{block}.conv": tensor(3, 3, width if block else 3, width), f"{block}.bias": tensor(width)}

    def apply(p: Parameters, x: Any) -> Any:
        for block in range(blocks):
            x = jax.nn.relu(_conv(x, p[f"{block}.conv"]) + p[f"{block}.bias"])
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jax.nn.relu(x.reshape(batch, -1) @ p["dense"]) @ p["classes"]

    return _classifier(types, image, batch, apply)


def autoencoder(levels: int = 2, width: int = 8, image: int = 16, batch: int = 2) -> Model:
    """Strided convolutions down and transposed ones up again; the loss is the squared error."""
    types: dict[str, Any] = {}
    for level in range(levels):
        types |= {f"{level}.down": tensor(3, 3, width if level else 3, width), f"{level}.down_bias": tensor(width)}
        types |= {f"{level}.up": tensor(3, 3, width, width if level else 3)}

    def apply(p: Parameters, x: Any) -> Any:
        for level in range(levels):
            x = jax.nn.elu(_conv(x, p[f"{level}.down"], 2) + p[f"{level}.down_bias"])
        for level in reversed(range(levels)):
            x = jax.lax.conv_transpose(x, p[f"{level}.up"], (2, 2), "SAME")
            x = jax.nn.elu(x) if level else jax.nn.sigmoid(x)
        return x

    def loss(p: Parameters, x: Any) -> Any:
        return jnp.mean((apply(p, x) - x) ** 2)

    return Model(types, (tensor(batch, image, image, 3),), (), apply, loss)


def _classifier(types: Parameters, image: int, batch: int, apply: Any) -> Model:
    def loss(p: Parameters, x: Any, labels: Any) -> Any:
        return cross_entropy(apply(p, x), labels)

    return Model(types, (tensor(batch, image, image, 3),), (tensor(batch, dtype="int32"),), apply, loss)


def _norm_types(name: str, width: int) -> dict[str, Any]:
    return {f"{name}.{part}": tensor(width) for part in ("scale", "offset", "mean", "variance")}


def _norm(p: Parameters, name: str, x: Any, training: bool) -> Any:
    scale, offset = p[f"{name}.scale"], p[f"{name}.offset"]
    if training:
        return batch_norm(x, scale, offset)[0]
    return (x - p[f"{name}.mean"]) / jnp.sqrt(p[f"{name}.variance"] + 1e-5) * scale + offset


def _conv(x: Any, kernel: Any, stride: int = 1, groups: int = 1) -> Any:
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups
    )
