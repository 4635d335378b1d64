"""Transformer-Transducer against torch, with the key of every distance looked up pair by pair."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from rlflow import zoo
from rlflow.errors import InputError

SIZES = {"hidden": 32, "heads": 4, "intermediate": 80, "vocabulary": 40}
FRAMES, LABELS, BATCH = 7, 5, 2
DEPTH_OF_LAYER = 24
TERMS = SIZES["intermediate"]
Weights = Mapping[str, torch.Tensor]


def linear(p: Weights, scope: str, x: torch.Tensor) -> torch.Tensor:
    return F.linear(x, p[f"{scope}/weight"].T, p[f"{scope}/bias"])


def norm(p: Weights, scope: str, x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:], p[f"{scope}/gain"], p[f"{scope}/bias"], eps=1e-5)


def wave(distance: int, hidden: int) -> torch.Tensor:
    """Vaswani et al. (2017), section 3.5, the sines first as in Dai et al. (2019)."""
    angles = [distance / 10000 ** (2 * i / hidden) for i in range(hidden // 2)]
    return torch.tensor([*np.sin(angles), *np.cos(angles)], dtype=torch.float32)


def attention(p: Weights, scope: str, x: torch.Tensor, *, causal: bool) -> torch.Tensor:
    """Dai et al. (2019), section 3.3: the four terms of a score, summed query by query and key by key."""
    length, hidden = x.shape[1:]
    width = hidden // SIZES["heads"]

    def heads(y: torch.Tensor) -> torch.Tensor:
        return y.unflatten(-1, (SIZES["heads"], width))

    query, key, value = (heads(linear(p, f"{scope}/{kind}", x)) for kind in ("query", "key", "value"))
    of_content, of_distance = heads(p[f"{scope}/content/bias"]), heads(p[f"{scope}/distance/bias"])
    scores = torch.full((x.shape[0], SIZES["heads"], length, length), -torch.inf)
    for i in range(length):
        for j in range(i + 1 if causal else length):
            r = heads(wave(i - j, hidden) @ p[f"{scope}/distance/weight"])
            score = torch.einsum("bhw,bhw->bh", query[:, i] + of_content, key[:, j])
            score += torch.einsum("bhw,hw->bh", query[:, i] + of_distance, r)
            scores[:, :, i, j] = score / width**0.5
    context = torch.einsum("bhij,bjhw->bihw", scores.softmax(-1), value).flatten(2)
    return linear(p, f"{scope}/output", context)


def layer(p: Weights, scope: str, x: torch.Tensor, *, causal: bool) -> torch.Tensor:
    """Residuals go round the block from behind the normalisation (Zhang et al. 2020)."""
    y = norm(p, f"{scope}/attention/layer_norm", x)
    x = y + attention(p, f"{scope}/attention", y, causal=causal)
    y = norm(p, f"{scope}/layer_norm", x)
    return y + linear(p, f"{scope}/output", linear(p, f"{scope}/intermediate", y).relu())


def reference(parameters: Mapping[str, np.ndarray], feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    p = {name: torch.tensor(values) for name, values in parameters.items()}
    audio, label = (
        torch.tensor(feeds["audio"]),
        p["transducer/label/embedding/weight"][torch.tensor(feeds["label_ids"])],
    )
    for index in range(2):
        audio = layer(p, f"transducer/audio/layer_{index}", audio, causal=False)
    label = layer(p, "transducer/label/layer_0", label, causal=True)
    audio, label = linear(p, "transducer/joint/audio", audio), linear(p, "transducer/joint/label", label)
    pairs = [[audio[:, t] + label[:, u] for u in range(LABELS)] for t in range(FRAMES)]
    lattice = torch.stack([torch.stack(row, 1) for row in pairs], 1)
    return linear(p, "transducer/joint/output", lattice.tanh()).numpy()


def draw_feeds(batch: int = BATCH) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "audio": rng.standard_normal((batch, FRAMES, SIZES["hidden"]), dtype=np.float32),
        "label_ids": rng.integers(0, SIZES["vocabulary"], (batch, LABELS)),
    }


def small_transducer(**settings: object):
    layers = {"audio_layers": 2, "label_layers": 1, "frames": FRAMES, "labels": LABELS}
    return zoo.build("transformer_transducer", **{**SIZES, **layers, **settings})


@pytest.mark.parametrize(("batch", "layer_norm", "opset"), [(BATCH, "fused", 17), ("batch", "decomposed", 21)])
def test_equals_torch(batch, layer_norm, opset, run, parameters, assert_close):
    model = small_transducer(batch=batch, layer_norm=layer_norm, opset=opset)
    feeds = draw_feeds()
    expected = reference(parameters(model), feeds)
    assert expected.shape == (BATCH, FRAMES, LABELS, SIZES["vocabulary"])
    assert_close(run(model, feeds)["logits"], expected, depth=2 * DEPTH_OF_LAYER + 8, terms=TERMS)


def test_distances_matter_and_places_do_not(run, assert_differs, assert_close):
    """Frames in another order are not the same frames; but one frame repeated is the same in every place."""
    model = small_transducer(batch=BATCH)
    feeds = draw_feeds()
    order = np.random.default_rng(1).permutation(FRAMES)
    mixed = run(model, {**feeds, "audio": feeds["audio"][:, order]})["logits"]
    assert_differs(mixed, run(model, feeds)["logits"][:, order], depth=2 * DEPTH_OF_LAYER, terms=TERMS)
    still = np.repeat(feeds["audio"][:, :1], FRAMES, axis=1)
    logits = run(model, {**feeds, "audio": still})["logits"]
    assert_close(logits[:, 1:], logits[:, :-1], depth=2 * DEPTH_OF_LAYER, terms=TERMS)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"hidden": 30}, "transformer_transducer: hidden=30 is not a multiple of heads=4"),
        ({"hidden": 33, "heads": 3}, "transformer_transducer: hidden=33 is odd"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        small_transducer(**settings)
