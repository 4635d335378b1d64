"""Exact fingerprints of many expressions at once.

A fingerprint is a digest of an expression's values over the finite field at a few random points (trials). Equal
expressions have equal fingerprints, and unequal ones differ except with negligible probability over the points: the
values are hashed and never mixed arithmetically, so that no structure of theirs can cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from rlflow.ir.node import Attributes
from rlflow.ops.domain import Array
from rlflow.ops.field import FieldArray, FieldDomain, undefined
from rlflow.ops.registry import OPERATORS


@dataclass(frozen=True)
class Trials:
    """The random points at which all expressions of one enumeration are evaluated.

    The first are `independent`. If there are `variables`, one more point follows, and for each variable another that
    differs from it in this variable alone, to show on which variables an expression depends.
    """

    seeds: tuple[int, ...]
    variables: int = 0

    @staticmethod
    def draw(count: int, rng: np.random.Generator, variables: int = 0) -> Trials:
        """Draw so many independent points, and those that tell on which variables an expression depends."""
        *seeds, shared = rng.integers(1 << 62, size=count + 1).tolist()
        return Trials((*seeds, *[shared] * (1 + variables if variables else 0)), variables)

    @property
    def independent(self) -> int:
        """The number of independent points, which come first."""
        return len(self.seeds) - (1 + self.variables if self.variables else 0)

    def leaf(self, number: int, value: FieldArray) -> FieldArray:
        """Return the values of a variable at all points, from independent ones for each point (points, *shape)."""
        # Beyond the independent points all share one value, except for the point at which this variable differs.
        rows = np.arange(len(self.seeds))
        rows[self.independent :] = self.independent
        if self.variables:
            rows[self.independent + 1 + number] += 1
        return rowwise(value, rows)

    def evaluate(self, op: str, attributes: Attributes, operands: Sequence[Array], output: int = 0) -> FieldArray:
        """Compute an output of an operator on stacks of expressions (expressions * trials, *shape) and on indices.

        At least one operand is a stack. Raises `NoExponentError` if the field has no such value.
        """
        domain = FieldDomain(self.seeds, repeats=operands[0].residue.shape[0] // len(self.seeds))
        return OPERATORS[op].evaluate(domain, attributes, operands)[output]  # type: ignore[no-any-return]

    def digests(self, stack: FieldArray) -> list[bytes]:
        """Return the fingerprint of each expression of a stack."""
        rows = self._by_point(stack.marked)[:, : self.independent].astype(np.int32)
        return [sha256(row.tobytes()).digest() for row in rows]  # fast: processors have instructions for SHA-256

    def idle(self, stack: FieldArray) -> np.ndarray:
        """Tell which variables each expression does not depend on, (expressions, variables) bool."""
        points = self._by_point(stack.residue)[:, self.independent :]
        return np.asarray((points[:, 1:] == points[:, :1]).all(axis=2))

    def _by_point(self, values: np.ndarray) -> np.ndarray:
        """Reshape a stack's values to (expressions, points, elements)."""
        return values.reshape(len(values) // len(self.seeds), len(self.seeds), -1)

    def constant(self, stack: FieldArray) -> np.ndarray:
        """Tell which expressions are one number wherever they are defined, like x - x or x / x, (expressions,) bool."""
        residues = stack.residue.reshape(stack.residue.shape[0] // len(self.seeds), -1)
        return np.asarray((residues == residues[:, :1]).all(axis=1))


def stacked(values: Sequence[FieldArray]) -> FieldArray:
    """Stack expressions of one shape, all or none of which have exponents."""
    exponents = [v.exponent for v in values if v.exponent is not None]
    defined = all(v.undefined is None for v in values)
    return FieldArray(
        np.concatenate([v.residue for v in values]),
        np.concatenate(exponents) if exponents else None,
        None if defined else np.concatenate([undefined(v) for v in values]),
    )


def taken(stack: FieldArray, places: np.ndarray, trials: int) -> FieldArray:
    """Return the expressions at `places` (count,) of a stack, each with all its trials."""
    return rowwise(stack, (places[:, None] * trials + np.arange(trials)).reshape(-1))


def rowwise(stack: FieldArray, rows: np.ndarray) -> FieldArray:
    """Return the rows of a stack at these places."""
    return stack.each(lambda part: part[rows])
