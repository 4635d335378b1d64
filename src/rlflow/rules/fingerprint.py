"""Exact fingerprints of many expressions at once.

A fingerprint is a digest of an expression's values over the finite field in a few trials. It is exact up to the
trials: nothing is mixed arithmetically, so that no structure of the values can cancel in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from rlflow.ir.graph import Attributes
from rlflow.ops.field import FieldArray, FieldDomain, undefined
from rlflow.ops.registry import OPERATORS


@dataclass(frozen=True)
class Trials:
    """The random points at which all expressions of one enumeration are evaluated."""

    seeds: tuple[int, ...]

    @staticmethod
    def draw(count: int, rng: np.random.Generator) -> Trials:
        return Trials(tuple(rng.integers(1 << 62, size=count).tolist()))

    def leaf(self, shape: tuple[int, ...], rng: np.random.Generator) -> FieldArray:
        """A variable's values (trials, *shape)."""
        return FieldDomain(self.seeds).draw(shape, rng)

    def evaluate(self, op: str, attributes: Attributes, operands: Sequence[FieldArray]) -> FieldArray:
        """The operator on stacks of expressions (expressions * trials, *shape); it must have one output.

        `NoExponentError` where the field has no answer.
        """
        count = operands[0].residue.shape[0] // len(self.seeds)
        (value,) = OPERATORS[op].evaluate(FieldDomain(self.seeds, repeats=count), attributes, operands)
        return value  # type: ignore[no-any-return]

    def digests(self, stack: FieldArray) -> list[bytes]:
        """One fingerprint an expression."""
        defined = (stack.residue if stack.undefined is None else np.where(stack.undefined, -1, stack.residue)).astype(
            np.int32
        )
        rows = np.ascontiguousarray(defined.reshape(defined.shape[0] // len(self.seeds), -1))
        return [blake2b(row.tobytes(), digest_size=16).digest() for row in rows]

    def constant(self, stack: FieldArray) -> np.ndarray:
        """Of each expression whether it is the same number wherever it is defined, like x - x or x / x."""
        residues = stack.residue.reshape(stack.residue.shape[0] // len(self.seeds), -1)
        return np.asarray((residues == residues[:, :1]).all(axis=1))


def stacked(values: Sequence[FieldArray]) -> FieldArray:
    """Expressions of one shape as a stack; either all or none have exponents."""
    exponents = [v.exponent for v in values if v.exponent is not None]
    defined = all(v.undefined is None for v in values)
    return FieldArray(
        np.concatenate([v.residue for v in values]),
        np.concatenate(exponents) if exponents else None,
        None if defined else np.concatenate([undefined(v) for v in values]),
    )


def taken(stack: FieldArray, places: np.ndarray, trials: int) -> FieldArray:
    """The expressions at `places` (count,) of a stack, each with all its trials."""
    rows = (places[:, None] * trials + np.arange(trials)).reshape(-1)
    return FieldArray(
        stack.residue[rows],
        None if stack.exponent is None else stack.exponent[rows],
        None if stack.undefined is None else stack.undefined[rows],
    )
