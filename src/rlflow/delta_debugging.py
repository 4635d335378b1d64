"""Delta debugging: the smallest part of a list that still fails (Zeller and Hildebrandt 2002, algorithm ddmin).

    smallest_failing((1, 2, 3, 4), lambda part: 3 in part)      # (3,)

If half of the items alone fail, that half is taken; if not, ever smaller parts are left out, as long as the rest fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Item = TypeVar("_Item")


def smallest_failing(items: tuple[_Item, ...], fails: Callable[[tuple[_Item, ...]], bool]) -> tuple[_Item, ...]:
    """Return a part of `items`, which fail together, that fails and does not fail without any one of its own items."""
    pieces = 2
    while len(items) > 1:
        cuts = [len(items) * i // pieces for i in range(pieces + 1)]
        parts = [items[cuts[i] : cuts[i + 1]] for i in range(pieces)]
        rests = [items[: cuts[i]] + items[cuts[i + 1] :] for i in range(pieces)]

        if part := next(filter(fails, parts), None):
            items, pieces = part, 2
        elif rest := next(filter(fails, rests), None):
            items, pieces = rest, max(pieces - 1, 2)
        elif pieces < len(items):
            pieces = min(2 * pieces, len(items))
        else:
            break
    return items
