"""Batch normalisation as the one operation that XLA has for it, with its gradient, which jax itself never writes.

    normalised, mean, variance = batch_norm(images, scale, offset)

`images` are (batch, height, width, channels); means and variances are those of each channel.
"""

from __future__ import annotations

from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jaxlib.mlir.dialects import stablehlo as hlo

_EPSILON = 1e-5
_CHANNELS = 3

_training = Primitive("rlflow_batch_norm_training")
_training.multiple_results = True
_gradient = Primitive("rlflow_batch_norm_grad")
_gradient.multiple_results = True


@jax.custom_vjp
def batch_norm(images: Any, scale: Any, offset: Any) -> tuple[Any, Any, Any]:
    """Normalise by the batch's own statistics; no gradient flows through these as they are returned."""
    normalised, mean, variance = _training.bind(images, scale, offset)
    return normalised, mean, variance


def _forward(images: Any, scale: Any, offset: Any) -> tuple[Any, Any]:
    normalised, mean, variance = _training.bind(images, scale, offset)
    return (normalised, mean, variance), (images, scale, mean, variance)


def _backward(kept: Any, cotangents: Any) -> tuple[Any, Any, Any]:
    images, scale, mean, variance = kept
    to_images, to_scale, to_offset = _gradient.bind(images, scale, mean, variance, cotangents[0])
    return to_images, to_scale, to_offset


batch_norm.defvjp(_forward, _backward)


def _training_types(images: Any, scale: Any, offset: Any) -> tuple[Any, Any, Any]:
    return images, scale, offset


def _gradient_types(images: Any, scale: Any, mean: Any, variance: Any, cotangent: Any) -> tuple[Any, Any, Any]:
    return images, scale, mean


def _lower_training(_: Any, images: Any, scale: Any, offset: Any) -> Any:
    return hlo.BatchNormTrainingOp(images, scale, offset, epsilon=_EPSILON, feature_index=_CHANNELS).results


def _lower_gradient(_: Any, images: Any, scale: Any, mean: Any, variance: Any, cotangent: Any) -> Any:
    operation = hlo.BatchNormGradOp(images, scale, mean, variance, cotangent, epsilon=_EPSILON, feature_index=_CHANNELS)
    return operation.results


_training.def_abstract_eval(_training_types)
_gradient.def_abstract_eval(_gradient_types)
mlir.register_lowering(_training, _lower_training)
mlir.register_lowering(_gradient, _lower_gradient)
