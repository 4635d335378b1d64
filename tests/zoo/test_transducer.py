"""Transformer-Transducer: attention counts distances, not places."""

import numpy as np

from rlflow import zoo

FRAMES, LABELS, HIDDEN = 7, 5, 32
SIZES = {"hidden": HIDDEN, "heads": 4, "intermediate": 80, "vocabulary": 40, "audio_layers": 2, "label_layers": 1}


def test_distances_matter_and_places_do_not(run, assert_differs, assert_close):
    """Frames in another order are not the same frames; but one frame repeated is the same in every place."""
    model = zoo.build("transformer_transducer", **SIZES, frames=FRAMES, labels=LABELS, batch=2)
    rng = np.random.default_rng(0)
    audio = rng.standard_normal((2, FRAMES, HIDDEN), dtype=np.float32)
    feeds = {"audio": audio, "label_ids": rng.integers(0, 40, (2, LABELS))}
    order = np.random.default_rng(1).permutation(FRAMES)
    mixed = run(model, {**feeds, "audio": audio[:, order]})["logits"]
    assert_differs(mixed, run(model, feeds)["logits"][:, order], depth=48, terms=80)
    still = np.repeat(audio[:, :1], FRAMES, axis=1)
    logits = run(model, {**feeds, "audio": still})["logits"]
    assert_close(logits[:, 1:], logits[:, :-1], depth=48, terms=80)
