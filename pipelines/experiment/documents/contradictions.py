"""Problems that documents of several kinds can have: keys that go with others, and savings that costs deny."""

from collections.abc import Iterable, Iterator
from typing import Any

PERCENT_POINTS = 0.05
"""Published numbers are rounded; percentages agree with the costs beside them to this many points."""


def lacking(document: dict[str, Any], keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield a problem for each of the keys that a document lacks though it has others that go with them."""
    yield from (("", f"{key!r} is a required key beside the others") for key in keys if key not in document)


def disagreeing_saving(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a problem if the published percents are not what the published costs give, beyond their rounding."""
    before, after, stated = (document[key] for key in ("cost_before_ms", "cost_after_ms", "improvement_percent"))
    expected = 100 * (before - after) / before if before else 0.0
    if abs(expected - stated) > PERCENT_POINTS:
        yield "improvement_percent", f"{stated:.2f}, but the costs give {expected:.2f}"
