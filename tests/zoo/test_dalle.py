"""Who attends to whom in the DALL-E-like transformer, pair by pair."""

import pytest
from onnx import numpy_helper

from rlflow import zoo
from rlflow.zoo.builder import CONSTANTS

TEXT, GRID = 2, 8
SETTINGS = {"layers": 6, "hidden": 16, "heads": 2, "intermediate": 24, "text_vocabulary": 20, "image_vocabulary": 14}
Place = tuple[int, int] | None
PLACES: list[Place] = [None] * TEXT + [(row, column) for row in range(GRID) for column in range(GRID)]


def sees(query: Place, key: Place, pattern: str) -> bool:
    """Among tokens that are not later: None for one of the text, otherwise its row and column."""
    if query is None or key is None:
        return True
    (row, column), (other_row, other_column) = query, key
    match pattern:
        case "row":  # of the row above, those from this column on
            return other_row == row or (other_row == row - 1 and other_column >= column)
        case "column":
            return other_column == column
    return row - other_row <= 5 and abs(column - other_column) <= 5


def test_the_patterns_of_the_layers_in_their_order():
    """Row, column, row, row, again and again; the last layer's is convolutional."""
    model = zoo.build("dalle", **SETTINGS, text=TEXT, grid=GRID)
    read = [name for node in model.graph.node for name in node.input if name.endswith("_mask")]
    patterns = ("row", "column", "row", "row", "row", "convolution")
    assert read == [f"{CONSTANTS}{pattern}_mask" for pattern in patterns]


@pytest.mark.parametrize("pattern", ["row", "column", "convolution"])
def test_a_mask_hides_what_its_pattern_does_not_see(pattern):
    """A grid of eight is wider than the convolution reaches, so that the three differ."""
    model = zoo.build("dalle", **SETTINGS, text=TEXT, grid=GRID)
    (tensor,) = (tensor for tensor in model.graph.initializer if tensor.name == f"{CONSTANTS}{pattern}_mask")
    mask = numpy_helper.to_array(tensor).reshape(len(PLACES), len(PLACES))
    visible = [[j <= i and sees(p, q, pattern) for j, q in enumerate(PLACES)] for i, p in enumerate(PLACES)]
    assert ((mask == 0) == visible).all()
    assert (mask[mask != 0] <= -1e4).all()
