"""Examples of what models are fed, drawn with torch's generator."""

from collections.abc import Callable

import torch
from torch import Tensor

from support.exports.architecture import OpenAxes

Example = tuple[Callable[[], dict[str, Tensor]], OpenAxes]

WORDS = 99
"""Words of a vocabulary."""
_BATCH, _TIME = 2, 8


def tokens(*names: str, length: int = _TIME) -> Example:
    """Token ids under these names, masks of ones where "mask" is in the name, segments of zeros."""

    def draw() -> dict[str, Tensor]:
        return {name: _tokens(name, length) for name in names or ("input_ids", "attention_mask")}

    return draw, {name: {0: "batch", 1: _time_of(name)} for name in names or ("input_ids", "attention_mask")}


def _tokens(name: str, length: int) -> Tensor:
    if "mask" in name:
        return torch.ones(_BATCH, length, dtype=torch.long)
    if "type" in name:
        return torch.zeros(_BATCH, length, dtype=torch.long)
    return torch.randint(1, WORDS, (_BATCH, length - 3 if name.startswith("decoder") else length))


def _time_of(name: str) -> str:
    return "target" if name.startswith("decoder") else "time"


def image(size: int = 32, *, name: str = "pixel_values", channels: int = 3, is_open: bool = False) -> Example:
    """Normalised pixels, a batch of one; of open height and width if asked for."""
    axes = {0: "batch", **({2: "height", 3: "width"} if is_open else {})}
    return (lambda: {name: torch.randn(1, channels, size, size)}), {name: axes}


def floats(*shape: int, name: str = "x", **open_axes: int) -> Example:
    """Standard normal numbers; open axes by what their sizes are called."""
    return (lambda: {name: torch.randn(shape)}), {name: {axis: size for size, axis in open_axes.items()}}


def indices(below: int, *shape: int, name: str = "x", **open_axes: int) -> Example:
    """Whole numbers from 0 up to a bound; open axes by what their sizes are called."""
    return (lambda: {name: torch.randint(below, shape)}), {name: {axis: size for size, axis in open_axes.items()}}


def together(*examples: Example) -> Example:
    """All of these, in this order."""
    draws, axes = zip(*examples, strict=True)
    return (
        lambda: {name: value for draw in draws for name, value in draw().items()},
        {name: named for each in axes for name, named in each.items()},
    )
