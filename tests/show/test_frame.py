"""Frames of a film: as large for a few operators as for a deep model, and all of the picture is in them."""

import numpy as np
import pytest
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.show.frame import HEIGHT, WIDTH, frame


def build(name: str, **settings: object) -> Graph:
    return from_onnx(zoo.build(name, **settings))


@pytest.mark.parametrize("graph", [build("tiny_chain"), build("bert", **SMALL["bert"])], ids=["few", "many"])
def test_a_frame_has_one_size_and_is_drawn_to_in_the_middle(graph: Graph) -> None:
    """What is white at the border all around shows that nothing is cut off."""
    drawn = frame(graph, graph)
    assert (drawn.shape, drawn.dtype) == ((HEIGHT, WIDTH, 3), np.uint8)
    ink = (drawn != 255).any(axis=-1)
    assert not ink[[0, -1]].any()
    assert not ink[:, [0, -1]].any()
    half = WIDTH // 2
    assert ink[:, :half].sum() == pytest.approx(ink[:, half:].sum(), rel=0.2)
    assert ink.sum() > 1000


def test_what_changed_shows() -> None:
    before, after = build("tiny_merge"), from_onnx(zoo.optimum("tiny_merge"))
    assert (frame(before, after) != frame(before, before)).any()
