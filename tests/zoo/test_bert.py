"""BERT of the zoo against transformers' BertModel, an implementation that shares nothing with ours."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import onnx
import pytest
import torch

from rlflow import zoo
from rlflow.errors import InputError

SIZES = {"layers": 2, "hidden": 32, "heads": 4, "intermediate": 80, "vocabulary": 50, "positions": 16}
SEQUENCE = 7
BATCH = 3
DEPTH = 2 * 24
"""Operators on the longest path through two layers, decomposed LayerNorm counted as one."""
TERMS = SIZES["intermediate"]


def small_bert(**settings: object) -> onnx.ModelProto:
    return zoo.build("bert", **{**SIZES, "sequence": SEQUENCE, "batch": BATCH, **settings})


def draw_feeds(batch: int = BATCH, sequence: int = SEQUENCE, seed: int = 0) -> dict[str, np.ndarray]:
    """Token ids, both token types, and a mask that hides a different tail of each row but the first."""
    rng = np.random.default_rng(seed)
    lengths = np.maximum(sequence - 2 * np.arange(batch), 1)
    return {
        "input_ids": rng.integers(0, SIZES["vocabulary"], (batch, sequence)),
        "token_type_ids": rng.integers(0, 2, (batch, sequence)),
        "attention_mask": (np.arange(sequence) < lengths[:, None]).astype(np.int64),
    }


LINEAR_NAMES = {
    "attention/query": "attention.self.query",
    "attention/key": "attention.self.key",
    "attention/value": "attention.self.value",
    "attention/output": "attention.output.dense",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
}
NORM_NAMES = {"attention/layer_norm": "attention.output.LayerNorm", "layer_norm": "output.LayerNorm"}


def reference_state(parameters: Mapping[str, np.ndarray], layers: int) -> dict[str, torch.Tensor]:
    """The same parameters under transformers' names; its Linear holds (outputs, inputs)."""
    state = {
        f"embeddings.{theirs}_embeddings.weight": parameters[f"bert/embeddings/{ours}/weight"]
        for ours, theirs in {"word": "word", "position": "position", "token_type": "token_type"}.items()
    }
    norms = {"bert/embeddings/layer_norm": "embeddings.LayerNorm"}
    for layer in range(layers):
        for ours, theirs in LINEAR_NAMES.items():
            prefix = f"bert/layer_{layer}/{ours}"
            state[f"encoder.layer.{layer}.{theirs}.weight"] = parameters[f"{prefix}/weight"].T
            state[f"encoder.layer.{layer}.{theirs}.bias"] = parameters[f"{prefix}/bias"]
        for ours, theirs in NORM_NAMES.items():
            norms[f"bert/layer_{layer}/{ours}"] = f"encoder.layer.{layer}.{theirs}"
    for ours, theirs in norms.items():
        state[f"{theirs}.weight"] = parameters[f"{ours}/gain"]
        state[f"{theirs}.bias"] = parameters[f"{ours}/bias"]
    if "bert/pooler/weight" in parameters:
        state["pooler.dense.weight"] = parameters["bert/pooler/weight"]
        state["pooler.dense.bias"] = parameters["bert/pooler/bias"]
    return {name: torch.tensor(values) for name, values in state.items()}


def reference(
    parameters: Mapping[str, np.ndarray], feeds: Mapping[str, np.ndarray], head: str
) -> dict[str, np.ndarray]:
    from transformers import BertConfig, BertModel  # seconds, which only the slow tests pay

    config = BertConfig(
        vocab_size=SIZES["vocabulary"],
        hidden_size=SIZES["hidden"],
        num_hidden_layers=SIZES["layers"],
        num_attention_heads=SIZES["heads"],
        intermediate_size=SIZES["intermediate"],
        max_position_embeddings=SIZES["positions"],
        hidden_act="gelu",
        attn_implementation="eager",
    )
    model = BertModel(config, add_pooling_layer=head == "cls").eval()
    state = reference_state(parameters, SIZES["layers"])
    assert set(state) == {name for name, _ in model.named_parameters()}
    model.load_state_dict(state, strict=False)
    with torch.no_grad():
        outputs = model(**{name: torch.tensor(values) for name, values in feeds.items()})
    name = "pooler_output" if head == "cls" else "last_hidden_state"
    return {name: outputs[name].numpy()}


