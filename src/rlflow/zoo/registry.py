"""The models that the zoo can build, by name, with their settings checked before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args, get_origin, get_type_hints

from rlflow.errors import InputError
from rlflow.plugins import Registry

if TYPE_CHECKING:
    from onnx import ModelProto

    Builder = Callable[..., ModelProto]

Settings = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ZooEntry:
    """A model that can be built by name: its family, one sentence, and the settings with their defaults.

    `small` are settings at which the model has every kind of layer and is built in tenths of a second.
    """

    name: str
    family: str
    summary: str
    settings: dict[str, object]
    small: Settings


_NONE: Settings = MappingProxyType({})


class _Model(NamedTuple):
    """A line of the table: the family, the builder's import string, and settings for a small model."""

    family: str
    builder: str
    small: Settings = _NONE


_ENCODER: Settings = {"layers": 1, "hidden": 16, "heads": 2, "intermediate": 24}
_DECODER: Settings = {**_ENCODER, "vocabulary": 20, "positions": 16}
_IMAGES: Settings = {"image": 32, "classes": 10}
_TRANSDUCER: Settings = {
    "audio_layers": 1,
    "label_layers": 1,
    "hidden": 16,
    "heads": 2,
    "intermediate": 24,
    "frames": 5,
    "labels": 4,
    "vocabulary": 20,
}
_DALLE: Settings = {"layers": 3, "text": 3, "grid": 3, "text_vocabulary": 20, "image_vocabulary": 14}

_MODELS = {
    "bert": _Model("transformer", "rlflow.zoo.bert:bert", {**_DECODER, "sequence": 8}),
    "conv": _Model("cnn", "rlflow.zoo.cnn:conv"),
    "dalle": _Model("transformer", "rlflow.zoo.dalle:dalle", {**_ENCODER, **_DALLE}),
    "gpt2": _Model("transformer", "rlflow.zoo.gpt2:gpt2", {**_DECODER, "sequence": 8}),
    "inception_v3": _Model("cnn", "rlflow.zoo.inception:inception_v3", {**_IMAGES, "width": 2, "image": 75}),
    "loop": _Model("control_flow", "rlflow.zoo.control_flow:loop"),
    "mlp": _Model("mlp", "rlflow.zoo.mlp:mlp"),
    "mobilenet_v2": _Model("cnn", "rlflow.zoo.mobilenet:mobilenet_v2", {**_IMAGES, "width": 1}),
    "mobilenet_v3": _Model("cnn", "rlflow.zoo.mobilenet_v3:mobilenet_v3", {**_IMAGES, "width": 1}),
    "nasnet_a": _Model("cnn", "rlflow.zoo.nasnet:nasnet_a", {**_IMAGES, "width": 4, "cells": 1, "image": 35}),
    "nasrnn": _Model("recurrent", "rlflow.zoo.nasrnn:nasrnn", {"steps": 2, "hidden": 12}),
    "resnet18": _Model("cnn", "rlflow.zoo.resnet:resnet18", {**_IMAGES, "width": 4}),
    "resnet50": _Model("cnn", "rlflow.zoo.resnet:resnet50", {**_IMAGES, "width": 4}),
    "resnext50": _Model("cnn", "rlflow.zoo.resnext:resnext50", {**_IMAGES, "width": 4, "groups": 4}),
    "squeezenet1_1": _Model("cnn", "rlflow.zoo.squeezenet:squeezenet1_1", {**_IMAGES, "width": 4}),
    "t5_decoder": _Model(
        "transformer", "rlflow.zoo.t5:t5_decoder", {**_DECODER, "sequence": 6, "memory": 5, "buckets": 8}
    ),
    "tiny_chain": _Model("tiny", "rlflow.zoo.tiny:tiny_chain"),
    "tiny_merge": _Model("tiny", "rlflow.zoo.tiny:tiny_merge"),
    "tiny_scale": _Model("tiny", "rlflow.zoo.tiny:tiny_scale"),
    "tiny_transpose": _Model("tiny", "rlflow.zoo.tiny:tiny_transpose"),
    "transformer_transducer": _Model("transformer", "rlflow.zoo.transducer:transformer_transducer", _TRANSDUCER),
    "vgg19": _Model("cnn", "rlflow.zoo.vgg:vgg19", {**_IMAGES, "width": 2, "hidden": 24}),
    "vit": _Model("transformer", "rlflow.zoo.vit:vit", {**_ENCODER, "patch": 8, "image": 24, "classes": 10}),
    "yolo_v5": _Model("cnn", "rlflow.zoo.yolo:yolo_v5", {**_IMAGES, "width": 2}),
}
_FOREIGN = _Model("another package", "")

