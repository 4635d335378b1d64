"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from rlflow.schemas.figures import DIGITS, NOT_EMPTY, Cases, Document, Milliseconds, Percent, Text


class KernelDifference(Document):
    """Kernels of one kind that compute nodes of several regions, or of none."""

    kernel: Text
    nodes: str
    """The operators that it computes, region by region."""
    percent: Percent
    """Their share of the time, of the model and of all that it was rewritten to."""
    kernels: Cases


class Difference(Document):
    """The share of a model's time that ONNX Runtime spends in kernels which compute nodes of several regions."""

    model_ms: Annotated[Milliseconds, DIGITS]
    differs_percent: Annotated[Percent, DIGITS]
    node_by_node_percent: Annotated[Percent, DIGITS]
    """The same where each operator is a region: the baseline."""
    rewritten_percent: Annotated[list[Percent], DIGITS]
    """The same of the model after each of the walks by drawn rewrites."""
    worst: list[KernelDifference]
    """The kinds of kernels that make up most of the difference, of the model and of all that it was rewritten to."""


Borders = Annotated[dict[str, Difference], NOT_EMPTY]
"""Graph -> its difference."""

DOCUMENTS = {"borders/metrics.json": Borders}
"""Types of results files, by the pattern that the end of a file's path matches."""
