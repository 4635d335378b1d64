"""InceptionV3 (Szegedy et al. 2016) without its auxiliary classifier, which is used in training only.

The network is a table of steps (`_STEPS`): a convolution, a pooling, or towers side by side whose results are
concatenated. A tower is again a sequence of steps, so one function (`_append`) writes all of them. For example,
`mixed_5b` is four towers: a 1x1 convolution; a 1x1 and a 5x5; a 1x1 and two 3x3; a blur and a 1x1.
"""

from dataclasses import dataclass

from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.convolution import normalised_convolution, pooled_classifier

_LEAST_IMAGE = 75
_PUBLISHED_WIDTH = 16
_EPSILON = 1e-3


@dataclass(frozen=True, slots=True)
class _Conv:
    """Conv, BatchNormalization and Relu; `channels` as published."""

    channels: int
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    padded: bool = True


@dataclass(frozen=True, slots=True)
class _Pool:
    """A pooling operator and its attributes."""

    operator: str
    attributes: dict[str, object]


@dataclass(frozen=True, slots=True)
class _Towers:
    """Towers of steps side by side, whose results are concatenated."""

    towers: tuple[tuple["_Step", ...], ...]


_Step = _Conv | _Pool | _Towers

_HALVE = _Pool("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2]})
_BLUR = _Pool("AveragePool", {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1], "count_include_pad": 1})


def _towers(*towers: tuple[_Step, ...]) -> _Towers:
    return _Towers(towers)


def _mixed_5(pooled: int) -> _Towers:
    return _towers(
        (_Conv(64),),
        (_Conv(48), _Conv(64, (5, 5))),
        (_Conv(64), _Conv(96, (3, 3)), _Conv(96, (3, 3))),
        (_BLUR, _Conv(pooled)),
    )


def _mixed_6(narrow: int) -> _Towers:
    return _towers(
        (_Conv(192),),
        (_Conv(narrow), _Conv(narrow, (1, 7)), _Conv(192, (7, 1))),
        (_Conv(narrow), _Conv(narrow, (7, 1)), _Conv(narrow, (1, 7)), _Conv(narrow, (7, 1)), _Conv(192, (1, 7))),
        (_BLUR, _Conv(192)),
    )


_CROSS = _towers((_Conv(384, (1, 3)),), (_Conv(384, (3, 1)),))
_MIXED_7 = _towers(
    (_Conv(320),),
    (_Conv(384), _CROSS),
    (_Conv(448), _Conv(384, (3, 3)), _CROSS),
    (_BLUR, _Conv(192)),
)
_REDUCE_TO_17 = _towers(
    (_Conv(384, (3, 3), 2, padded=False),),
    (_Conv(64), _Conv(96, (3, 3)), _Conv(96, (3, 3), 2, padded=False)),
    (_HALVE,),
)
_REDUCE_TO_8 = _towers(
    (_Conv(192), _Conv(320, (3, 3), 2, padded=False)),
    (_Conv(192), _Conv(192, (1, 7)), _Conv(192, (7, 1)), _Conv(192, (3, 3), 2, padded=False)),
    (_HALVE,),
)
_STEPS: dict[str, _Step] = {
    "conv_1a": _Conv(32, (3, 3), 2, padded=False),
    "conv_2a": _Conv(32, (3, 3), padded=False),
    "conv_2b": _Conv(64, (3, 3)),
    "pool_3a": _HALVE,
    "conv_3b": _Conv(80),
    "conv_4a": _Conv(192, (3, 3), padded=False),
    "pool_5a": _HALVE,
    "mixed_5b": _mixed_5(pooled=32),
    "mixed_5c": _mixed_5(pooled=64),
    "mixed_5d": _mixed_5(pooled=64),
    "mixed_6a": _REDUCE_TO_17,
    "mixed_6b": _mixed_6(narrow=128),
    "mixed_6c": _mixed_6(narrow=160),
    "mixed_6d": _mixed_6(narrow=160),
    "mixed_6e": _mixed_6(narrow=192),
    "mixed_7a": _REDUCE_TO_8,
    "mixed_7b": _MIXED_7,
    "mixed_7c": _MIXED_7,
}
"""The layers under the names of the authors' release: the number is the stage, the letter the place in it."""


def inception_v3(
    *,
    width: int = _PUBLISHED_WIDTH,
    image: int = 299,
    batch: Dimension = 1,
    classes: int = 1000,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """InceptionV3: 94 normalised convolutions in towers side by side, concatenated, and a Gemm.

    Input image (batch, 3, image, image), batch a number or a symbol; output logits (batch, classes). `width` replaces
    the 16 of which every published number of channels is a multiple. Raises InputError for an image so small that the
    layers leave nothing of it.
    """
    if image < _LEAST_IMAGE:
        raise InputError(
            f"inception_v3: the layers leave nothing of an image of {image} pixels; give {_LEAST_IMAGE} or more."
        )
    b = GraphBuilder("inception_v3", seed=seed, opset=opset)
    x, channels = b.input("image", (batch, 3, image, image)), 3
    for name, step in _STEPS.items():
        x, channels = _append(b, f"inception_v3/{name}", x, channels, step, width)
    b.output("logits", pooled_classifier(b, "inception_v3", x, channels, classes), (batch, classes))
    return b.finish()


def _append(b: GraphBuilder, scope: str, x: str, channels: int, step: _Step, width: int) -> tuple[str, int]:
    """Append a step; returns its result, (batch, channels, height, width), and the number of its channels."""
    if isinstance(step, _Pool):
        return b.node(step.operator, x, scope=scope, **step.attributes), channels
    if isinstance(step, _Conv):
        outputs = step.channels * width // _PUBLISHED_WIDTH
        y = normalised_convolution(
            b, scope, x, channels, outputs, step.kernel, stride=step.stride, padded=step.padded, epsilon=_EPSILON
        )
        return b.node("Relu", y, scope=scope), outputs

    ends = [_tower(b, f"{scope}/tower_{index}", x, channels, tower, width) for index, tower in enumerate(step.towers)]
    joined = b.node("Concat", *(end for end, _ in ends), scope=scope, axis=1)
    return joined, sum(outputs for _, outputs in ends)


def _tower(b: GraphBuilder, scope: str, x: str, channels: int, tower: tuple[_Step, ...], width: int) -> tuple[str, int]:
    for index, step in enumerate(tower):
        x, channels = _append(b, f"{scope}/step_{index}", x, channels, step, width)
    return x, channels
