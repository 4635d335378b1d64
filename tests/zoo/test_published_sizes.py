"""The default sizes: those of the documentation, and of publications where there are some."""

import re
from math import prod
from typing import NamedTuple

import numpy as np
import onnx
import pytest

from rlflow import zoo
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.runtime.inputs import draw_inputs
from rlflow.zoo.builder import CONSTANTS
from rlflow.zoo.registry import BUILDERS

Widths = dict[str, int]
ENCODER = {"hidden": 12, "intermediate": 48}
T5_SMALL_ENCODER = 6 * (4 * 512**2 + 2 * 512 * 2048 + 2 * 512) + 32 * 8 + 512


class Fact(NamedTuple):
    """The settings that say how wide a model is, at their narrowest, and how many times as wide it is by default.

    Published are the number of parameters, that of multiplications for one image or a text of the default length, in
    millions, and of convolutions; 0 where nobody has published it.
    """

    widths: Widths
    factor: int
    parameters: int = 0
    multiplications: float = 0
    convolutions: int = 0


FACTS = {
    "bert": Fact(ENCODER, 64, 109_482_240 - 768 * 769),  # transformers' bert-base-uncased without its pooler
    "dalle": Fact({"hidden": 8, "intermediate": 32}, 64),
    "gpt2": Fact(ENCODER, 64, 124_439_808),  # transformers' gpt2
    "inception_v3": Fact({"width": 1}, 16, 23_834_568, 5713.2, 94),  # torchvision's without the auxiliary classifier
    "mobilenet_v2": Fact({"width": 1}, 8, 3_504_872, 300.8, 52),  # torchvision
    "mobilenet_v3": Fact({"width": 1}, 8, 2_542_856, 56.5),  # torchvision's mobilenet_v3_small
    "nasnet_a": Fact({"width": 4}, 11, 5_289_978, 563.6),  # Keras' NASNetMobile without running statistics; the paper
    "nasrnn": Fact({"hidden": 8}, 64, 8 * 2 * 512**2),
    "resnet18": Fact({"width": 1}, 64, 11_689_512, 1814.1, 20),  # torchvision
    "resnet50": Fact({"width": 1}, 64, 25_557_032, 4089.2, 53),  # torchvision
    "resnext50": Fact({"width": 16}, 4, 25_028_904, 4230.5, 53),  # torchvision's resnext50_32x4d
    "squeezenet1_1": Fact({"width": 1}, 16, 1_235_496, 349.2, 26),  # torchvision
    "t5_decoder": Fact({"hidden": 8, "intermediate": 32}, 64, 60_506_624 - T5_SMALL_ENCODER),  # transformers' t5-small
    "transformer_transducer": Fact({"hidden": 8, "intermediate": 32}, 64),
    "vgg19": Fact({"width": 1, "hidden": 64}, 64, 143_667_240, 19632.1, 16),  # torchvision
    "vit": Fact(ENCODER, 64, 86_567_656, 17563.8, 1),  # torchvision's vit_b_16
    "yolo_v5": Fact({"width": 2}, 8, 1_872_157, 2234.1, 60),  # ultralytics' yolov5n: 4.5 billion operations
}
PAPER = ["inception_v3", "resnet18", "resnet50", "squeezenet1_1", "vit"]
"""Models of the paper's Table 1."""


def parameters(model: onnx.ModelProto) -> int:
    """Numbers in parameters; running statistics are not counted."""
    apart = ("/mean", "/variance")
    tensors = [t for t in model.graph.initializer if not t.name.startswith(CONSTANTS) and not t.name.endswith(apart)]
    return sum(prod(tensor.dims) for tensor in tensors)


def multiplications(model: onnx.ModelProto) -> int:
    """Those of convolutions and matrix products."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.output, *graph.value_info):
        shapes[value.name] = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
    total = 0
    for node in graph.node:
        if node.op_type == "Conv":
            total += prod(shapes[node.output[0]]) * prod(shapes[node.input[1]][1:])
        elif node.op_type in ("MatMul", "Gemm"):
            total += prod(shapes[node.output[0]]) * shapes[node.input[0]][-1]
    return total


def at_default(narrow: list[int], factor: int) -> int:
    """Both numbers are polynomials of degree two in the width, which three narrow models fix."""
    first, second, third = narrow
    return first + (factor - 1) * (second - first) + (factor - 1) * (factor - 2) // 2 * (third - 2 * second + first)


@pytest.mark.parametrize("name", FACTS)
def test_sizes_are_those_of_the_documentation_and_the_publication(name):
    """Without building it that large. The number of nodes does not depend on the width."""
    fact = FACTS[name]
    defaults = zoo.describe(name).settings
    assert {key: fact.factor * value for key, value in fact.widths.items()} == {
        key: defaults[key] for key in fact.widths
    }
    models = [zoo.build(name, **{key: times * value for key, value in fact.widths.items()}) for times in (1, 2, 3)]
    found = at_default([parameters(model) for model in models], fact.factor)
    operators = [node.op_type for node in models[0].graph.node]
    if fact.parameters:
        assert found == fact.parameters
    if fact.multiplications:
        computed = at_default([multiplications(model) for model in models], fact.factor)
        assert computed / 1e6 == pytest.approx(fact.multiplications, abs=0.05)
    if fact.convolutions:
        assert operators.count("Conv") == fact.convolutions
    told = re.search(r"([\d,]+)\s+nodes\s+and\s+([\d,]+)\s+parameters", BUILDERS.get(name).__doc__ or "")
    if told:
        assert (len(operators), found) == tuple(int(number.replace(",", "")) for number in told.groups())


def test_every_other_model_is_small_by_default():
    """A new entry needs a line in the table."""
    assert set(zoo.names()) - set(FACTS) == {"conv", "loop", "mlp", *zoo.names_with_optimum()}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PAPER)
def test_full_size_runs_optimised_and_survives_import_and_export(name, run, assert_close):
    model = zoo.build(name)
    feeds = draw_inputs(model, np.random.default_rng(0))
    (expected,) = run(model, feeds).values()
    (optimised,) = run.session(model, optimised=True).run(None, feeds)
    assert_close(optimised, expected, depth=24 * 12, terms=3072)
    (actual,) = run(to_onnx(from_onnx(model)), feeds).values()
    np.testing.assert_array_equal(actual, expected)
