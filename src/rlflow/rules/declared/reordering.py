"""Transposes and reshapes that meet: two are one, or none.

An example is `cancel-transposes`. The rules of `movement` bring them together; these make them vanish.
"""

from __future__ import annotations

from rlflow.rules.dsl import Rewrite, Tensor, false_control, rule
from rlflow.rules.dsl.operators import Reshape, Transpose
from rlflow.rules.dsl.vocabulary import NewShape, Permutation, Square

FAMILY = "movement"


@rule("compose-transposes")
def compose_transposes(x: Tensor, p: Permutation, q: Permutation) -> Rewrite:
    """Two transposes are one."""
    return Rewrite(
        Transpose(Transpose(x, perm=p), perm=q),
        Transpose(x, perm=p.then(q)),
        where=[~p.then(q).is_identity()],
    )


@rule("cancel-transposes")
def cancel_transposes(x: Tensor, p: Permutation, q: Permutation) -> Rewrite:
    """A transpose and its inverse are none."""
    return Rewrite(Transpose(Transpose(x, perm=p), perm=q), x, where=[p.then(q).is_identity()])


@rule("drop-identity-transpose")
def drop_identity_transpose(x: Tensor, p: Permutation) -> Rewrite:
    """A transpose that leaves every axis where it is does nothing."""
    return Rewrite(Transpose(x, perm=p), x, where=[p.is_identity()])


@rule("compose-reshapes")
def compose_reshapes(x: Tensor, t: NewShape, u: NewShape) -> Rewrite:
    """Two reshapes are the second one, unless it copies a dimension of the first."""
    return Rewrite(Reshape(Reshape(x, shape=t), shape=u), Reshape(x, shape=u), where=[~u.contains(0), u != x.shape])


@rule("cancel-reshapes")
def cancel_reshapes(x: Tensor, t: NewShape, u: NewShape) -> Rewrite:
    """A reshape back to the first shape undoes the one before."""
    return Rewrite(Reshape(Reshape(x, shape=t), shape=u), x, where=[u == x.shape])


@rule("drop-identity-reshape")
def drop_identity_reshape(x: Tensor, t: NewShape) -> Rewrite:
    """A reshape to the shape that the tensor has does nothing."""
    return Rewrite(Reshape(x, shape=t), x, where=[t == x.shape])


@false_control("transpose-is-identity", of="drop-identity-transpose")
def transpose_is_identity(a: Square) -> Rewrite:
    """False: only the types are alike."""
    return Rewrite(Transpose(a, perm=[1, 0]), a)
