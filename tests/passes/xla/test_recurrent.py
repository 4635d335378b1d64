"""Recurrent networks against loops written in numpy."""

import numpy as np
import pytest

from rlflow.passes.xla.compiler import compiled, on_device, run
from rlflow.passes.xla.lowering import forward, lowered, step
from rlflow.passes.xla.recurrent import gru, lstm, rnn, ssm

_SIZE = {"layers": 1, "width": 4, "sequence": 5, "batch": 2}


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _by_hand_rnn(p, x):
    state = np.zeros(x[:, 0].shape)
    for t in range(x.shape[1]):
        state = np.tanh(x[:, t] @ p["0.in"] + state @ p["0.again"] + p["0.bias"])
    return state @ p["classes"]


def _by_hand_gru(p, x):
    state = np.zeros(x[:, 0].shape)
    for t in range(x.shape[1]):
        inner, again = np.split(x[:, t] @ p["0.in"] + p["0.bias"], 3, -1), np.split(state @ p["0.again"], 3, -1)
        reset, update = _sigmoid(inner[0] + again[0]), _sigmoid(inner[1] + again[1])
        state = (1 - update) * np.tanh(inner[2] + reset * again[2]) + update * state
    return state @ p["classes"]


def _by_hand_lstm(p, x):
    hidden = memory = np.zeros(x[:, 0].shape)
    for t in range(x.shape[1]):
        kept, added, value, shown = np.split(x[:, t] @ p["0.in"] + hidden @ p["0.again"] + p["0.bias"], 4, -1)
        memory = _sigmoid(kept) * memory + _sigmoid(added) * np.tanh(value)
        hidden = _sigmoid(shown) * np.tanh(memory)
    return hidden @ p["classes"]


def _by_hand_ssm(p, x):
    value, gate = np.split(x @ p["0.in"], 2, -1)
    state = np.zeros(value[:, 0].shape)
    for t in range(x.shape[1]):
        state = _sigmoid(p["0.decay"]) * state + value[:, t]
    return (x[:, -1] + state * gate[:, -1] * _sigmoid(gate[:, -1])) @ p["classes"]


@pytest.mark.parametrize(
    ("build", "by_hand"), [(rnn, _by_hand_rnn), (gru, _by_hand_gru), (lstm, _by_hand_lstm), (ssm, _by_hand_ssm)]
)
def test_a_cell_is_its_formula(build, by_hand) -> None:
    model, rng = build(**_SIZE), np.random.default_rng(0)
    names = sorted(model.parameters)
    drawn = {name: rng.normal(size=model.parameters[name].shape).astype(np.float32) for name in names}
    x = rng.normal(size=model.inputs[0].shape).astype(np.float32)
    (output,) = run(compiled(lowered(forward(model))), on_device([*drawn.values(), x]))
    np.testing.assert_allclose(output, by_hand(drawn, x), rtol=1e-4, atol=1e-4)


def test_a_step_has_a_loop_each_way() -> None:
    assert lowered(forward(lstm())).count(b"stablehlo.while") == 1
    assert lowered(step(lstm())).count(b"stablehlo.while") == 2
    assert b"stablehlo.while" not in lowered(step(ssm()))
