"""Layers: what repeats is counted once, and what looks alike but is wired otherwise is not."""

from dataclasses import replace

from rlflow import zoo
from rlflow.onnx_io import from_onnx
from rlflow.show.layers import unique_layers

BERT = {"hidden": 64, "heads": 2, "intermediate": 128, "sequence": 16, "vocabulary": 50}


def layers_of(name, **settings):
    return unique_layers(from_onnx(zoo.build(name, **settings)))


def test_a_chain_of_products_in_closed_form() -> None:
    found = layers_of("tiny_chain")
    assert [(layer.operators, layer.count) for layer in found] == [(("MatMul",), 2), (("MatMul",), 2)]
    assert len({layer.result for layer in found}) == 2


def test_more_encoder_blocks_are_more_layers_but_no_new_ones() -> None:
    """The last block's output is the model's; beyond the first two blocks every one is a repetition."""
    two, three, five = (layers_of("bert", layers=n, **BERT) for n in (2, 3, 5))
    kinds = [{(layer.operators, layer.result) for layer in found} for found in (two, three, five)]
    assert kinds[0] == kinds[1] == kinds[2]
    assert len(two) == len(three) == len(five)
    totals = [sum(layer.count for layer in found) for found in (two, three, five)]
    assert totals[2] - totals[1] == 2 * (totals[1] - totals[0]) > 0


def test_values_of_weights_do_not_count_and_types_do() -> None:
    assert layers_of("tiny_chain", seed=1) == layers_of("tiny_chain", seed=2)
    found = layers_of("bert", layers=1, **BERT)
    wider = layers_of("bert", layers=1, **BERT | {"hidden": 32})
    assert [replace(layer, result="") for layer in found] == [replace(layer, result="") for layer in wider]
    assert found != wider
