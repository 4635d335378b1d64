"""The models that the zoo can build, by name, with their settings checked before anything is built."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Literal, get_args, get_origin, get_type_hints

from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.zoo import (
    bert,
    cnn,
    control_flow,
    dalle,
    gpt2,
    inception,
    mlp,
    mobilenet,
    nasnet,
    nasrnn,
    resnet,
    resnext,
    squeezenet,
    t5,
    tiny,
    transducer,
    vgg,
    vit,
)

Builder = Callable[..., ModelProto]


@dataclass(frozen=True, slots=True)
class ZooEntry:
    """What can be built under a name: its family, one sentence, and the settings with their defaults."""

    name: str
    family: str
    summary: str
    settings: dict[str, object]


_BUILDERS: dict[str, tuple[str, Builder]] = {
    "bert": ("transformer", bert.bert),
    "conv": ("cnn", cnn.conv),
    "dalle": ("transformer", dalle.dalle),
    "gpt2": ("transformer", gpt2.gpt2),
    "inception_v3": ("cnn", inception.inception_v3),
    "loop": ("control_flow", control_flow.loop),
    "mlp": ("mlp", mlp.mlp),
    "mobilenet_v2": ("cnn", mobilenet.mobilenet_v2),
    "nasnet_a": ("cnn", nasnet.nasnet_a),
    "nasrnn": ("recurrent", nasrnn.nasrnn),
    "resnet18": ("cnn", resnet.resnet18),
    "resnet50": ("cnn", resnet.resnet50),
    "resnext50": ("cnn", resnext.resnext50),
    "squeezenet1_1": ("cnn", squeezenet.squeezenet1_1),
    "t5_decoder": ("transformer", t5.t5_decoder),
    "tiny_chain": ("tiny", tiny.tiny_chain),
    "tiny_merge": ("tiny", tiny.tiny_merge),
    "tiny_scale": ("tiny", tiny.tiny_scale),
    "tiny_transpose": ("tiny", tiny.tiny_transpose),
    "transformer_transducer": ("transformer", transducer.transformer_transducer),
    "vgg19": ("cnn", vgg.vgg19),
    "vit": ("transformer", vit.vit),
}

_OPTIMA: dict[str, Builder] = {
    "tiny_chain": tiny.tiny_chain_optimum,
    "tiny_merge": tiny.tiny_merge_optimum,
    "tiny_scale": tiny.tiny_scale_optimum,
    "tiny_transpose": tiny.tiny_transpose_optimum,
}


def names() -> list[str]:
    """The names that `build` knows, sorted."""
    return sorted(_BUILDERS)


def names_with_optimum() -> list[str]:
    """The names that `optimum` knows, sorted."""
    return sorted(_OPTIMA)


def describe(name: str) -> ZooEntry:
    """What `name` builds. Raises InputError for an unknown name."""
    _require_known("name", name, names())
    family, builder = _BUILDERS[name]
    summary = (builder.__doc__ or "").partition("\n")[0]
    settings = {parameter.name: parameter.default for parameter in signature(builder).parameters.values()}
    return ZooEntry(name, family, summary, settings)


def build(name: str, **settings: object) -> ModelProto:
    """The model `name` with seeded random weights: same settings, same bytes.

    Raises InputError for an unknown name or setting, and for a value that the setting does not admit.
    """
    _check_settings(name, settings)
    return _BUILDERS[name][1](**settings)


def optimum(name: str, **settings: object) -> ModelProto:
    """The best graph for `build(name, **settings)`: same inputs, outputs and function, same drawn weights.

    Raises InputError as `build` does, and for a model whose best graph is not known.
    """
    _check_settings(name, settings)
    _require_known("name with a known optimum", name, names_with_optimum())
    return _OPTIMA[name](**settings)


def _check_settings(name: str, settings: Mapping[str, object]) -> None:
    entry = describe(name)
    annotations = get_type_hints(_BUILDERS[name][1])
    for setting, value in settings.items():
        _require_known(f"setting of {name}", setting, sorted(entry.settings))
        least = 0 if setting == "seed" else 1
        if not _admits(annotations[setting], value, least):
            raise InputError(
                f"zoo: {name} cannot have {setting}={value!r}; give {_in_words(annotations[setting], least)}."
            )


def _require_known(kind: str, given: str, known: list[str]) -> None:
    if given not in known:
        raise InputError(f"zoo: no {kind} is {given!r}; choose from {', '.join(known)}.")


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
