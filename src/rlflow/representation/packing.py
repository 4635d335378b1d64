"""Records of any sizes as a few long arrays, driven by the fields of their dataclass.

    @dataclass
    class Step:
        chosen: int                                         a number or a text each: one array of them
        gone: Annotated[np.ndarray, Along("kinds")]         arrays end to end, and their lengths in an array "kinds"
        turned: Annotated[np.ndarray, Along("turns")]

    packed = pack(Step, steps, "step/")             {"step/kinds": ..., "step/turns": ..., "step/chosen": ..., ...}
    steps = [*unpack(Step, packed, "step/")]

Fields of other types are left to the caller. The invariant: what is unpacked is what was packed, to the bit, however
narrow the integers were stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

T = TypeVar("T")
_SINGLE = {int: np.int64, bool: np.int64, float: np.float64, str: np.str_}


@dataclass(frozen=True)
class Along:
    """The axis of an array that is packed end to end with others; it is `extra` longer than the record's number `axis`.

    integers: their type, if the array has some. symmetric: a matrix (K, K) with a diagonal of zeros, of which the upper
    triangle is stored.
    """

    axis: str
    extra: int = 0
    integers: type[np.integer[Any]] = np.int64
    symmetric: bool = False


def pack(kind: type[T], records: Sequence[T], prefix: str = "") -> dict[str, np.ndarray]:
    """Return the arrays of records, lengths first, by names that begin with `prefix`."""
    lengths, columns = {}, {}
    for name, how in _columns(kind).items():
        values = [getattr(record, name) for record in records]
        if isinstance(how, Along):
            lengths[prefix + how.axis] = np.array([len(value) - how.extra for value in values], np.int64)
            columns[prefix + name] = _end_to_end([_upper(value) for value in values] if how.symmetric else values)
        else:
            columns[prefix + name] = np.array(values, _SINGLE[how])
    return lengths | columns


def unpack(
    kind: type[T], packed: Mapping[str, np.ndarray], prefix: str = "", make: Callable[..., Any] | None = None
) -> Iterator[Any]:
    """Yield what was packed, each made from its fields by name; `ValueError` if lengths and arrays do not fit.

    make: builds a record, if that is not the dataclass itself.
    """
    columns = {name: _column(prefix, name, how, packed) for name, how in _columns(kind).items()}
    for values in zip(*columns.values(), strict=True):
        yield (make or kind)(**dict(zip(columns, values, strict=True)))


def _columns(kind: type[Any]) -> Mapping[str, Any]:
    """Return how each field that is packed is stored: along an axis, or one value of that type each."""
    stored = {}
    for name, annotation in get_type_hints(kind, include_extras=True).items():
        how = next((said for said in get_args(annotation)[1:] if isinstance(said, Along)), annotation)
        if isinstance(how, Along) or how in _SINGLE:
            stored[name] = how
    return stored


def _column(prefix: str, name: str, how: Any, packed: Mapping[str, np.ndarray]) -> Sequence[Any]:
    array = packed[prefix + name]
    if not isinstance(how, Along):
        return [how(value) for value in array.tolist()]
    if array.dtype.kind in "iu":
        array = array.astype(how.integers)
    lengths = packed[prefix + how.axis].astype(np.int64) + how.extra
    if not how.symmetric:
        return _split(array, lengths, prefix + name)
    triangles = _split(array, lengths * (lengths - 1) // 2, prefix + name)
    return [_symmetric(upper, size) for upper, size in zip(triangles, lengths.tolist(), strict=True)]


def _end_to_end(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _split(array: np.ndarray, lengths: np.ndarray, name: str) -> list[np.ndarray]:
    if lengths.sum() != len(array):
        raise ValueError(f"{name}: {lengths.sum()} entries are told of, and {len(array)} are there")
    return np.split(array, np.cumsum(lengths)[:-1]) if len(lengths) else []


def _upper(matrix: np.ndarray) -> np.ndarray:
    return matrix[np.triu_indices(len(matrix), 1)]


def _symmetric(upper: np.ndarray, size: int) -> np.ndarray:
    matrix = np.zeros((size, size), upper.dtype)
    matrix[np.triu_indices(size, 1)] = upper
    return matrix + matrix.T
