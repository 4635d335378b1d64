"""NasRNN against the cell's formula in torch, with the eight gates' weights stacked."""

import numpy as np
import onnx
import pytest
import torch

from rlflow import zoo

HIDDEN, STEPS, BATCH = 24, 4, 3
DEPTH = 9 * STEPS
"""Gather, MatMul, Add, four activations and two meetings in each step."""


def cell(g: torch.Tensor) -> torch.Tensor:
    """The new state from gates (8, B, H), as one expression."""
    sigmoid, tanh, relu = torch.sigmoid, torch.tanh, torch.relu
    upper = sigmoid(sigmoid(g[1]) + tanh(g[2])) + tanh(sigmoid(g[4]) * tanh(g[5]))
    lower = tanh(relu(g[0]) + sigmoid(g[3])) * tanh(sigmoid(g[6]) * relu(g[7]))
    return tanh(tanh(upper) * tanh(lower))


def reference(parameters: dict[str, np.ndarray], x: np.ndarray, state: np.ndarray) -> np.ndarray:
    names = [[f"nasrnn/gate_{gate}/{of}/weight" for gate in range(8)] for of in ("input", "state")]
    of_input, of_state = (torch.tensor(np.stack([parameters[name] for name in kind])) for kind in names)
    assert set(parameters) == {*names[0], *names[1]}
    y = torch.tensor(state)
    for step in torch.tensor(x):
        y = cell(torch.einsum("bi,gio->gbo", step, of_input) + torch.einsum("bi,gio->gbo", y, of_state))
    return y.numpy()


def draw_feeds(batch: int = BATCH) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((STEPS, batch, HIDDEN), dtype=np.float32)
    return {"x": x, "state": np.tanh(rng.standard_normal((batch, HIDDEN), dtype=np.float32))}


@pytest.mark.parametrize("batch", [BATCH, "batch"])
def test_equals_torch(batch, run, parameters, assert_close):
    model = zoo.build("nasrnn", steps=STEPS, hidden=HIDDEN, batch=batch)
    for size in {BATCH, *([1, 5] if batch == "batch" else [])}:
        feeds = draw_feeds(size)
        assert_close(run(model, feeds)["y"], reference(parameters(model), **feeds), depth=DEPTH, terms=2 * HIDDEN)


def test_the_state_neither_vanishes_nor_forgets(run):
    """At the published size, where sums have 512 terms: states spread, and rows of the batch differ."""
    model = zoo.build("nasrnn", batch=BATCH)
    states = [node.output[0] for node in model.graph.node if node.op_type == "Tanh"][7::8]
    assert len(states) == 5
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in states[:-1])
    rng = np.random.default_rng(0)
    x, state = rng.standard_normal((5, BATCH, 512), dtype=np.float32), np.zeros((BATCH, 512), np.float32)
    for values in run(model, {"x": x, "state": state}).values():
        assert 0.02 < values.std() < 0.9
        assert values.std(axis=0).mean() > 0.3 * values.std()
