"""The Vision Transformer of the zoo against transformers' ViTForImageClassification."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import onnx
import pytest
import torch

from rlflow import zoo
from rlflow.errors import InputError

SMALL = {
    "layers": 2,
    "hidden": 32,
    "heads": 4,
    "intermediate": 80,
    "patch": 8,
    "image": 24,
    "classes": 10,
}
BASE = {
    "layers": 12,
    "hidden": 768,
    "heads": 12,
    "intermediate": 3072,
    "patch": 16,
    "image": 224,
    "classes": 1000,
}
BATCH = 3


def depth_of(sizes: Mapping[str, int]) -> int:
    """Operators on the longest path, decomposed LayerNormalization counted as one."""
    return 24 * sizes["layers"] + 8


LAYER_NAMES = {
    "attention/query": "attention.q_proj",
    "attention/key": "attention.k_proj",
    "attention/value": "attention.v_proj",
    "attention/output": "attention.o_proj",
    "attention/layer_norm": "layernorm_before",
    "layer_norm": "layernorm_after",
    "intermediate": "mlp.fc1",
    "output": "mlp.fc2",
}


def reference_state(parameters: Mapping[str, np.ndarray], layers: int) -> dict[str, torch.Tensor]:
    """The same parameters under transformers' names; its Linear holds (outputs, inputs)."""
    names = {
        "vit/embeddings/patch": "vit.embeddings.patch_embeddings.projection",
        "vit/layer_norm": "vit.layernorm",
        "vit/classifier": "classifier",
    }
    for layer in range(layers):
        for ours, theirs in LAYER_NAMES.items():
            names[f"vit/layer_{layer}/{ours}"] = f"vit.layers.{layer}.{theirs}"
    state = {
        "vit.embeddings.cls_token": parameters["vit/embeddings/class_token/weight"],
        "vit.embeddings.position_embeddings": parameters["vit/embeddings/position/weight"],
    }
    for ours, theirs in names.items():
        gain = f"{ours}/gain" in parameters
        weight = parameters[f"{ours}/gain" if gain else f"{ours}/weight"]
        state[f"{theirs}.weight"] = weight.T if weight.ndim == 2 and theirs != "classifier" else weight
        state[f"{theirs}.bias"] = parameters[f"{ours}/bias"]
    return {name: torch.tensor(values) for name, values in state.items()}


def reference(parameters: Mapping[str, np.ndarray], image: np.ndarray, sizes: Mapping[str, int]) -> np.ndarray:
    from transformers import ViTConfig, ViTForImageClassification  # seconds, which only the slow tests pay

    config = ViTConfig(
        hidden_size=sizes["hidden"],
        num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"],
        intermediate_size=sizes["intermediate"],
        image_size=sizes["image"],
        patch_size=sizes["patch"],
        num_labels=sizes["classes"],
        hidden_act="gelu",
        layer_norm_eps=1e-6,
        attn_implementation="eager",
    )
    model = ViTForImageClassification(config).eval()
    state = reference_state(parameters, sizes["layers"])
    assert state.keys() == model.state_dict().keys()
    model.load_state_dict(state)
    with torch.no_grad():
        return model(torch.tensor(image)).logits.numpy()


def draw_image(size: int, batch: int = BATCH) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((batch, 3, size, size), dtype=np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("opset", [17, 18, 21])
@pytest.mark.parametrize("layer_norm", ["fused", "decomposed"])
@pytest.mark.parametrize("batch", [BATCH, "batch"])
def test_equals_transformers(batch, layer_norm, opset, run, parameters, assert_close):
    model = zoo.build("vit", **SMALL, batch=batch, layer_norm=layer_norm, opset=opset)
    image = draw_image(SMALL["image"])
    expected = reference(parameters(model), image, SMALL)
    assert_close(run(model, {"image": image})["logits"], expected, depth=depth_of(SMALL), terms=SMALL["intermediate"])


@pytest.mark.slow
def test_base_equals_transformers(run, parameters, assert_close):
    model = zoo.build("vit")
    image = draw_image(224, batch=1)
    expected = reference(parameters(model), image, BASE)
    assert_close(run(model, {"image": image})["logits"], expected, depth=depth_of(BASE), terms=BASE["intermediate"])


@pytest.mark.parametrize("batch", [1, BATCH, "batch"])
def test_shapes_are_known_throughout(batch):
    model = zoo.build("vit", **SMALL, batch=batch)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    shapes = {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in inferred.graph.value_info
    }
    assert shapes["vit/layer_1/attention/scores/Softmax"] == [batch, 4, 10, 10]
    assert all(all(shape) for shape in shapes.values())


def test_attention_is_neither_uniform_nor_a_copy(run):
    model = zoo.build("vit", **SMALL)
    probabilities = "vit/layer_1/attention/scores/Softmax"
    model.graph.output.append(onnx.helper.make_tensor_value_info(probabilities, onnx.TensorProto.FLOAT, None))
    attention = run(model, {"image": draw_image(24, batch=1)})[probabilities]
    assert attention.max() > 1.2 / attention.shape[-1]
    assert attention.max() < 0.9


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"image": 25}, "vit: image=25 is not a multiple of patch=8"),
        ({"hidden": 30}, "vit: hidden=30 is not a multiple of heads=4"),
        ({"opset": 16}, "vit: LayerNormalization does not exist at opset 16"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        zoo.build("vit", **{**SMALL, **settings})


LAYER = Counter(Add=9, MatMul=8, Reshape=4, Transpose=4, Div=2, Mul=2, LayerNormalization=2, Softmax=1, Erf=1)


def test_operators_are_those_of_bert_layers_around_an_image():
    operators = Counter(node.op_type for node in zoo.build("vit", **SMALL).graph.node)
    around = Counter(Conv=1, Reshape=1, Transpose=1, Concat=1, Add=1, LayerNormalization=1, Gather=1, Gemm=1)
    assert operators == Counter({name: SMALL["layers"] * count for name, count in LAYER.items()}) + around
