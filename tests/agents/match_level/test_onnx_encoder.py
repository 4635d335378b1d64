"""V as an ONNX model reads what V reads: any number of tokens, by any number of layers."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from support.random_token_rollouts import WORDS, random_token
from support.readers import TorchReader, reader_of
from support.token_worlds import SMALL

from rlflow.agents.match_level.onnx_encoder import onnx_encoder
from rlflow.agents.match_level.token_reader import SCORES
from rlflow.representation.edit_graph import NEAR
from rlflow.representation.match_token import MatchToken
from rlflow.world_model.match_level.model import MatchLevelModel, MatchLevelModelArguments

TOKENS = [random_token(np.random.default_rng(seed)) for seed in range(30)]
CLOSE = {"rtol": 100 * float(np.finfo(np.float32).eps), "atol": 100 * float(np.finfo(np.float32).eps)}
"""Sums of a few dozen float32 in another order."""


def encoder(seed: int = 0, width: int = 8, layers: int = 2) -> MatchLevelModel:
    """One that has learned nothing, with norms whose weights are not all the same."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = MatchLevelModel(
            MatchLevelModelArguments(WORDS, "", replace(SMALL, encoder_width=width, encoder_layers=layers))
        )
        for module in model.encoder.modules():
            if isinstance(module, torch.nn.LayerNorm):
                torch.nn.init.normal_(module.weight)
                torch.nn.init.normal_(module.bias)
    return model.eval().requires_grad_(False)


@pytest.mark.parametrize(("width", "layers"), [(8, 1), (12, 3)])
@pytest.mark.parametrize("number", [1, 2, len(TOKENS)])
def test_it_reads_what_v_reads(width: int, layers: int, number: int):
    """Not vacuous: tokens are read differently, and savings have both signs."""
    model = encoder(width=width, layers=layers)
    found = reader_of(model).read(TOKENS[:number])
    assert found.shape == (SCORES + width, number)
    np.testing.assert_allclose(found, TorchReader(model).read(TOKENS[:number]), **CLOSE)
    if number == len(TOKENS):
        assert len(np.unique(found, axis=1).T) == number
        assert found[2].min() < 0 < found[2].max()


def test_a_token_of_one_node_and_no_edge_is_read():
    other, edges = TOKENS[0], np.zeros((0, 2), np.int64)
    token = MatchToken.of_arrays(other.op[:1], np.array([NEAR]), other.features[:1], other.price[:1], edges, edges)
    model = encoder()
    np.testing.assert_allclose(reader_of(model).read([token]), TorchReader(model).read([token]), **CLOSE)


def test_savings_stay_in_bounds():
    """Even where a node costs a million million times as much as a middling one."""
    model, extreme = encoder(), [replace(token, price=np.full_like(token.price, 1e12)) for token in TOKENS]
    found = reader_of(model).read(extreme)
    np.testing.assert_allclose(found, TorchReader(model).read(extreme), **CLOSE)
    assert abs(found[2]).max() == 14.0


def test_equal_encoders_give_equal_bytes():
    """The memory of a world model is none of it."""
    one, same, other = encoder(), encoder(), encoder(seed=1)
    for weight in same.memory.parameters():
        weight.add_(1.0)
    assert onnx_encoder(one).SerializeToString() == onnx_encoder(same).SerializeToString()
    assert onnx_encoder(one).SerializeToString() != onnx_encoder(other).SerializeToString()


def test_it_bears_its_vocabulary():
    assert asdict(reader_of(encoder()).vocabulary) == asdict(WORDS)
