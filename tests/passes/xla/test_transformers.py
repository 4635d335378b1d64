"""GPT-2 and BERT: what a token may look at."""

import numpy as np
import pytest

from rlflow.errors import InputError
from rlflow.passes.xla.compiler import compiled, on_device, run
from rlflow.passes.xla.lowering import forward, lowered
from rlflow.passes.xla.transformers import bert, gpt2

_SIZE = {"layers": 1, "width": 8, "heads": 2, "sequence": 6, "batch": 1}


def _outputs(model, *inputs):
    rng = np.random.default_rng(0)
    drawn = [rng.normal(size=model.parameters[name].shape).astype(np.float32) for name in sorted(model.parameters)]
    executable = compiled(lowered(forward(model)))
    return [run(executable, on_device([*drawn, *each]))[0] for each in inputs]


def test_gpt2_looks_back_and_never_ahead() -> None:
    first, other = np.zeros((1, 6), np.int32), np.zeros((1, 6), np.int32)
    other[0, 3] = 5
    before, after = _outputs(gpt2(**_SIZE), (first,), (other,))
    assert before.shape == (1, 6, 64)
    np.testing.assert_allclose(before[:, :3], after[:, :3], rtol=1e-5, atol=1e-5)
    assert np.abs(before[:, 3:] - after[:, 3:]).max(-1).min() > 1e-3, "all later tokens see the change"


def test_bert_does_not_look_at_padding() -> None:
    """The fourth token is changed where it is attended to, and where it is not."""
    ids, changed, segments = (np.zeros((1, 6), np.int32) for _ in range(3))
    changed[0, 3] = 5
    seen, unseen = np.ones((1, 6), bool), np.ones((1, 6), bool)
    unseen[0, 3] = False
    inputs = [(each, segments, mask) for mask in (seen, unseen) for each in (ids, changed)]
    with_it, with_other, without, without_other = _outputs(bert(**_SIZE), *inputs)
    assert np.abs(with_it - with_other).max() > 1e-3
    np.testing.assert_allclose(without, without_other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("build", [gpt2, bert])
def test_dropout_adds_a_key_and_draws(build) -> None:
    plain, dropping = build(**_SIZE), build(**_SIZE, dropout=True)
    assert len(dropping.inputs) == len(plain.inputs) + 1
    assert b"rng_bit_generator" in lowered(forward(dropping))
    assert b"rng_bit_generator" not in lowered(forward(plain))


def test_heads_must_share_the_width() -> None:
    with pytest.raises(InputError, match="width=8 cannot be shared by heads=3"):
        gpt2(width=8, heads=3)
