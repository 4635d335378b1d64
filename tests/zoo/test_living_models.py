"""No model of the zoo has dead parts: a rewriter that leaves one out, or mixes two up, changes what it computes."""

from collections.abc import Iterable

import numpy as np
import onnx
import pytest
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.runtime.inputs import draw_inputs

DEPTH, TERMS = 160, 300
"""More operators in a row, and terms in a sum, than any of these models has."""
WIDER = {
    "conv": {"channels": 4, "image": 8},
    "inception_v3": {"width": 2, "image": 75},
    "mobilenet_v2": {"width": 2, "image": 40},
    "mobilenet_v3": {"width": 8, "image": 40},
    "nasnet_a": {"width": 16, "cells": 1, "image": 40},
    "resnet18": {"width": 4, "image": 40},
    "resnet50": {"width": 4, "image": 40},
    "resnext50": {"width": 4, "groups": 2, "image": 40},
    "squeezenet1_1": {"width": 4, "image": 24},
    "vgg19": {"width": 4, "hidden": 32, "image": 40},
    "vit": {"layers": 2, "hidden": 32, "heads": 4, "intermediate": 80, "patch": 8, "image": 24},
    "yolo_v5": {"width": 8, "image": 64},
}
"""Wide enough that signals live through all layers."""
SETTINGS = {name: {**SMALL[name], **WIDER.get(name, {})} for name in zoo.names()}
IMAGES = [name for name in WIDER if name != "conv"]
DECODERS = ["dalle", "gpt2", "t5_decoder", "transformer_transducer"]
BATCHED = sorted(set(zoo.names()) - set(zoo.names_with_optimum()) - {"loop"})
HEADS = [("bert", "cls"), *((name, "last") for name in DECODERS)]


def drawn(model: onnx.ModelProto, **dimensions: int) -> dict[str, np.ndarray]:
    return draw_inputs(model, np.random.default_rng(0), dimensions)


def side_by_side(outputs: Iterable[np.ndarray]) -> np.ndarray:
    """All that is said of each image, in one row: (batch, numbers)."""
    return np.concatenate([output.reshape(len(output), -1) for output in outputs], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "changes"),
    [*((name, {}) for name in zoo.names()), *((name, {"head": head}) for name, head in HEADS)],
)
def test_every_parameter_but_the_key_biases_matters(name, changes, run, parameters, assert_close, assert_differs):
    """Reversing a parameter moves an output by far more than rounding.

    The key bias b is the exception that theory demands: q (k + b) = q k + q b, and q b is the same for all keys of a
    row, so softmax removes it.
    """
    model = zoo.build(name, **SETTINGS[name], **changes)
    feeds, values = drawn(model), parameters(model)
    for key, array in values.items():  # an initialiser that is an input as well can be fed: one session serves all
        model.graph.input.append(onnx.helper.make_tensor_value_info(key, onnx.TensorProto.FLOAT, array.shape))
    session = run.session(model)
    expected = session.run(None, feeds)
    for key, array in values.items():
        actual = session.run(None, {**feeds, key: np.flip(array).copy()})
        moved = max(range(len(expected)), key=lambda k: np.abs(actual[k] - expected[k]).max())
        check = assert_close if key.endswith("key/bias") else assert_differs
        check(actual[moved], expected[moved], depth=DEPTH, terms=TERMS)


@pytest.mark.parametrize("name", IMAGES)
def test_activations_neither_vanish_nor_explode(name, run):
    """Nor do the outputs forget the image: deep nets with random weights can give all images the same."""
    model = onnx.shape_inference.infer_shapes(zoo.build(name, **SETTINGS[name], batch=4))
    inner = [node.output[0] for node in model.graph.node if node.op_type in ("Conv", "Add", "Concat", "MatMul")]
    results = [value.name for value in model.graph.output]
    model.graph.output.extend(value for value in model.graph.value_info if value.name in inner)
    values = run(model, drawn(model))
    assert len(values) > 15
    for key, activation in values.items():
        assert 0.05 < activation.std() < 50, key
    outputs = side_by_side(values[name] for name in results)
    assert outputs.std(axis=0).mean() > 0.01 * outputs.std()


@pytest.mark.parametrize("name", ["bert", "vit", *DECODERS])
def test_attention_is_neither_uniform_nor_a_copy(name, run):
    """At the widths of the published heads, where a token that sees all others looks at some more than at others."""
    model = zoo.build(name, **{**SETTINGS[name], "hidden": 128, "intermediate": 128, "heads": 2})
    names = [node.output[0] for node in model.graph.node if node.op_type == "Softmax"]
    model.graph.output.extend(onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in names)
    values = run(model, drawn(model))
    assert len(names) >= 1
    for softmax in names:
        attention = values[softmax][0, :, -1]
        attention = attention[:, attention.max(axis=0) > 0]
        assert attention.max() > 1.1 / attention.shape[-1], softmax
        assert attention.max() < 0.97, softmax


@pytest.mark.parametrize("name", BATCHED)
def test_an_open_batch_serves_every_size(name, run, assert_close):
    """One element gives the same alone and in company, and import and export keep that bit for bit.

    But for the transducer: the import folds products of constants, whose last digits are not those of every kernel.
    """
    model = zoo.build(name, **SETTINGS[name], batch="batch")
    axes = {
        value.name: [d.dim_param for d in value.type.tensor_type.shape.dim].index("batch")
        for value in (*model.graph.input, *model.graph.output)
    }
    feeds = drawn(model, batch=3)
    alone = {key: np.take(values, [1], axis=axes[key]) for key, values in feeds.items()}
    returned = to_onnx(from_onnx(model))
    for key, values in run(model, feeds).items():
        expected = np.take(values, [1], axis=axes[key])
        assert_close(run(model, alone)[key], expected, depth=DEPTH, terms=TERMS)
        again = run(returned, feeds)[key]
        assert_close(again, values, depth=DEPTH, terms=TERMS)
        assert name == "transformer_transducer" or np.array_equal(again, values)


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5_decoder"])
def test_an_open_sequence_survives_import_and_export(name, run):
    """Bit by bit, at another length than any that is written down."""
    model = zoo.build(name, **{**SMALL[name], "batch": "batch", "sequence": "sequence"})
    feeds = drawn(model, batch=2, sequence=11)
    for key, values in run(model, feeds).items():
        assert values.shape[:2] == (2, 11)
        np.testing.assert_array_equal(run(to_onnx(from_onnx(model)), feeds)[key], values)
