"""The documents of the study."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from rlflow.schemas.figures import NOT_EMPTY, Cases, Count, Document, Error, Milliseconds, Percent, Seconds, Share


class Aims(Document):
    """Goals that predicted prices are to reach."""

    share: Share
    """Of what the measured search saves, that another is to find."""
    time: Share
    """Of what the measured search takes, that another may take."""


T = TypeVar("T")


class PerCost(Document, Generic[T]):
    """A figure of the same search by each cost model."""

    predicted: T
    analytic: T
    measured: T


class Search(Document):
    """One search by one cost model."""

    wall_time_s: Seconds
    """From before its prices are made ready to its end, with no price known."""
    promised_percent: Percent
    """Saving by the search's own prices."""
    steps: Count
    """Rewrites that lead to the best graph."""
    rewrites: Count
    """Rewrites carried out."""
    prices_asked: Count
    prices_measured: Count


class Priced(Document):
    """The results, told in measured prices."""

    original_ms: Milliseconds
    """Measured price of the original."""
    vacuous: bool
    """The measured search saves nothing beyond its noise: there is nothing to find."""
    saved_percent: PerCost[Percent]
    """Of the original's price, by what the search by these prices found."""
    noise_percent: PerCost[Error]
    """Noise of what is saved, one sigma, in percent of the original's price."""
    dearer: PerCost[bool]
    """What the search by these prices found is dearer than the original beyond noise."""
    share_of_measured: PerCost[float | None]
    """Of what the measured search saves; above 1 if it is more; null where the case is vacuous."""
    share_noise: PerCost[Error | None]
    """Noise of that share, one sigma; null where the case is vacuous."""


class Row(Document):
    """One method on one graph."""

    searches: PerCost[Search]
    frozen: Priced
    """By the list of the measured search, to which what is missing was added."""
    anew: Priced
    """By the mean of lists that no search has seen: that of the measured search flatters what it chose."""


class Worth(Document):
    """Shares of what the search by measured prices saves."""

    median: float | None
    """Null where every case is vacuous, like the smallest."""
    smallest: float | None
    """Of the graphs' shares."""
    reached: Count
    """Graphs on which the share is at least the aim."""
    cases: Count
    """Graphs on which there is something to find."""
    dearer: Count
    """Graphs on which what was found is dearer than the original beyond noise, those among them on which there is
    nothing to find.
    """


class TimeRatio(Document):
    """Time of the search over that by measured prices."""

    median: Error
    largest: Error
    within: Count
    """Graphs on which the search takes no larger part of the measured one's time than the aim admits."""
    cases: Cases


class Summary(Document):
    """One cost model over all graphs."""

    frozen: Worth
    anew: Worth
    time_ratio: TimeRatio


class Method(Document):
    """One method by each of two cost models."""

    predicted: Summary
    analytic: Summary


class PriceSearch(Document):
    """Results of searches by predicted prices, in measured ones, beside those of the same searches by measured prices.

    The latter begin with an empty list. There are two baselines: the same searches by the roofline's prices, and doing
    nothing, whose share is 0.
    """

    aims: Aims
    graphs: Annotated[dict[str, Annotated[dict[str, Row], NOT_EMPTY]], NOT_EMPTY]
    """Graph -> method."""
    methods: Annotated[dict[str, Method], NOT_EMPTY]
    """Method -> prices, over all graphs."""


DOCUMENTS = {"price_search/metrics.json": PriceSearch}
"""Types of results files, by the pattern that the end of a file's path matches."""
