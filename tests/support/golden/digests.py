"""Digests of results that cover values alone, and not the names of the classes and fields that hold them.

digest([1, 2.0], np.zeros(3))           16 hexadecimal digits, the same in every process
weights(policy.state_dict())            the same however the parameters are named and ordered
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

import numpy as np

from rlflow.method import OptimisationResult
from rlflow.trajectory.record import Trajectory

Value = str | int | Mapping[str, str | int]
"""The value of an entry: a digest, a count, or several of them by name."""
_DIGITS = 16


def digest(*parts: object) -> str:
    """Return the digest of nested lists and mappings of numbers, texts, bytes and arrays; `TypeError` for others.

    Floats count to the bit, mappings do not depend on the order of their keys.
    """
    state = sha256()
    for piece in _pieces(parts):
        state.update(piece)
    return state.hexdigest()[:_DIGITS]


def _pieces(part: object) -> Iterator[bytes]:
    """Yield an encoding in which no two different parts are the same bytes."""
    if part is None or isinstance(part, bool | int | str):
        yield f"{type(part).__name__} {part!r}\n".encode()
    elif isinstance(part, float):
        yield f"float {part.hex()}\n".encode()
    elif isinstance(part, bytes):
        yield f"bytes {len(part)}\n".encode() + part
    elif isinstance(part, np.ndarray):
        yield f"array {part.dtype} {part.shape}\n".encode() + np.ascontiguousarray(part).tobytes()
    elif isinstance(part, Mapping):
        yield f"mapping {len(part)}\n".encode()
        for key in sorted(part):
            yield from _pieces(key)
            yield from _pieces(part[key])
    elif isinstance(part, list | tuple):
        yield f"sequence {len(part)}\n".encode()
        for child in part:
            yield from _pieces(child)
    else:
        raise TypeError(f"a digest covers plain values and arrays, not {type(part).__name__}")


def weights(state: Mapping[str, Any]) -> str:
    """Return the digest of the tensors in a network's `state_dict`, however they are named and ordered."""
    return in_any_order(digest(value.detach().numpy()) for value in state.values())


def in_any_order(digests: Iterable[str]) -> str:
    """Return the digest of a collection of digests whose order is of no account."""
    return digest(sorted(digests))


def trajectory(found: Trajectory) -> str:
    """Return the digest of the rewrites, with the graphs and prices on the way."""
    start = (found.start_hash, found.start_runtime_ms, found.cost_model, found.library, found.seed, found.matching)
    steps = [(step.rule, step.location, step.hash, step.runtime_ms, step.reward) for step in found.steps]
    return digest(start, steps)


def search(result: OptimisationResult) -> dict[str, str | int]:
    """Return the figures of a search: its best price to the bit, its trajectory, and its effort in counts."""
    milestones = [(one.rewrites, one.prices_measured, one.runtime_ms) for one in result.milestones]
    found: dict[str, str | int] = {
        "best_ms": result.best_ms.hex(),
        "expansions": result.expansions,
        "milestones": digest(milestones),
        "prices_asked": result.effort.prices_asked,
        "prices_measured": result.effort.prices_measured,
        "rewrites": result.effort.rewrites,
        "start_ms": result.start_ms.hex(),
        "steps": len(result.trajectory.steps),
        "trajectory": trajectory(result.trajectory),
    }
    if (known := result.optimality) is not None:
        found["optimality"] = digest(known.proven, known.bound_ms, known.gap_percent, known.limited_by)
    return found
