"""The programs of the ONNX backends: models of the zoo in small sizes, by an address that says which.

    zoo/bert?layers=2&hidden=32&heads=2          a model of `rlflow.zoo` with these settings, and `small` ones else
    detours/bert?layers=2&hidden=32&heads=2      the same as a careless exporter writes it (`detours.py`)
    light/squeezenet                             a model of the onnx package, with drawn weights

Any such address can be loaded, whether it is one of `sources()` or not. The family is the architecture: a split by
family tests on architectures that were never trained on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from urllib.parse import parse_qsl

from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.onnx_io import read_model
from rlflow.passes.backend import Source
from rlflow.passes.onnx.detours import with_detours
from rlflow.passes.onnx.light_models import LIGHT, light_model
from rlflow.zoo import registry

_FAMILIES = {"resnet18": "resnet", "resnet50": "resnet", "resnext50": "resnext"} | {
    name: "tiny" for name in ("tiny_chain", "tiny_merge", "tiny_scale", "tiny_transpose")
}
_Axes = Mapping[str, tuple[object, ...]]

_SEQUENCES: _Axes = {"layers": (1, 2), "hidden": (16, 32), "layer_norm": ("fused", "decomposed")}
_IMAGES: _Axes = {"width": (2, 4), "image": (32, 64)}
_SIZES: dict[str, _Axes] = {
    "bert": {**_SEQUENCES, "head": ("none", "cls")},
    "conv": {"blocks": (1, 2, 3), "channels": (4, 8)},
    "dalle": {"layers": (2, 3), "hidden": (16, 32), "layer_norm": ("fused", "decomposed")},
    "gpt2": {**_SEQUENCES, "head": ("all", "last")},
    "inception_v3": {"width": (1,), "image": (75, 91)},
    "loop": {"steps": (2, 5), "width": (8, 16)},
    "mlp": {"layers": (2, 3, 5), "hidden": (16, 32)},
    "mobilenet_v2": {"width": (1,), "image": (32, 48, 64, 96)},
    "mobilenet_v3": {"width": (1, 2), "image": (32, 64)},
    "nasnet_a": {"width": (4,), "cells": (1,), "image": (35, 43)},
    "nasrnn": {"steps": (1, 2, 3), "hidden": (8, 12)},
    "resnet18": _IMAGES,
    "resnet50": {"width": (2,), "image": (32, 64, 96)},
    "resnext50": {"width": (4,), "groups": (2, 4), "image": (32, 64)},
    "squeezenet1_1": _IMAGES,
    "t5_decoder": {"layers": (1, 2), "hidden": (16, 32), "head": ("all", "last")},
    "tiny_chain": {"seed": (0,)},
    "tiny_merge": {"branches": (2, 3)},
    "tiny_scale": {"seed": (0,)},
    "tiny_transpose": {"seed": (0,)},
    "transformer_transducer": {"audio_layers": (1, 2), "hidden": (16, 32), "layer_norm": ("fused", "decomposed")},
    "vgg19": {"width": (1, 2), "hidden": (16, 24)},
    "vit": {**_SEQUENCES},
    "yolo_v5": {"width": (1, 2), "image": (32, 64)},
}
"""For each model the settings that differ between its sources."""
_SCHEMES = ("zoo", "detours", "light")


def sources() -> tuple[Source, ...]:
    """The programs of the dataset, in the order of their names."""
    zoo = [Source(f"{scheme}/{at}", family_of(name)) for scheme in ("zoo", "detours") for name, at in _addresses()]
    light = [Source(f"light/{name}", family) for name, family in LIGHT.items()]
    return tuple(sorted((*zoo, *light), key=lambda source: source.name))


def family_of(name: str) -> str:
    """The architecture of a model of the zoo: its name, but for names that differ in size alone."""
    return _FAMILIES.get(name, name)


def is_address(source: str) -> bool:
    """Return True for an address of the dataset, which no path to a file looks like."""
    return source.partition("/")[0] in _SCHEMES and not Path(source).exists()


def model_at(address: str) -> ModelProto:
    """Build the model at an address. `InputError` if there is none."""
    scheme, _, rest = address.partition("/")
    if scheme == "light":
        return light_model(rest)
    name, _, query = rest.partition("?")
    entry = registry.describe(name)
    given = {key: _value(text) for key, text in parse_qsl(query, keep_blank_values=True)}
    model = registry.build(name, **{**entry.small, **given})
    return with_detours(model) if scheme == "detours" else model


def read(source: str | bytes) -> ModelProto:
    """Read a model: at an address, in a file, or from the content of a file. `InputError` if there is none."""
    if isinstance(source, bytes):
        return _parsed(source)
    if is_address(source):
        return model_at(source)
    path = Path(source)
    if not path.is_file():
        raise InputError(
            f"there is no ONNX program {source!r}: give a file, or an address such as zoo/bert?layers=2, "
            f"detours/gpt2?hidden=32 or light/{next(iter(LIGHT))}; the zoo has {', '.join(registry.names())}"
        )
    return read_model(path)


def _parsed(content: bytes) -> ModelProto:
    model = ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as error:
        raise InputError(f"these {len(content)} bytes are no ONNX model: {error}") from error
    return model


def _addresses() -> Iterator[tuple[str, str]]:
    for name, axes in _SIZES.items():
        for values in product(*axes.values()):
            settings = "&".join(f"{key}={value}" for key, value in zip(axes, values, strict=True))
            yield name, f"{name}?{settings}"


def _value(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.removeprefix("-").isdecimal() else text
