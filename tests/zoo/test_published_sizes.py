"""The default sizes: what the documentation says, and what is published where something is."""

import re
from collections.abc import Callable
from math import prod

import onnx
import pytest

from rlflow import zoo
from rlflow.zoo.builder import CONSTANTS
from rlflow.zoo.dalle import dalle
from rlflow.zoo.gpt2 import gpt2
from rlflow.zoo.mobilenet import mobilenet_v2
from rlflow.zoo.mobilenet_v3 import mobilenet_v3
from rlflow.zoo.nasnet import nasnet_a
from rlflow.zoo.nasrnn import nasrnn
from rlflow.zoo.resnext import resnext50
from rlflow.zoo.t5 import t5_decoder
from rlflow.zoo.transducer import transformer_transducer
from rlflow.zoo.vgg import vgg19
from rlflow.zoo.yolo import yolo_v5

Widths = dict[str, int]
WIDTHS: dict[Callable[..., onnx.ModelProto], tuple[Widths, int]] = {
    dalle: ({"hidden": 8, "intermediate": 32}, 64),
    gpt2: ({"hidden": 12, "intermediate": 48}, 64),
    mobilenet_v2: ({"width": 1}, 8),
    mobilenet_v3: ({"width": 1}, 8),
    nasnet_a: ({"width": 4}, 11),
    nasrnn: ({"hidden": 8}, 64),
    resnext50: ({"width": 16}, 4),
    t5_decoder: ({"hidden": 8, "intermediate": 32}, 64),
    transformer_transducer: ({"hidden": 8, "intermediate": 32}, 64),
    vgg19: ({"width": 1, "hidden": 64}, 64),
    yolo_v5: ({"width": 2}, 8),
}
"""The settings that say how wide a model is, at their narrowest, and how many times as wide it is by default."""
T5_SMALL_ENCODER = 6 * (4 * 512**2 + 2 * 512 * 2048 + 2 * 512) + 32 * 8 + 512
PUBLISHED = {
    gpt2: 124_439_808,  # transformers' gpt2
    mobilenet_v2: 3_504_872,  # torchvision
    mobilenet_v3: 2_542_856,  # torchvision's mobilenet_v3_small
    nasnet_a: 5_289_978,  # Keras' NASNetMobile, of 5,326,716 with running statistics
    nasrnn: 8 * 2 * 512**2,
    resnext50: 25_028_904,  # torchvision's resnext50_32x4d
    t5_decoder: 60_506_624 - T5_SMALL_ENCODER,  # transformers' t5-small
    vgg19: 143_667_240,  # torchvision
    yolo_v5: 1_872_157,  # ultralytics' yolov5n
}


def documented(builder: Callable[..., onnx.ModelProto]) -> tuple[int, int]:
    found = re.search(r"([\d,]+)\s+nodes\s+and\s+([\d,]+)\s+parameters", builder.__doc__ or "")
    assert found, "the docstring says how large the model is by default"
    nodes, parameters = (int(number.replace(",", "")) for number in found.groups())
    return nodes, parameters


def count(model: onnx.ModelProto) -> int:
    """Numbers in parameters; running statistics are not counted."""
    apart = ("/mean", "/variance")
    tensors = [t for t in model.graph.initializer if not t.name.startswith(CONSTANTS) and not t.name.endswith(apart)]
    return sum(prod(tensor.dims) for tensor in tensors)


@pytest.mark.parametrize("builder", WIDTHS, ids=lambda builder: builder.__name__)
def test_sizes_are_those_of_the_documentation_and_the_publication(builder):
    """Without building it that large: the number of parameters is a polynomial of degree two in the width, which three
    narrow models fix. The number of nodes does not depend on the width.
    """
    narrow, factor = WIDTHS[builder]
    defaults = zoo.describe(builder.__name__).settings
    assert {name: factor * value for name, value in narrow.items()} == {name: defaults[name] for name in narrow}
    models = [builder(**{name: times * value for name, value in narrow.items()}) for times in (1, 2, 3)]
    first, second, third = map(count, models)
    at_default = first + (factor - 1) * (second - first)
    at_default += (factor - 1) * (factor - 2) // 2 * (third - 2 * second + first)
    assert (len(models[0].graph.node), at_default) == documented(builder)
    assert PUBLISHED.get(builder, at_default) == at_default


def test_every_other_model_has_its_size_tested_elsewhere():
    """A new entry needs a line here or in the tests of the paper's models."""
    elsewhere = {"bert", "conv", "inception_v3", "loop", "mlp", "resnet18", "resnet50", "squeezenet1_1", "vit"}
    tiny = set(zoo.names_with_optimum())
    assert {builder.__name__ for builder in WIDTHS} == set(zoo.names()) - elsewhere - tiny
