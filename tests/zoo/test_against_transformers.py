"""Models of the zoo against the package transformers, whose implementations share nothing with ours."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from rlflow import zoo

Feeds = Mapping[str, np.ndarray]
Sizes = dict[str, Any]
BATCH, SEQUENCE, MEMORY, WORDS, HEADS = 3, 7, 5, 50, 4
LAYERS = {"layers": 2, "hidden": 32, "heads": HEADS, "intermediate": 80}
TEXT = {**LAYERS, "vocabulary": WORDS, "positions": 16, "batch": BATCH, "sequence": SEQUENCE}
T5 = {**TEXT, "positions": 160, "memory": MEMORY}
VIT = {**LAYERS, "patch": 8, "image": 24, "classes": 10, "batch": BATCH}
THEIR_LAYERS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": HEADS, "intermediate_size": 80}
MOBILE_BLOCKS = (1, 2, 3, 4, 3, 3, 1)
MOBILE_LAYERS = {"widen": "expand_1x1", "filter": "conv_3x3", "narrow": "reduce_1x1"}


def renamed(*pairs: tuple[str, str]) -> Callable[[str], str]:
    """Replace patterns one after the other, then separate by dots and call a gain a weight, as torch does."""

    def rename(name: str) -> str:
        for pattern, replacement in pairs:
            name = re.sub(pattern, replacement, name)
        return name.replace("/", ".").replace(".gain", ".weight")

    return rename


def normalised(*pairs: tuple[str, str], classifier: str) -> Callable[[str], str]:
    """Beside `renamed`, tell the convolution and the normalisation of a layer apart."""
    parts = {
        "weight": "convolution.weight",
        "gain": "normalization.weight",
        "shift": "normalization.bias",
        "mean": "normalization.running_mean",
        "variance": "normalization.running_var",
    }

    def rename(name: str) -> str:
        place, _, part = name.rpartition("/")
        if place.endswith("classifier"):
            return f"{classifier}.{part}"
        return f"{renamed(*pairs)(place)}.{parts[part]}"

    return rename


def mobile_block(found: re.Match[str]) -> str:
    """The blocks are counted through all stages there, and the first is part of the stem."""
    stage, block, layer = found.groups()
    index = sum(MOBILE_BLOCKS[: int(stage)]) + int(block)
    return f"{'conv_stem' if index == 0 else f'layer.{index - 1}'}.{MOBILE_LAYERS[layer]}"


@dataclass(frozen=True)
class Reference:
    """A class of the package with the configuration that corresponds to `sizes` of ours.

    Its matrices are (outputs, inputs), ours the transposed where `transposed` finds the name.
    """

    kind: str
    config: str
    settings: Mapping[str, Any]
    rename: Callable[[str], str]
    sizes: Mapping[str, Any]
    transposed: str = r"layer_\d+/.*weight"
    result: str = "logits"
    depth: int = 170
    """Operators on the longest path."""
    terms: int = 80
    """Numbers in the longest sum."""
    inputs: Mapping[str, str] = field(default_factory=lambda: {"image": "pixel_values"})
    """Our inputs that have another name there."""

    def answer(self, parameters: Feeds, feeds: Feeds, result: str) -> np.ndarray:
        import transformers

        model = getattr(transformers, self.kind)(getattr(transformers, self.config)(**self.settings)).eval()
        state = {
            self.rename(name): torch.tensor(values.T if re.search(self.transposed, name) else values)
            for name, values in parameters.items()
        }
        unknown = model.load_state_dict(state, strict=False)
        assert not unknown.unexpected_keys
        assert all(re.match(r"encoder\.|.*(num_batches_tracked|lm_head|embed_tokens|pooler)", n) for n in unknown[0])
        inputs = {self.inputs.get(name, name): torch.tensor(values) for name, values in feeds.items()}
        if "encoder_outputs" in inputs:
            inputs["encoder_outputs"] = (inputs["encoder_outputs"],)
        with torch.no_grad():
            return model(**inputs)[result].numpy()


def resnet(kind: str, depths: list[int], widths: list[int]) -> Reference:
    places = (r"^resnet\d+/stem", "resnet.embedder.embedder"), (r"^resnet\d+/stage_", "resnet.encoder.stages.")
    layers = (r"/block_(\d+)", r".layers.\1"), (r"conv_", "layer.")
    settings = {"layer_type": kind, "depths": depths, "hidden_sizes": widths, "embedding_size": 64, "num_labels": 1000}
    rename = normalised(*places, *layers, classifier="classifier.1")
    sizes = {"image": 33, "batch": "batch"}
    return Reference("ResNetForImageClassification", "ResNetConfig", settings, rename, sizes, terms=9 * 512)


REFERENCES = {
    "bert": Reference(
        "BertModel",
        "BertConfig",
        {**THEIR_LAYERS, "vocab_size": WORDS, "max_position_embeddings": 16, "attn_implementation": "eager"},
        renamed(
            (r"^bert/embeddings/(word|position|token_type)/", r"embeddings.\1_embeddings."),
            (r"^bert/(embeddings|pooler)", r"\1"),
            (r"^bert/layer_", "encoder.layer."),
            (r"attention/(query|key|value)", r"attention.self.\1"),
            (r"(intermediate|output|pooler)/", r"\1.dense."),
            (r"(?<!embeddings)/layer_norm", "/output/LayerNorm"),
            (r"layer_norm", "LayerNorm"),
        ),
        TEXT,
        result="last_hidden_state",
    ),
    "gpt2": Reference(
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": WORDS, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": HEADS, "n_inner": 80}
        | {"attn_implementation": "eager", "bos_token_id": 0, "eos_token_id": 0},
        renamed(
            (r"^gpt2/embeddings/word", "transformer.wte"),
            (r"^gpt2/embeddings/position", "transformer.wpe"),
            (r"^gpt2/layer_norm", "transformer.ln_f"),
            (r"^gpt2/layer_", "transformer.h."),
            (r"attention/layer_norm", "ln_1"),
            (r"layer_norm", "ln_2"),
            (r"attention/query_key_value", "attn.c_attn"),
            (r"attention/output", "attn.c_proj"),
            (r"intermediate", "mlp.c_fc"),
            (r"output", "mlp.c_proj"),
        ),
        TEXT,
        transposed="none",  # its Conv1D holds (inputs, outputs), as we do
    ),
    "t5_decoder": Reference(
        "T5ForConditionalGeneration",
        "T5Config",
        {"vocab_size": WORDS, "d_model": 32, "d_kv": 32 // HEADS, "d_ff": 80, "num_layers": 1, "num_heads": HEADS}
        | {"num_decoder_layers": 2, "use_cache": False},
        renamed(
            (r"^t5_decoder/embedding", "shared"),
            (r"^t5_decoder/position_bias", "decoder/block/0/layer/0/SelfAttention/relative_attention_bias"),
            (r"^t5_decoder/rms_norm", "decoder/final_layer_norm"),
            (r"^t5_decoder/layer_", "decoder.block."),
            (r"/attention/rms_norm", "/layer/0/layer_norm"),
            (r"/cross_attention/rms_norm", "/layer/1/layer_norm"),
            (r"/rms_norm", "/layer/2/layer_norm"),
            (r"/attention/(.)\w+", r"/layer/0/SelfAttention/\1"),
            (r"/cross_attention/(.)\w+", r"/layer/1/EncDecAttention/\1"),
            (r"/intermediate", "/layer/2/DenseReluDense/wi"),
            (r"/output", "/layer/2/DenseReluDense/wo"),
        ),
        T5,
        inputs={"input_ids": "decoder_input_ids", "encoder_hidden_states": "encoder_outputs"},
        terms=150,
    ),
    "vit": Reference(
        "ViTForImageClassification",
        "ViTConfig",
        {**THEIR_LAYERS, "image_size": 24, "patch_size": 8, "num_labels": 10, "layer_norm_eps": 1e-6}
        | {"attn_implementation": "eager"},
        renamed(
            (r"^vit/classifier", "classifier"),
            (r"/embeddings/class_token/weight", ".embeddings.cls_token"),
            (r"/embeddings/position/weight", ".embeddings.position_embeddings"),
            (r"/embeddings/patch", ".embeddings.patch_embeddings.projection"),
            (r"^vit/layer_norm", "vit.layernorm"),
            (r"/layer_(\d+)", r".layers.\1"),
            (r"attention/layer_norm", "layernorm_before"),
            (r"layer_norm", "layernorm_after"),
            (r"attention/(.)\w+", r"attention.\1_proj"),
            (r"intermediate", "mlp.fc1"),
            (r"output", "mlp.fc2"),
        ),
        VIT,
    ),
    "resnet18": resnet("basic", [2, 2, 2, 2], [64, 128, 256, 512]),
    "resnet50": resnet("bottleneck", [3, 4, 6, 3], [256, 512, 1024, 2048]),
    "mobilenet_v2": Reference(
        "MobileNetV2ForImageClassification",
        "MobileNetV2Config",
        {"num_labels": 1000, "tf_padding": False, "layer_norm_eps": 1e-5},
        normalised(
            (r"/stem", ".conv_stem.first_conv"),
            (r"/last", ".conv_1x1"),
            (r"stage_(\d+)/block_(\d+)/(\w+)", mobile_block),  # type: ignore[arg-type]
            classifier="classifier",
        ),
        {"image": 45, "batch": "batch"},
        terms=1280,
    ),
}
OPEN = {"batch": "batch", "sequence": "sequence"}
DECOMPOSED = {"layer_norm": "decomposed"}
CASES: Iterable[tuple[str, Sizes, str]] = [
    ("bert", {"opset": 21}, ""),
    ("bert", {**DECOMPOSED, "opset": 15, "head": "cls"}, "pooler_output"),
    ("bert", {**OPEN, "head": "cls", "opset": 18}, "pooler_output"),
    ("bert", {**OPEN, "attention_mask": False}, ""),
    ("gpt2", {"opset": 21}, ""),
    ("gpt2", {**OPEN, **DECOMPOSED}, ""),
    ("t5_decoder", {"sequence": 150}, ""),  # distances in every bucket, the last one included
    ("t5_decoder", {**OPEN, "memory": "memory", "opset": 21}, ""),
    ("vit", {"opset": 21}, ""),
    ("vit", {**DECOMPOSED, "batch": "batch"}, ""),
    ("resnet18", {}, ""),
    ("resnet50", {}, ""),
    ("resnet50", {"image": 64}, ""),
    ("mobilenet_v2", {}, ""),
    ("mobilenet_v2", {"image": 64}, ""),
]


def drawn(name: str, lengths: Mapping[str, int]) -> np.ndarray:
    """An input; the mask hides a different tail of each row but the first."""
    rng = np.random.default_rng(0)
    shape = (lengths["batch"], lengths["sequence"])
    match name:
        case "image":
            return rng.standard_normal((lengths["batch"], 3, lengths["image"], lengths["image"]), dtype=np.float32)
        case "encoder_hidden_states":
            return rng.standard_normal((lengths["batch"], lengths["memory"], 32), dtype=np.float32)
        case "attention_mask":
            seen = np.maximum(shape[1] - 2 * np.arange(shape[0]), 1)
            return (np.arange(shape[1]) < seen[:, None]).astype(np.int64)
    return rng.integers(0, 2 if name == "token_type_ids" else WORDS, shape)


def lengths_of(settings: Mapping[str, Any]) -> Iterable[dict[str, int]]:
    """The sizes to run at: an open dimension has two, the others that which the model is built for."""
    usual = {"batch": BATCH, "sequence": SEQUENCE, "memory": MEMORY, "image": 0}
    usual |= {key: value for key, value in settings.items() if key in usual and isinstance(value, int)}
    open_ones = [key for key in usual if isinstance(settings.get(key), str)]
    return [usual, {**usual, **{key: 1 if key == "batch" else 16 for key in open_ones}}]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes", "result"), CASES)
def test_equals_transformers(name, changes, result, run, parameters, assert_close):
    reference = REFERENCES[name]
    settings = {**reference.sizes, **changes}
    model = zoo.build(name, **settings)
    weights = parameters(model)
    for lengths in lengths_of(settings):
        feeds = {value.name: drawn(value.name, lengths) for value in model.graph.input}
        (actual,) = run(model, feeds).values()
        expected = reference.answer(weights, feeds, result or reference.result)
        assert_close(actual, expected, depth=reference.depth, terms=reference.terms)


def test_the_mask_is_heeded_on_both_sides(run, parameters, assert_differs):
    """So the cases above tell a model that ignores it: without a mask the answer differs."""
    model = zoo.build("bert", **TEXT)
    feeds = {value.name: drawn(value.name, {"batch": BATCH, "sequence": SEQUENCE}) for value in model.graph.input}
    seen = {**feeds, "attention_mask": np.ones_like(feeds["attention_mask"])}
    expected = REFERENCES["bert"].answer(parameters(model), seen, "last_hidden_state")
    assert_differs(run(model, feeds)["last_hidden_state"], expected, depth=170, terms=80)
