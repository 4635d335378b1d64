"""ONNX models in PyTorch: what they compute, and nothing that stays behind."""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from rlflow import extras
from rlflow.errors import InputError
from rlflow.nn.translated import threads, translated
from rlflow.onnx_io import save_model
from rlflow.zoo import build

WITH_TRANSLATOR = pytest.mark.skipif(find_spec("onnx2torch") is None, reason="make setup installs onnx2torch")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.onnx"
    save_model(build("tiny_chain", rows=8, inner=16, length=2), path)
    return path


@WITH_TRANSLATOR
def test_nothing_stays_in_the_place_of_torchvision(model: Path):
    before = sys.modules.get("torchvision")
    translated(model, ["x"], ["y"])
    assert sys.modules.get("torchvision") is before


@WITH_TRANSLATOR
def test_outputs_have_their_names(model: Path):
    module = translated(model, ["a"], ["b"])
    inputs = np.ones(tuple(_input_shape(model)), np.float32)
    assert [*module({"a": inputs})] == ["b"]


def test_threads_are_as_many_as_before(model: Path):
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_without_the_translator_one_sentence_says_so(model: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"pip install 'rlflow\[frameworks\]'"):
        translated(model, ["x"], ["y"])


def _input_shape(model: Path) -> list[int]:
    (value,) = onnx.load(model).graph.input
    return [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
