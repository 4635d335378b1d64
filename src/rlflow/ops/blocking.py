"""The part that each operator plays where ONNX Runtime keeps images in blocks of channels (`cost/blocked_layout.py`).

    BLOCKING["MaxPool"] is Blocking.POOL

An operator that is not here reads and makes plain images. The parts are those of the CPU's optimisers, and no part of
an operator's meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto


class Blocking(Enum):
    """The parts; an image is a tensor (N, C, H, W)."""

    CONVOLUTION = auto()
    """Makes blocked images, and takes constant factors, shifts and functions after it into itself."""
    POOL = auto()
    """Makes blocked images where their channels fill blocks."""
    GLOBAL_POOL = auto()
    """The same, if the image that it reads is blocked anyway."""
    FUNCTION = auto()
    """Works on either layout."""
    NORMALISATION = auto()
    """Works on either layout, and convolutions take it up."""
    TAKEN_UP = auto()
    """Works on a blocked image if the convolution that made it takes it up."""
    SUM = auto()
    """Works on images that are all blocked."""
    PRODUCT = auto()
    """The same, and scales the channels of a blocked one."""
    JOINT = auto()
    """Joins the channels of blocked images, if these fill blocks."""
    PAD = auto()
    """Is taken up by the window that reads it."""
    PERMUTATION = auto()
    """May read a blocked image to put its channels last."""


BLOCKING: Mapping[str, Blocking] = {
    **dict.fromkeys(("Conv", "com.microsoft.FusedConv"), Blocking.CONVOLUTION),
    **dict.fromkeys(("MaxPool", "AveragePool"), Blocking.POOL),
    **dict.fromkeys(("GlobalMaxPool", "GlobalAveragePool"), Blocking.GLOBAL_POOL),
    **dict.fromkeys(("Relu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Gelu"), Blocking.FUNCTION),
    **dict.fromkeys(("com.microsoft.Gelu", "com.microsoft.QuickGelu"), Blocking.FUNCTION),
    **dict.fromkeys(("Identity", "Dropout"), Blocking.FUNCTION),
    "BatchNormalization": Blocking.NORMALISATION,
    **dict.fromkeys(("Clip", "LeakyRelu"), Blocking.TAKEN_UP),
    **dict.fromkeys(("Add", "Sum"), Blocking.SUM),
    "Mul": Blocking.PRODUCT,
    "Concat": Blocking.JOINT,
    "Pad": Blocking.PAD,
    "Transpose": Blocking.PERMUTATION,
}
"""Operators by their qualified names."""
