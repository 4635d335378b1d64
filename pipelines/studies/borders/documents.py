"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from rlflow.schemas.figures import DIGITS, NOT_EMPTY, Cases, Count, Document, Milliseconds, Percent

Operators = dict[str, Count]
"""Operator -> how often it runs."""


class RegionDifference(Document):
    """Regions of one kind that run as other kernels inside the model."""

    region: str
    """Its operators with the types of their results."""
    differs_percent: Percent
    """Their share of the price of the model."""
    regions: Cases
    kernels: Operators
    """Those that one of them has alone, and the model has not, or has less often."""


class Difference(Document):
    """The share of a model's price that belongs to regions which run as other kernels inside the model."""

    price_ms: Annotated[Milliseconds, DIGITS]
    """All regions, without the reorders of the blocked layout."""
    differs_percent: Annotated[Percent, DIGITS]
    node_by_node_percent: Annotated[Percent, DIGITS]
    """The same where each operator is a region: the baseline."""
    rewritten_percent: Annotated[list[Percent], DIGITS]
    """The same of the model after each of the walks by drawn rewrites."""
    worst: list[RegionDifference]
    """The kinds of regions that make up most of the difference, of the model and of all that it was rewritten to."""
    missing: Operators
    """Kernels that the model has, and its regions have not, or have less often; of the model and of all that it was
    rewritten to.
    """


Borders = Annotated[dict[str, Difference], NOT_EMPTY]
"""Graph -> its difference."""

DOCUMENTS = {"borders/metrics.json": Borders}
"""Types of results files, by the pattern that the end of a file's path matches."""
