"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from rlflow.schemas.figures import NOT_EMPTY, Cases, Count, Document, Error, Milliseconds, Seconds, Share, Text


class Family(Document):
    """The regions of one family of graphs."""

    regions: Count
    rewrites: Count
    graphs: Count


class Noise(Document):
    """Differences between repeated measurements."""

    regions: Cases
    """Of this size."""
    sigma_percent_median: Error | None
    """The standard error that is written beside a time, in percent of it."""
    sigma_percent_p90: Error | None
    """Its 90 % quantile."""
    again_percent_median: Error | None
    """Difference of two timings of a region in batches far apart, at one pace of the probe."""
    again_percent_p90: Error | None
    """Its 90 % quantile."""
    again_percent_median_without_probe: Error | None
    """The trivial baseline: the same difference as the clock told it."""
    again_within_two_sigma: Share | None
    """Of those differences, the share below twice the standard error that the two claim."""
    cases: Count
    """Regions that were timed twice."""


class Prices(Document):
    """The measured regions of data/regions: how many, whence, how long they take and how noisy that is."""

    regions: Cases
    """Distinct regions that were timed."""
    rewrites: Count
    """Rewrites of which every region was timed."""
    graphs: Count
    """Whole graphs of which every region was timed."""
    configurations: Count
    """Models of the zoo with settings, of which there is a whole graph."""
    families: Annotated[dict[str, Family], NOT_EMPTY]
    operators: Annotated[dict[str, Cases], NOT_EMPTY]
    """Regions that have an operator."""
    ms_quantiles: Annotated[dict[str, Milliseconds], NOT_EMPTY]
    """Percent -> milliseconds."""
    noise: Annotated[dict[str, Noise], NOT_EMPTY]
    """By the size of the region."""
    gathered: Cases
    """Distinct regions that searches and walks met, and that could be timed."""
    left_out: dict[str, Cases]
    """Reason -> distinct regions that could not be timed, by family."""
    refused: Count
    """Regions that the runtime refused."""
    pace_ms: Milliseconds
    """Of the probe, to whose pace all times are scaled."""
    seconds_per_price: Seconds
    """Of measuring."""
    file_bytes: Cases
    """Of the three compressed files."""
    hardware: Text
    runtime_version: Text
    protocol: Cases
    """Version of the protocol of timing."""


DOCUMENTS = {"prices/metrics.json": Prices}
"""Types of results files, by the pattern that the end of a file's path matches."""
