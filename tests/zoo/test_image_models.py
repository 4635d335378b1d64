"""The image models: published sizes of the paper's Table 1, living parameters, and what users do with them."""

from collections.abc import Iterable

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from rlflow import zoo
from rlflow.onnx_io import from_onnx, to_onnx

pytestmark = pytest.mark.slow

PARAMETERS = {
    "inception_v3": 23_834_568,
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "squeezenet1_1": 1_235_496,
    "vit": 86_567_656,
}
"""As torchvision states them, InceptionV3 without its auxiliary classifier; running statistics are not counted."""
CONVOLUTIONS = {"inception_v3": 94, "resnet18": 20, "resnet50": 53, "squeezenet1_1": 26, "vit": 1}
SMALL = {
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
DEPTH, TERMS = 160, 300
"""More operators in a row, and terms in a sum, than any of the small models has."""


def draw_image(model: onnx.ModelProto, batch: int = 1) -> np.ndarray:
    size = model.graph.input[0].type.tensor_type.shape.dim[-1].dim_value
    return np.random.default_rng(0).standard_normal((batch, 3, size, size), dtype=np.float32)


def side_by_side(outputs: Iterable[np.ndarray]) -> np.ndarray:
    """All that is said of each image, in one row: (batch, numbers)."""
    return np.concatenate([output.reshape(len(output), -1) for output in outputs], axis=1)


@pytest.mark.parametrize("name", PARAMETERS)
def test_size_is_the_published_one(name, parameters):
    model = zoo.build(name)
    values = parameters(model)
    running = [key for key in values if key.endswith(("/mean", "/variance"))]
    assert sum(values[key].size for key in values if key not in running) == PARAMETERS[name]
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("Conv") == CONVOLUTIONS[name]
    assert operators.count("BatchNormalization") == len(running) // 2
    assert {value.name for value in (*model.graph.input, *model.graph.output)} == {"image", "logits"}


@pytest.mark.parametrize("name", SMALL)
def test_every_parameter_but_the_key_biases_matters(name, parameters, assert_close, assert_differs):
    """Reversing any parameter moves the outputs by far more than rounding; softmax takes the key biases out."""
    model = zoo.build(name, **SMALL[name], classes=10)
    image, values = draw_image(model), parameters(model)
    for key, array in values.items():  # an initialiser that is an input as well can be fed: one session serves all
        model.graph.input.append(onnx.helper.make_tensor_value_info(key, onnx.TensorProto.FLOAT, array.shape))
    session = session_of(model, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    expected = side_by_side(session.run(None, {"image": image}))
    for key, array in values.items():
        actual = side_by_side(session.run(None, {"image": image, key: np.flip(array).copy()}))
        check = assert_close if key.endswith("key/bias") else assert_differs
        check(actual, expected, depth=DEPTH, terms=TERMS)


@pytest.mark.parametrize("name", SMALL)
def test_activations_neither_vanish_nor_explode(name, run):
    """Nor do the outputs forget the image: deep nets with random weights can give all images the same."""
    model = onnx.shape_inference.infer_shapes(zoo.build(name, **SMALL[name], batch=4))
    inner = [node.output[0] for node in model.graph.node if node.op_type in ("Conv", "Add", "Concat", "MatMul")]
    results = [value.name for value in model.graph.output]
    model.graph.output.extend(value for value in model.graph.value_info if value.name in inner)
    values = run(model, {"image": draw_image(model, batch=4)})
    assert len(values) > 15
    for key, activation in values.items():
        assert 0.05 < activation.std() < 50, key
    outputs = side_by_side(values[name] for name in results)
    assert outputs.std(axis=0).mean() > 0.01 * outputs.std()


@pytest.mark.parametrize("name", SMALL)
def test_symbolic_batch_serves_every_size(name, run, assert_close):
    """One image gives the same alone and in company."""
    model = zoo.build(name, **SMALL[name], batch="batch")
    images = draw_image(model, batch=3)
    together = side_by_side(run(model, {"image": images}).values())
    alone = side_by_side(run(model, {"image": images[1:2]}).values())
    assert_close(alone, together[1:2], depth=DEPTH, terms=TERMS)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in PARAMETERS])
def test_full_size_runs_optimised_and_survives_import_and_export(name, assert_close):
    model = zoo.build(name)
    onnx.checker.check_model(model, full_check=True)
    image = draw_image(model)
    written = session_of(model, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    (expected,) = written.run(None, {"image": image})
    (optimised,) = session_of(model, ort.GraphOptimizationLevel.ORT_ENABLE_ALL).run(None, {"image": image})
    assert_close(optimised, expected, depth=24 * 12, terms=3072)
    returned = session_of(to_onnx(from_onnx(model)), ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    (actual,) = returned.run(None, {"image": image})
    np.testing.assert_array_equal(actual, expected)


def session_of(model: onnx.ModelProto, level: ort.GraphOptimizationLevel) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
