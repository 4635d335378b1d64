"""GPT-2 of the zoo against transformers' GPT2LMHeadModel."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
import torch

from rlflow import zoo
from rlflow.errors import InputError

SIZES = {"layers": 2, "hidden": 32, "heads": 4, "intermediate": 80, "vocabulary": 50, "positions": 16}
SEQUENCE, BATCH = 7, 3
DEPTH = 2 * 26 + 6
"""Operators on the longest path through two layers, decomposed LayerNormalization counted as one."""
TERMS = SIZES["intermediate"]
LINEAR_NAMES = {
    "attention/query_key_value": "attn.c_attn",
    "attention/output": "attn.c_proj",
    "intermediate": "mlp.c_fc",
    "output": "mlp.c_proj",
}
NORM_NAMES = {"attention/layer_norm": "ln_1", "layer_norm": "ln_2"}


def reference_state(parameters: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """The same parameters under transformers' names; its Conv1D holds (inputs, outputs), as we do."""
    state = {
        "wte.weight": parameters["gpt2/embeddings/word/weight"],
        "wpe.weight": parameters["gpt2/embeddings/position/weight"],
    }
    norms = {"gpt2/layer_norm": "ln_f"}
    for layer in range(SIZES["layers"]):
        for ours, theirs in LINEAR_NAMES.items():
            state[f"h.{layer}.{theirs}.weight"] = parameters[f"gpt2/layer_{layer}/{ours}/weight"]
            state[f"h.{layer}.{theirs}.bias"] = parameters[f"gpt2/layer_{layer}/{ours}/bias"]
        norms |= {f"gpt2/layer_{layer}/{ours}": f"h.{layer}.{theirs}" for ours, theirs in NORM_NAMES.items()}
    for ours, theirs in norms.items():
        state[f"{theirs}.weight"] = parameters[f"{ours}/gain"]
        state[f"{theirs}.bias"] = parameters[f"{ours}/bias"]
    assert len(state) == len(parameters)
    return {f"transformer.{name}": torch.tensor(values) for name, values in state.items()}


def reference(parameters: Mapping[str, np.ndarray], ids: np.ndarray) -> np.ndarray:
    from transformers import GPT2Config, GPT2LMHeadModel  # seconds, which only the slow tests pay

    config = GPT2Config(
        vocab_size=SIZES["vocabulary"],
        n_positions=SIZES["positions"],
        n_embd=SIZES["hidden"],
        n_layer=SIZES["layers"],
        n_head=SIZES["heads"],
        n_inner=SIZES["intermediate"],
        attn_implementation="eager",
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config).eval()
    state = reference_state(parameters)
    assert set(state) == {name for name, _ in model.named_parameters()}, "the head is the embedding, so no parameter"
    model.load_state_dict(state, strict=False)
    with torch.no_grad():
        return model(torch.tensor(ids), use_cache=False).logits.numpy()


def draw_ids(batch: int = BATCH, sequence: int = SEQUENCE) -> np.ndarray:
    return np.random.default_rng(0).integers(0, SIZES["vocabulary"], (batch, sequence))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer_norm", "opset"), [("fused", 17), ("decomposed", 17), ("fused", 21), ("decomposed", 21)]
)
def test_equals_transformers(layer_norm, opset, run, parameters, assert_close):
    model = zoo.build("gpt2", **SIZES, sequence=SEQUENCE, batch=BATCH, layer_norm=layer_norm, opset=opset)
    expected = reference(parameters(model), draw_ids())
    assert_close(run(model, {"input_ids": draw_ids()})["logits"], expected, depth=DEPTH, terms=TERMS)


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [{"batch": "batch"}, {"sequence": "sequence"}, {"batch": "b", "sequence": "s"}])
def test_symbolic_dimensions_serve_every_size(dynamic, run, parameters, assert_close):
    model = zoo.build("gpt2", **{**SIZES, "sequence": SEQUENCE, "batch": BATCH, **dynamic})
    for batch in {BATCH, *([1] if "batch" in dynamic else [])}:
        for sequence in {SEQUENCE, *([1, SIZES["positions"]] if "sequence" in dynamic else [])}:
            ids = draw_ids(batch, sequence)
            expected = reference(parameters(model), ids)
            assert_close(run(model, {"input_ids": ids})["logits"], expected, depth=DEPTH, terms=TERMS)


def test_operators_are_those_of_an_exporter():
    """The table serves as embedding and as head, and is stored once."""
    model = zoo.build("gpt2", **SIZES, sequence=SEQUENCE)
    layer = Counter(Add=9, MatMul=6, Reshape=4, Transpose=4, Mul=4, LayerNormalization=2, Split=1, Div=1, Softmax=1)
    layer += Counter(Pow=1, Tanh=1)
    around = Counter(Gather=2, Add=1, LayerNormalization=1, Reshape=2, Gemm=1)
    operators = Counter(node.op_type for node in model.graph.node)
    assert operators == Counter({name: 2 * count for name, count in layer.items()}) + around
    readers = [node.op_type for node in model.graph.node if "gpt2/embeddings/word/weight" in node.input]
    assert readers == ["Gather", "Gemm"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"hidden": 30}, "gpt2: hidden=30 is not a multiple of heads=4"),
        ({"sequence": 17}, "gpt2: sequence=17 exceeds positions=16"),
        ({"opset": 16}, "gpt2: LayerNormalization does not exist at opset 16"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        zoo.build("gpt2", **{**SIZES, **settings})
