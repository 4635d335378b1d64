"""Heads that read one token, and masks that hide later ones."""

import numpy as np
import pytest
from support.decoders import DEPTH, TERMS, WRITTEN, draw_feeds
from support.zoo_names import SMALL

from rlflow import zoo


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
