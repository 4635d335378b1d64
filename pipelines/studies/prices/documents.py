"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from rlflow.schemas.figures import NOT_EMPTY, Cases, Count, Document, Error, Milliseconds, Share, Text


class Family(Document):
    """The regions of one family of graphs."""

    regions: Count
    """Met in it first."""
    graphs: Count


class Claims(Document):
    """Graphs that the price model said to run 1.01 times as fast as their originals or faster, and their true speed."""

    claimed: Cases
    faster: Share
    """Of those, the ones that were."""
    surely_faster: Count
    """The ones whose 95 % interval lies above 1; one round has none."""
    surely_slower: Count
    """The ones whose interval lies below 1."""
    slower_by_2_percent: Count
    """The ones that ran 0.98 times as fast or slower."""
    told: Annotated[float, Meta(gt=0)]
    """Median of how many times as fast they were said to be."""
    real: Annotated[float, Meta(gt=0)]
    """The same of how fast they were."""
    worst: Annotated[float, Meta(gt=0)]
    """The slowest of them."""


class Prices(Document):
    """The measured graphs of data/regions: how many, whence, how long their regions take and how noisy that is."""

    regions: Cases
    """Distinct regions."""
    graphs: Cases
    """Graphs that were run."""
    times: Cases
    """Of regions in graphs."""
    processors: Annotated[dict[str, Cases], NOT_EMPTY]
    """Graphs by processor."""
    families: Annotated[dict[str, Family], NOT_EMPTY]
    operators: Annotated[dict[str, Cases], NOT_EMPTY]
    """Regions that have an operator."""
    ms_quantiles: Annotated[dict[str, Milliseconds], NOT_EMPTY]
    """Percent -> milliseconds of a region."""
    sigma_percent_median: Error
    """Standard error of a graph's time, in percent of it."""
    sigma_percent_p90: Error
    """Its 90 % quantile."""
    differs_percent: Error
    """Of the time on this processor, what kernels take that compute nodes of several regions."""
    claims: dict[str, dict[str, Claims]]
    """Processor -> how they were found, and in which round -> what became of them."""
    left_out: dict[str, Cases]
    """Reason -> graphs that were not run."""
    file_bytes: Cases
    """Of the two compressed files."""
    hardware: Text
    """The processor that was measured last."""
    runtime_version: Text


DOCUMENTS = {"prices/metrics.json": Prices}
"""Types of results files, by the pattern that the end of a file's path matches."""
