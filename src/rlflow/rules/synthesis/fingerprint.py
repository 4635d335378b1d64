"""Exact fingerprints of many expressions at once.

A fingerprint is a digest of an expression's values over the finite field in a few trials. It is exact up to the
trials: nothing is mixed arithmetically, so that no structure of the values can cancel in it.
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
    """The random points at which all expressions of one enumeration are evaluated: `independent` ones, then, if any
    `variables` are given, a point and for each variable another that differs from it in this variable alone.
    """

    seeds: tuple[int, ...]
    variables: int = 0

    @staticmethod
    def draw(count: int, rng: np.random.Generator, variables: int = 0) -> Trials:
        *seeds, shared = rng.integers(1 << 62, size=count + 1).tolist()
        return Trials((*seeds, *[shared] * (1 + variables if variables else 0)), variables)

    @property
    def independent(self) -> int:
        return len(self.seeds) - (1 + self.variables if self.variables else 0)

    def leaf(self, number: int, value: FieldArray) -> FieldArray:
        """The values of the variable of this number, given one for each point (points, *shape)."""
        rows = np.arange(len(self.seeds))
        rows[self.independent :] = self.independent
        if self.variables:
            rows[self.independent + 1 + number] += 1
        return rowwise(value, rows)

    def evaluate(self, op: str, attributes: Attributes, operands: Sequence[Array], output: int = 0) -> FieldArray:
        """This output of the operator on stacks of expressions (expressions * trials, *shape), one at least, and on
        indices.

        `NoExponentError` where the field has no answer.
        """
        domain = FieldDomain(self.seeds, repeats=operands[0].residue.shape[0] // len(self.seeds))
        return OPERATORS[op].evaluate(domain, attributes, operands)[output]  # type: ignore[no-any-return]

    def digests(self, stack: FieldArray) -> list[bytes]:
        """One fingerprint an expression."""
        rows = self._by_point(stack.marked)[:, : self.independent].astype(np.int32)
        return [sha256(row.tobytes()).digest() for row in rows]  # processors have instructions for it

    def idle(self, stack: FieldArray) -> np.ndarray:
        """Of each expression the variables that it does not depend on, (expressions, variables)."""
        points = self._by_point(stack.residue)[:, self.independent :]
        return np.asarray((points[:, 1:] == points[:, :1]).all(axis=2))

    def _by_point(self, values: np.ndarray) -> np.ndarray:
        """(expressions, points, elements)."""
        return values.reshape(len(values) // len(self.seeds), len(self.seeds), -1)

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
    return rowwise(stack, (places[:, None] * trials + np.arange(trials)).reshape(-1))


def rowwise(stack: FieldArray, rows: np.ndarray) -> FieldArray:
    """The members of a batch at these places."""
    return stack.each(lambda part: part[rows])