@pytest.mark.slow
@pytest.mark.parametrize("opset", [17, 18, 21])
@pytest.mark.parametrize("layer_norm", ["fused", "decomposed"])
@pytest.mark.parametrize("head", ["none", "cls"])
def test_equals_transformers(head, layer_norm, opset, run, parameters, assert_close):
    model = small_bert(head=head, layer_norm=layer_norm, opset=opset)
    feeds = draw_feeds()
    actual = run(model, feeds)
    expected = reference(parameters(model), feeds, head)
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        assert_close(actual[name], values, depth=DEPTH, terms=TERMS)


@pytest.mark.slow
def test_without_a_mask_every_token_is_visible(run, parameters, assert_close):
    model = small_bert(attention_mask=False)
    feeds = draw_feeds()
    visible = {**feeds, "attention_mask": np.ones_like(feeds["attention_mask"])}
    del feeds["attention_mask"]
    expected = reference(parameters(model), visible, "none")
    assert [i.name for i in model.graph.input] == list(feeds)
    assert_close(run(model, feeds)["last_hidden_state"], expected["last_hidden_state"], depth=DEPTH, terms=TERMS)


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [{"batch": "batch"}, {"sequence": "sequence"}, {"batch": "b", "sequence": "s"}])
@pytest.mark.parametrize("head", ["none", "cls"])
def test_symbolic_dimensions_serve_every_size(dynamic, head, run, parameters, assert_close):
    model = small_bert(head=head, **dynamic)
    for batch in {BATCH, *([1, 4] if "batch" in dynamic else [])}:
        for sequence in {SEQUENCE, *([1, SIZES["positions"]] if "sequence" in dynamic else [])}:
            feeds = draw_feeds(batch, sequence)
            for name, values in reference(parameters(model), feeds, head).items():
                assert_close(run(model, feeds)[name], values, depth=DEPTH, terms=TERMS)


def dimensions(value: onnx.ValueInfoProto) -> list[str | int]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def test_symbols_survive_shape_inference():
    model = small_bert(batch="batch", sequence="sequence")
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    shapes = {value.name: dimensions(value) for value in inferred.graph.value_info}
    assert shapes["bert/layer_1/attention/scores/Softmax"] == ["batch", 4, "sequence", "sequence"]
    assert all(all(shape) for shape in shapes.values())


def test_hidden_tokens_do_not_reach_visible_ones_and_visible_ones_do(run, assert_close, assert_differs):
    """The mask is alive in both directions: a mask that hides everything passes the first half alone."""
    model = small_bert()
    feeds = draw_feeds()
    expected = run(model, feeds)["last_hidden_state"]
    hidden_row, hidden_token = np.argwhere(feeds["attention_mask"] == 0)[0]
    other = {name: values.copy() for name, values in feeds.items()}
    other["input_ids"][hidden_row, hidden_token] = (feeds["input_ids"][hidden_row, hidden_token] + 1) % 50
    visible = feeds["attention_mask"] == 1
    assert_close(run(model, other)["last_hidden_state"][visible], expected[visible], depth=1, terms=1)
    other["attention_mask"][hidden_row, hidden_token] = 1
    assert_differs(run(model, other)["last_hidden_state"][visible], expected[visible], depth=DEPTH, terms=TERMS)


