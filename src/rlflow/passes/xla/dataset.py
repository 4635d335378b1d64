"""The programs of the backend "xla": models and algorithms written in jax, in sizes that a pass takes milliseconds for.

    stablehlo("gpt2/step?layers=2&width=32&heads=2&sequence=16&batch=2")

A name is a program and its settings, any of which may be left out. A model has two programs, `forward` and `step` (of
training), and is one family, since both have its layers. `sources` lists a choice of settings; others load as well.

Invariant: the same name gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from itertools import product
from typing import Any
from urllib.parse import parse_qsl

from rlflow.errors import InputError
from rlflow.passes.backend import Source
from rlflow.passes.xla import algorithms, dense, images, recurrent, transformers
from rlflow.passes.xla.lowering import Model, Program, forward, lowered, step

_Settings = dict[str, tuple[Any, ...]]

_MODELS: Mapping[str, Callable[..., Model]] = {
    "gpt2": transformers.gpt2,
    "bert": transformers.bert,
    "resnet": images.resnet,
    "mobilenet": images.mobilenet,
    "vgg": images.vgg,
    "autoencoder": images.autoencoder,
    "rnn": recurrent.rnn,
    "gru": recurrent.gru,
    "lstm": recurrent.lstm,
    "ssm": recurrent.ssm,
    "mlp": dense.mlp,
    "embedding": dense.embedding,
    "experts": dense.experts,
    "graph_network": dense.graph_network,
}
_PROGRAMS: Mapping[str, Callable[..., Program]] = {
    "quantised": dense.quantised,
    "sampler": algorithms.sampler,
    "branches": algorithms.branches,
    "iteration": algorithms.iteration,
    "clusters": algorithms.clusters,
    "ranking": algorithms.ranking,
    "prefix": algorithms.prefix,
    "simulation": algorithms.simulation,
    "update": algorithms.update,
    "matrices": algorithms.matrices,
}
_KINDS: Mapping[str, Callable[[Model], Program]] = {"forward": forward, "step": step}
_CHOICES: Mapping[str, tuple[str, ...]] = {"generator": ("threefry2x32", "rbg")}

_TRANSFORMER: _Settings = {"layers": (1, 2), "width": (32, 64), "heads": (2, 4), "sequence": (16,), "batch": (1, 2)}
_RECURRENT: _Settings = {"layers": (1, 2), "width": (16, 32), "sequence": (8,), "batch": (1, 4)}
_LISTED: Mapping[str, tuple[_Settings, ...]] = {
    "gpt2/forward": (_TRANSFORMER, {"layers": (1, 2), "heads": (2,), "dropout": (True,)}),
    "gpt2/step": (_TRANSFORMER | {"width": (32,)}, {"layers": (1, 2), "heads": (2,), "dropout": (True,)}),
    "bert/forward": (_TRANSFORMER, {"layers": (1, 2), "heads": (2,), "dropout": (True,)}),
    "bert/step": (_TRANSFORMER | {"width": (32,)}, {"layers": (1, 2), "heads": (2,), "dropout": (True,)}),
    "resnet/forward": ({"blocks": (1, 2, 3, 4), "width": (8, 16), "batch": (1, 2)},),
    "resnet/step": ({"blocks": (1, 2, 3), "width": (8,), "batch": (1, 2)},),
    "mobilenet/forward": ({"blocks": (1, 2, 3), "batch": (1, 2)},),
    "mobilenet/step": ({"blocks": (1, 2, 3), "batch": (2,)},),
    "vgg/forward": ({"blocks": (1, 2, 3), "batch": (1, 2)},),
    "vgg/step": ({"blocks": (1, 2, 3), "batch": (2,)},),
    "autoencoder/forward": ({"levels": (1, 2, 3), "batch": (2,)},),
    "autoencoder/step": ({"levels": (1, 2, 3), "batch": (2,)},),
    "rnn/forward": (_RECURRENT | {"width": (16,)},),
    "rnn/step": (_RECURRENT | {"width": (16,)},),
    "gru/forward": (_RECURRENT | {"width": (16,)},),
    "gru/step": (_RECURRENT | {"width": (16,)},),
    "lstm/forward": (_RECURRENT | {"width": (16,)},),
    "lstm/step": (_RECURRENT | {"width": (16,)},),
    "ssm/forward": ({"layers": (1, 2), "sequence": (8, 16)},),
    "ssm/step": ({"layers": (1, 2), "sequence": (8,)},),
    "mlp/forward": ({"layers": (1, 2, 4), "dropout": (False, True)},),
    "mlp/step": ({"layers": (1, 2, 4), "dropout": (False, True)},),
    "embedding/forward": ({"words": (4, 8), "batch": (1, 4)},),
    "embedding/step": ({"words": (4, 8), "batch": (1, 4)},),
    "experts/forward": ({"experts": (2, 4), "batch": (1, 8)},),
    "experts/step": ({"experts": (2, 4), "batch": (8,)},),
    "graph_network/forward": ({"rounds": (1, 2, 3)},),
    "graph_network/step": ({"rounds": (1, 2, 3)},),
    "quantised": ({"layers": (1, 2, 3), "batch": (1, 4)},),
    "sampler": ({"batch": (1, 2), "best": (4, 8), "generator": ("threefry2x32", "rbg")},),
    "branches": ({"depth": (1, 2, 3)},),
    "iteration": ({"turns": (1, 8), "inner": (1, 2)},),
    "clusters": ({"turns": (1, 3), "points": (8, 16)},),
    "ranking": ({"items": (16, 32), "batch": (1, 2)},),
    "prefix": ({"length": (32, 64, 128), "batch": (1, 2)},),
    "simulation": ({"turns": (1, 4), "generator": ("threefry2x32", "rbg")},),
    "update": ({"writes": (1, 4), "rows": (16, 32)},),
    "matrices": ({"batch": (1, 2), "terms": (1, 3)},),
}
"""The settings that are listed, each product of the values given; what is not named is as the builder has it."""


def sources() -> tuple[Source, ...]:
    """The listed programs, each with its family."""
    return tuple(
        Source(name + _query(settings), name.partition("/")[0])
        for name, choices in _LISTED.items()
        for each in choices
        for settings in _products(each)
    )


def names() -> list[str]:
    """The programs that there are, without settings."""
    return [*(f"{model}/{kind}" for model in _MODELS for kind in _KINDS), *_PROGRAMS]


def stablehlo(source: str) -> bytes:
    """Return a program by name as StableHLO. Raises `InputError` for an unknown name or setting, or a bad value."""
    name, _, query = source.partition("?")
    family, _, kind = name.partition("/")
    if name not in names():
        raise InputError(f"no program {name!r}, and no such file: choose from {', '.join(names())}")
    builder = _MODELS.get(family) or _PROGRAMS[name]
    settings = _settings(name, builder, query)
    try:
        built = builder(**settings)
        return lowered(_KINDS[kind](built) if isinstance(built, Model) else built)
    except (TypeError, ValueError, ZeroDivisionError) as error:  # what jax says of shapes that do not fit
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{source} does not fit together: {reason}") from error


def _settings(name: str, builder: Callable[..., Any], query: str) -> dict[str, Any]:
    known = signature(builder).parameters
    settings = {}
    for setting, text in parse_qsl(query, keep_blank_values=True):
        if setting not in known:
            raise InputError(f"{name} has no setting {setting!r}: choose from {', '.join(known)}")
        settings[setting] = _value(name, known[setting], text)
    return settings


def _value(name: str, setting: Parameter, text: str) -> int | bool | str:
    choices: Mapping[str, Any] = {"true": True, "false": False}
    if isinstance(setting.default, str):
        choices = {choice: choice for choice in _CHOICES[setting.name]}
    if not isinstance(setting.default, (bool, str)):
        if text.isascii() and text.isdigit() and int(text) > 0:
            return int(text)
        raise InputError(f"{name} cannot have {setting.name}={text}: give a whole number from 1")
    if text not in choices:
        raise InputError(f"{name} cannot have {setting.name}={text}: give {' or '.join(choices)}")
    return choices[text]


def _products(settings: _Settings) -> Iterator[dict[str, Any]]:
    for values in product(*settings.values()):
        yield dict(zip(settings, values, strict=True))


def _query(settings: Mapping[str, Any]) -> str:
    return "?" + "&".join(f"{setting}={str(value).lower()}" for setting, value in settings.items())