BUILDERS: Registry[Builder] = Registry(
    noun="model of the zoo",
    group="rlflow.zoo",
    built_in={name: model.builder for name, model in _MODELS.items()},
)
"""Builders by name. Their arguments all have defaults, and their docstring's first line is what `describe` says."""

OPTIMA: Registry[Builder] = Registry(
    noun="model with a known optimum",
    group="rlflow.zoo_optima",
    built_in={
        "tiny_chain": "rlflow.zoo.tiny:tiny_chain_optimum",
        "tiny_merge": "rlflow.zoo.tiny:tiny_merge_optimum",
        "tiny_scale": "rlflow.zoo.tiny:tiny_scale_optimum",
        "tiny_transpose": "rlflow.zoo.tiny:tiny_transpose_optimum",
    },
)


def names() -> list[str]:
    """The names that `build` knows, sorted."""
    return sorted(BUILDERS.names())


def names_with_optimum() -> list[str]:
    """The names that `optimum` knows, sorted."""
    return sorted(OPTIMA.names())


def describe(name: str) -> ZooEntry:
    """Say what `name` builds. Raises InputError for an unknown name."""
    builder, model = BUILDERS.get(name), _MODELS.get(name, _FOREIGN)
    summary = (builder.__doc__ or "").partition("\n")[0]
    settings = {parameter.name: parameter.default for parameter in signature(builder).parameters.values()}
    return ZooEntry(name, model.family, summary, settings, model.small)


def build(name: str, **settings: object) -> ModelProto:
    """Build the model `name` with seeded random weights: same settings, same bytes.

    Raises InputError as `check_settings` does.
    """
    check_settings(name, settings)
    return BUILDERS.get(name)(**settings)


def optimum(name: str, **settings: object) -> ModelProto:
    """Build the best graph for `build(name, **settings)`: same inputs, outputs and function, same drawn weights.

    Raises InputError as `check_settings` does, and for a model whose best graph is not known.
    """
    check_settings(name, settings)
    return OPTIMA.get(name)(**settings)


def check_settings(name: str, settings: Mapping[str, object]) -> None:
    """Raise InputError for an unknown name or setting, and for a value that the setting does not admit."""
    entry = describe(name)
    annotations = get_type_hints(BUILDERS.get(name))
    for setting, value in settings.items():
        if setting not in entry.settings:
            raise InputError(f"{name} has no setting {setting!r}: choose from {', '.join(sorted(entry.settings))}")
        least = 0 if setting == "seed" else 1
        if not _admits(annotations[setting], value, least):
            raise InputError(f"{name} cannot have {setting}={value!r}: give {_in_words(annotations[setting], least)}")


def _admits(annotation: object, value: object, least: int) -> bool:
    if get_origin(annotation) is Literal:
        return value in get_args(annotation)
    if annotation is bool or isinstance(value, bool):
        return annotation is bool and isinstance(value, bool)
    if isinstance(value, str):
        return str in get_args(annotation) and value.isidentifier()
    return isinstance(value, int) and value >= least


def _in_words(annotation: object, least: int) -> str:
    if get_origin(annotation) is Literal:
        return " or ".join(map(repr, get_args(annotation)))
    if annotation is bool:
        return "True or False"
    number = f"a whole number from {least}"
    return f"{number}, or the name of a dynamic dimension" if str in get_args(annotation) else number
