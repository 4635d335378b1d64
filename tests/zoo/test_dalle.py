"""The DALL-E-like transformer against torch's own encoder layers, with masks drawn token by token."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import nn

from rlflow import zoo
from rlflow.errors import InputError

SIZES = {"hidden": 32, "heads": 4, "intermediate": 80, "text_vocabulary": 40, "image_vocabulary": 30}
BATCH = 2
DEPTH_OF_LAYER = 26
TERMS = SIZES["intermediate"]


def sees(query: tuple[int, int] | None, key: tuple[int, int] | None, grid: int, pattern: str) -> bool:
    """Among tokens that are not later: None for one of the text, otherwise its row and column."""
    if query is None or key is None:
        return True
    (row, column), (other_row, other_column) = query, key
    match pattern:
        case "row":  # of the row above, those from this column on
            return other_row == row or (other_row == row - 1 and other_column >= column)
        case "column":
            return other_column == column
        case "convolution":
            return row - other_row <= 5 and abs(column - other_column) <= 5
    raise ValueError(pattern)


def hidden_pairs(text: int, grid: int, pattern: str) -> torch.Tensor:
    places = [None] * text + [(row, column) for row in range(grid) for column in range(grid)]
    return torch.tensor(
        [[j > i or not sees(p, q, grid, pattern) for j, q in enumerate(places)] for i, p in enumerate(places)]
    )


def patterns(layers: int) -> list[str]:
    """Row, column, row, row, again and again; the last layer's is convolutional."""
    return [("row", "column", "row", "row")[layer % 4] for layer in range(layers - 1)] + ["convolution"]


def encoder_layer(parameters: Mapping[str, np.ndarray], scope: str) -> nn.TransformerEncoderLayer:
    hidden, heads, inner = SIZES["hidden"], SIZES["heads"], SIZES["intermediate"]
    layer = nn.TransformerEncoderLayer(
        hidden, heads, inner, dropout=0, activation="gelu", batch_first=True, norm_first=True
    )
    linear = {"self_attn.out_proj": "attention/output", "linear1": "intermediate", "linear2": "output"}
    state = {
        "self_attn.in_proj_weight": parameters[f"{scope}/attention/query_key_value/weight"].T,
        "self_attn.in_proj_bias": parameters[f"{scope}/attention/query_key_value/bias"],
    }
    for theirs, ours in linear.items():
        state |= {f"{theirs}.weight": parameters[f"{scope}/{ours}/weight"].T}
        state |= {f"{theirs}.bias": parameters[f"{scope}/{ours}/bias"]}
    for theirs, ours in {"norm1": "attention/layer_norm", "norm2": "layer_norm"}.items():
        state |= {f"{theirs}.weight": parameters[f"{scope}/{ours}/gain"]}
        state |= {f"{theirs}.bias": parameters[f"{scope}/{ours}/bias"]}
    layer.load_state_dict({name: torch.tensor(values) for name, values in state.items()})
    return layer.eval()


def reference(parameters: Mapping[str, np.ndarray], feeds: Mapping[str, np.ndarray], layers: int) -> np.ndarray:
    p = {name: torch.tensor(values) for name, values in parameters.items()}
    text, image = (torch.tensor(feeds[name]) for name in ("text", "image"))
    grid = int(image.shape[1] ** 0.5)
    x = [p["dalle/embeddings/text/weight"][text] + p["dalle/embeddings/text/position/weight"][0]]
    for place in range(grid * grid):
        row, column = p["dalle/embeddings/image/row/weight"], p["dalle/embeddings/image/column/weight"]
        token = p["dalle/embeddings/image/weight"][image[:, place]]
        x.append((token + row[0, place // grid, 0] + column[0, 0, place % grid])[:, None])
    y = torch.cat(x, 1)
    with torch.no_grad():
        for layer, pattern in enumerate(patterns(layers)):
            mask = hidden_pairs(text.shape[1], grid, pattern)
            y = encoder_layer(parameters, f"dalle/layer_{layer}")(y, src_mask=mask)
        y = nn.functional.layer_norm(y, y.shape[-1:], p["dalle/layer_norm/gain"], p["dalle/layer_norm/bias"])
        return (y[:, text.shape[1] :] @ p["dalle/head/weight"] + p["dalle/head/bias"]).numpy()


def draw_feeds(text: int, grid: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "text": rng.integers(0, SIZES["text_vocabulary"], (BATCH, text)),
        "image": rng.integers(0, SIZES["image_vocabulary"], (BATCH, grid * grid)),
    }


@pytest.mark.parametrize(
    ("layers", "text", "grid", "layer_norm"), [(6, 3, 4, "fused"), (2, 2, 8, "decomposed"), (1, 1, 1, "fused")]
)
def test_equals_torch(layers, text, grid, layer_norm, run, parameters, assert_close):
    """Six layers have all patterns in their order; a grid of eight is wider than the convolution reaches."""
    settings = {"layers": layers, "text": text, "grid": grid, "layer_norm": layer_norm}
    model = zoo.build("dalle", **SIZES, **settings, batch="batch")
    feeds = draw_feeds(text, grid)
    expected = reference(parameters(model), feeds, layers)
    assert expected.shape == (BATCH, grid * grid, SIZES["image_vocabulary"])
    assert_close(run(model, feeds)["logits"], expected, depth=DEPTH_OF_LAYER * layers + 6, terms=TERMS)


def test_patterns_differ():
    """A twin whose masks were all alike would prove nothing."""
    masks = [hidden_pairs(2, 8, pattern) for pattern in ("row", "column", "convolution")]
    visible = [int((~mask).sum()) for mask in masks]
    assert len(set(visible)) == 3
    assert all(not mask.diagonal().any() for mask in masks)
    assert all(mask[torch.triu(torch.ones_like(mask), 1)].all() for mask in masks)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="dalle: hidden=30 is not a multiple of heads=4"):
        zoo.build("dalle", **{**SIZES, "hidden": 30})