@pytest.mark.parametrize("layer_norm", ["fused", "decomposed"])
@pytest.mark.parametrize("head", ["none", "cls"])
def test_every_parameter_but_the_key_bias_matters(
    head, layer_norm, run, parameters, reorder, assert_differs, assert_close
):
    """Reversing any parameter moves the output by far more than rounding.

    The key bias b is the exception that theory demands: q (k + b) = q k + q b, and q b is the same for all
    keys of a row, so softmax removes it.
    """
    model = small_bert(head=head, layer_norm=layer_norm)
    feeds = draw_feeds()
    (expected,) = run(model, feeds).values()
    names = parameters(model)
    assert len(names) == 3 + 2 + SIZES["layers"] * (6 * 2 + 2 * 2) + (2 if head == "cls" else 0)
    for name in names:
        (actual,) = run(reorder(model, name), feeds).values()
        check = assert_close if name.endswith("key/bias") else assert_differs
        check(actual, expected, depth=DEPTH, terms=TERMS)


def test_no_parameter_is_degenerate(parameters):
    """Nothing zero, nothing equal, no gain away from one."""
    for name, values in parameters(small_bert(head="cls")).items():
        assert values.dtype == np.float32
        assert np.count_nonzero(values) == values.size, name
        assert values.std() > 0, name
        assert abs(values.mean() - name.endswith("gain")) < 0.1, name


def test_attention_is_neither_uniform_nor_a_copy(run):
    """Softmax rows of a small model are spread and varied: the attention is alive."""
    model = small_bert()
    probabilities = "bert/layer_1/attention/scores/Softmax"
    model.graph.output.append(onnx.helper.make_tensor_value_info(probabilities, onnx.TensorProto.FLOAT, None))
    feeds = draw_feeds()
    attention = run(model, feeds)[probabilities]
    assert np.allclose(attention.sum(-1), 1, rtol=0, atol=SEQUENCE * np.finfo(np.float32).eps)
    assert attention[np.broadcast_to(feeds["attention_mask"][:, None, None] == 0, attention.shape)].max() == 0
    assert attention[0].max() > 1.2 / SEQUENCE
    assert attention[0].max() < 0.9


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"hidden": 30}, "hidden=30 is not a multiple of heads=4"),
        ({"sequence": 17}, "sequence=17 exceeds positions=16"),
        ({"opset": 16}, "LayerNormalization does not exist at opset 16"),
        ({"opset": 14, "layer_norm": "decomposed"}, "opset is 14; choose one from 15 to 21"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        small_bert(**settings)


@pytest.mark.slow
def test_decomposed_form_exists_before_layer_normalization(run, parameters, assert_close):
    model = small_bert(layer_norm="decomposed", opset=15)
    feeds = draw_feeds()
    expected = reference(parameters(model), feeds, "none")["last_hidden_state"]
    assert_close(run(model, feeds)["last_hidden_state"], expected, depth=DEPTH, terms=TERMS)


def test_layers_of_a_shallow_model_are_those_of_a_deep_one(parameters):
    """A parameter depends on its name and the seed alone."""
    shallow, deep = parameters(small_bert(layers=1)), parameters(small_bert(layers=2))
    assert shallow.keys() < deep.keys()
    assert all(np.array_equal(values, deep[name]) for name, values in shallow.items())


LAYER = Counter(Add=10, MatMul=8, Reshape=4, Transpose=4, Div=2, Mul=2, LayerNormalization=2, Softmax=1, Erf=1)


@pytest.mark.slow
def test_default_is_bert_base(parameters):
    """The published sizes: 109.5 million parameters with the pooler (Devlin et al. 2019, 110M)."""
    model = zoo.build("bert", head="cls")
    operators = Counter(node.op_type for node in model.graph.node)
    around = Counter(Gather=4, Add=2, LayerNormalization=1, Unsqueeze=1, Cast=1, Sub=1, Mul=1, Gemm=1, Tanh=1)
    assert operators == Counter({name: 12 * count for name, count in LAYER.items()}) + around
    assert sum(values.size for values in parameters(model).values()) == 109_482_240
    assert dimensions(model.graph.input[0]) == [1, 128]
    onnx.checker.check_model(model, full_check=True)
