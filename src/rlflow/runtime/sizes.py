"""The sizes at which a model is run: shapes of its inputs, and what these say of its dynamic dimensions.

    first, second = each_size(model, {"ids": [(1, 128), (8, 384)], "scale": (1,)})
    first.dimensions                            {"batch": 1, "sequence": 128}
    str(second)                                 "ids=8x384, scale=1"

Invariant: no two sizes of a model are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.runtime.inputs import dimensions_of

Shape: TypeAlias = Sequence[int]
Shapes: TypeAlias = Mapping[str, Shape | Sequence[Shape]]
"""By input, its one shape, or its shape at each of several sizes."""


@dataclass(frozen=True)
class Size:
    """Shapes of inputs by name, and the sizes of dynamic dimensions by symbol that follow from them."""

    shapes: Mapping[str, tuple[int, ...]]
    dimensions: Mapping[str, int]

    def __str__(self) -> str:
        return shapes_text(self.shapes)


def shapes_text(shapes: Mapping[str, Shape]) -> str:
    """Return shapes as a command takes them: "x=1x128, y=1"."""
    return ", ".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in shapes.items())


def each_size(model: ModelProto, shapes: Shapes) -> list[Size]:
    """Return the sizes that the shapes name, at least one. `InputError` for what `dimensions_of` or `separated` refuse,
    and for two that are the same.
    """
    sizes = [Size(each, dimensions_of(model, each)) for each in separated(shapes)]
    for place, size in enumerate(sizes):
        if size in sizes[:place]:
            raise InputError(f"the size {size} is named twice")
    return sizes


def separated(shapes: Shapes) -> list[dict[str, tuple[int, ...]]]:
    """Return the shapes of each size; inputs of one shape have it at all sizes.

    `InputError` where two inputs have unequal numbers of shapes.
    """
    listed = {name: _listed(given) for name, given in shapes.items()}
    count = max(map(len, listed.values()), default=1)
    for name, each in listed.items():
        if len(each) not in (1, count):
            most = next(other for other, its in listed.items() if len(its) == count)
            raise InputError(
                f"input {name!r} has {len(each)} shapes and {most!r} has {count}: name as many of each input, or one"
            )
    return [{name: each[min(place, len(each) - 1)] for name, each in listed.items()} for place in range(count)]


def _listed(given: Shape | Sequence[Shape]) -> list[tuple[int, ...]]:
    if given and all(isinstance(each, Sequence) for each in given):
        return [tuple(each) for each in cast(Sequence[Shape], given)]
    return [tuple(cast(Shape, given))]
