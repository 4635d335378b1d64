"""What all models that write token by token have in common: causality, heads that read one token, living parameters."""

import numpy as np
import onnx
import pytest
from support.decoders import DEPTH, TERMS, WRITTEN, draw_feeds
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.onnx_io import from_onnx, to_onnx


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
