"""What all models that write token by token have in common: causality, heads that read one token, living parameters."""

import numpy as np
import onnx
import pytest
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.onnx_io import from_onnx, to_onnx

WRITTEN = {
    "dalle": "image",
    "gpt2": "input_ids",
    "t5_decoder": "input_ids",
    "transformer_transducer": "label_ids",
}
"""The input of the tokens that are written."""
DEPTH, TERMS = 100, 24
"""More operators in a row, and as many terms in a sum, as any of the small models has."""


def draw_feeds(model: onnx.ModelProto, batch: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    feeds = {}
    for value in model.graph.input:
        shape = [batch, *(d.dim_value for d in value.type.tensor_type.shape.dim[1:])]
        ids = value.type.tensor_type.elem_type == onnx.TensorProto.INT64
        feeds[value.name] = rng.integers(0, 14, shape) if ids else rng.standard_normal(shape, dtype=np.float32)
    return feeds


def by_token(name: str, logits: np.ndarray) -> np.ndarray:
    """(batch, written tokens, ...): in the transducer's lattice, those of the last frame."""
    return logits[:, -1] if name == "transformer_transducer" else logits


@pytest.mark.parametrize("name", WRITTEN)
def test_the_last_head_reads_the_last_token_alone(name, run, assert_close, assert_differs):
    """It gives what the whole head gives there, and nowhere else; the nodes before are the same."""
    whole, last = zoo.build(name, **SMALL[name]), zoo.build(name, **SMALL[name], head="last")
    feeds = draw_feeds(whole)
    tokens, token = by_token(name, run(whole, feeds)["logits"]), run(last, feeds)["logits"]
    assert_close(token, tokens[:, -1], depth=DEPTH, terms=TERMS)
    for other in range(tokens.shape[1] - 1):
        assert_differs(token, tokens[:, other], depth=DEPTH, terms=TERMS)
    reads = [node for node in last.graph.node if node.op_type == "Gather" and any("last" in i for i in node.input)]
    assert len(reads) == (2 if name == "transformer_transducer" else 1)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_token_reaches_itself_and_later_ones_alone(name, run, assert_close, assert_differs):
    model = zoo.build(name, **SMALL[name])
    feeds = draw_feeds(model)
    expected = by_token(name, run(model, feeds)["logits"])
    length = feeds[WRITTEN[name]].shape[1]
    for place in (0, length // 2, length - 1):
        other = {key: values.copy() for key, values in feeds.items()}
        other[WRITTEN[name]][0, place] = (other[WRITTEN[name]][0, place] + 1) % 14
        actual = by_token(name, run(model, other)["logits"])
        if place > 0:
            assert_close(actual[:, :place], expected[:, :place], depth=1, terms=1)
        assert_differs(actual[:, place], expected[:, place], depth=DEPTH, terms=TERMS)
        assert_differs(actual[:, length - 1], expected[:, length - 1], depth=DEPTH, terms=TERMS)


@pytest.mark.parametrize("head", ["last", "all"])
@pytest.mark.parametrize("name", WRITTEN)
def test_every_parameter_but_the_key_biases_matters(name, head, run, parameters, assert_close, assert_differs):
    """Reversing any parameter moves the logits by far more than rounding; softmax takes the key biases out."""
    settings = {} if head == "all" else {"head": head}
    model = zoo.build(name, **SMALL[name], **settings)
    values = parameters(model)
    for key, array in values.items():  # an initialiser that is an input as well can be fed: one session serves all
        model.graph.input.append(onnx.helper.make_tensor_value_info(key, onnx.TensorProto.FLOAT, array.shape))
    feeds = draw_feeds(zoo.build(name, **SMALL[name]))
    expected = run(model, feeds)["logits"]
    for key, array in values.items():
        actual = run(model, {**feeds, key: np.flip(array).copy()})["logits"]
        check = assert_close if key.endswith("key/bias") else assert_differs
        check(actual, expected, depth=DEPTH, terms=TERMS)


@pytest.mark.parametrize("name", WRITTEN)
def test_symbolic_batch_serves_every_size(name, run, assert_close):
    """One sequence gives the same alone and in company."""
    model = zoo.build(name, **SMALL[name], batch="batch")
    feeds = draw_feeds(model, batch=3)
    together = run(model, feeds)["logits"]
    alone = run(model, {key: values[1:2] for key, values in feeds.items()})["logits"]
    assert_close(alone, together[1:2], depth=DEPTH, terms=TERMS)


@pytest.mark.parametrize("head", ["last", "all"])
@pytest.mark.parametrize("name", ["gpt2", "t5_decoder"])
def test_symbolic_sequences_survive_import_and_export(name, head, run):
    """Bit by bit, at another length than any that is written down."""
    model = zoo.build(name, **{**SMALL[name], "head": head, "batch": "batch", "sequence": "sequence"})
    feeds = draw_feeds(zoo.build(name, **{**SMALL[name], "sequence": 11}), batch=2)
    expected = run(model, feeds)["logits"]
    assert expected.shape == ((2, 11, 20) if head == "all" else (2, 20))
    np.testing.assert_array_equal(run(to_onnx(from_onnx(model)), feeds)["logits"], expected)


@pytest.mark.parametrize("name", WRITTEN)
def test_attention_is_neither_uniform_nor_a_copy(name, run):
    """At the widths of the published heads, where a token that sees all others looks at some more than at others."""
    wide = {"hidden": 128, "intermediate": 128}
    model = zoo.build(name, **{**SMALL[name], **wide})
    names = [node.output[0] for node in model.graph.node if node.op_type == "Softmax"]
    model.graph.output.extend(onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in names)
    values = run(model, draw_feeds(model))
    assert len(names) >= 1
    for softmax in names:
        attention = values[softmax][0, :, -1]
        attention = attention[:, attention.max(axis=0) > 0]
        assert attention.max() > 1.1 / attention.shape[-1], softmax
        assert attention.max() < 0.97, softmax
