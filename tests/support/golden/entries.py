"""The type of an entry that has still to be computed."""

from collections.abc import Callable

from support.golden.digests import Value

Compute = Callable[[], Value]
