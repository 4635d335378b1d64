"""The T5 decoder of the zoo against the decoder and head of transformers' T5ForConditionalGeneration."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
import torch

from rlflow import zoo
from rlflow.errors import InputError
from rlflow.zoo.t5 import distance_buckets

SIZES = {"layers": 2, "hidden": 32, "heads": 4, "intermediate": 80, "vocabulary": 50, "positions": 160}
SEQUENCE, MEMORY, BATCH = 7, 5, 3
DEPTH = 2 * 35 + 12
"""Operators on the longest path through two layers and the norm and head after them."""
TERMS = SIZES["intermediate"]
BLOCK = {
    "attention": "layer.0.SelfAttention",
    "cross_attention": "layer.1.EncDecAttention",
}
PROJECTIONS = {"query": "q", "key": "k", "value": "v", "output": "o"}


def reference_state(parameters: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """The same parameters under transformers' names; its Linear holds (outputs, inputs)."""
    bias = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    state = {
        "shared.weight": parameters["t5_decoder/embedding/weight"],
        bias: parameters["t5_decoder/position_bias/weight"],
        "decoder.final_layer_norm.weight": parameters["t5_decoder/rms_norm/gain"],
    }
    for layer in range(SIZES["layers"]):
        ours, theirs = f"t5_decoder/layer_{layer}", f"decoder.block.{layer}"
        for kind, path in BLOCK.items():
            for name, short in PROJECTIONS.items():
                state[f"{theirs}.{path}.{short}.weight"] = parameters[f"{ours}/{kind}/{name}/weight"].T
        state[f"{theirs}.layer.2.DenseReluDense.wi.weight"] = parameters[f"{ours}/intermediate/weight"].T
        state[f"{theirs}.layer.2.DenseReluDense.wo.weight"] = parameters[f"{ours}/output/weight"].T
        for index, scope in enumerate((f"{ours}/attention", f"{ours}/cross_attention", ours)):
            state[f"{theirs}.layer.{index}.layer_norm.weight"] = parameters[f"{scope}/rms_norm/gain"]
    assert len(state) == len(parameters)
    return {name: torch.tensor(values) for name, values in state.items()}


def reference(parameters: Mapping[str, np.ndarray], feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    from transformers import T5Config, T5ForConditionalGeneration  # seconds, which only the slow tests pay
    from transformers.modeling_outputs import BaseModelOutput

    config = T5Config(
        vocab_size=SIZES["vocabulary"],
        d_model=SIZES["hidden"],
        d_kv=SIZES["hidden"] // SIZES["heads"],
        d_ff=SIZES["intermediate"],
        num_layers=1,
        num_decoder_layers=SIZES["layers"],
        num_heads=SIZES["heads"],
        use_cache=False,
    )
    model = T5ForConditionalGeneration(config).eval()
    state = reference_state(parameters)
    assert set(state) == {name for name, _ in model.named_parameters() if not name.startswith("encoder.")}
    model.load_state_dict(state, strict=False)
    with torch.no_grad():
        encoded = BaseModelOutput(last_hidden_state=torch.tensor(feeds["encoder_hidden_states"]))
        ids = torch.tensor(feeds["input_ids"])
        return model(encoder_outputs=encoded, decoder_input_ids=ids, use_cache=False).logits.numpy()


def draw_feeds(batch: int = BATCH, sequence: int = SEQUENCE, memory: int = MEMORY) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "input_ids": rng.integers(0, SIZES["vocabulary"], (batch, sequence)),
        "encoder_hidden_states": rng.standard_normal((batch, memory, SIZES["hidden"]), dtype=np.float32),
    }


@pytest.mark.slow
@pytest.mark.parametrize(("sequence", "opset"), [(SEQUENCE, 17), (SEQUENCE, 21), (150, 17)])
def test_equals_transformers(sequence, opset, run, parameters, assert_close):
    """The longest sequence has distances in every bucket, the last one included."""
    model = zoo.build("t5_decoder", **SIZES, sequence=sequence, memory=MEMORY, batch=BATCH, opset=opset)
    feeds = draw_feeds(sequence=sequence)
    expected = reference(parameters(model), feeds)
    assert_close(run(model, feeds)["logits"], expected, depth=DEPTH, terms=max(TERMS, sequence))


@pytest.mark.slow
@pytest.mark.parametrize(
    "dynamic", [{"batch": "b"}, {"sequence": "s"}, {"memory": "m"}, {"batch": "b", "sequence": "s", "memory": "m"}]
)
def test_symbolic_dimensions_serve_every_size(dynamic, run, parameters, assert_close):
    sizes = {"batch": BATCH, "sequence": SEQUENCE, "memory": MEMORY}
    model = zoo.build("t5_decoder", **SIZES, **{**sizes, **dynamic})
    for other in ({}, {"batch": 1}, {"sequence": 12}, {"memory": 1}):
        if other.keys() <= dynamic.keys():
            feeds = draw_feeds(**{**sizes, **other})
            expected = reference(parameters(model), feeds)
            assert_close(run(model, feeds)["logits"], expected, depth=DEPTH, terms=TERMS)


def test_buckets_of_distances():
    """Sixteen single ones, then ever wider, the last from 113 on; a later token counts as none."""
    buckets = distance_buckets(200, 32)
    assert (buckets[np.triu_indices(200)] == 0).all()
    by_distance = buckets[199, ::-1]
    assert list(by_distance[:17]) == list(range(17))
    widths = np.bincount(by_distance)[16:31]
    assert len(np.bincount(by_distance)) == 32
    assert (np.diff(widths) >= -1).all()
    assert list(np.flatnonzero(np.diff(by_distance))[-3:] + 1) == [87, 99, 113]
    assert np.array_equal(buckets[:50, :50], distance_buckets(50, 32))


def test_what_was_encoded_matters(run, assert_differs):
    """Every place of it: cross attention is alive."""
    model = zoo.build("t5_decoder", **SIZES, sequence=SEQUENCE, memory=MEMORY, batch=BATCH)
    feeds = draw_feeds()
    expected = run(model, feeds)["logits"]
    for place in range(MEMORY):
        encoded = feeds["encoder_hidden_states"].copy()
        encoded[:, place] *= -1
        actual = run(model, {**feeds, "encoder_hidden_states": encoded})["logits"]
        assert_differs(actual, expected, depth=DEPTH, terms=TERMS)


def test_operators_are_those_of_an_exporter():
    """RMS norm is written out, and no bias is added but the one by distance, with the causal mask in it."""
    model = zoo.build("t5_decoder", **SIZES)
    layer = Counter(MatMul=14, Reshape=8, Transpose=8, Add=7, Mul=6, Pow=3, ReduceMean=3, Sqrt=3, Reciprocal=3)
    layer += Counter(Softmax=2, Relu=1)
    around = Counter(Gather=2, Transpose=1, Unsqueeze=1, Add=2, Mul=3, Pow=1, ReduceMean=1, Sqrt=1, Reciprocal=1)
    around += Counter(Reshape=2, Gemm=1)
    operators = Counter(node.op_type for node in model.graph.node)
    assert operators == Counter({name: 2 * count for name, count in layer.items()}) + around


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"hidden": 30}, "t5_decoder: hidden=30 is not a multiple of heads=4"),
        ({"buckets": 31}, "t5_decoder: buckets=31 is odd"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        zoo.build("t5_decoder", **{**SIZES, **settings})
