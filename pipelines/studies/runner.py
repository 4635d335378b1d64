"""Running the cells of a study: each in a process of its own, a few at a time, none of them twice.

    rows = kept_rows(cells, run_cell, lambda cell: 600.0, processes=2, folder=Path("kept"))
    found = gathered(cells, rows, on_row, on_progress)     by key, in the order of the cells; each is logged as it comes

A row is kept in a file as soon as there is one, and read from there when a study that was killed is started again. A
cell whose process fails has no row, and costs the others nothing.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec import convert

from rlflow.kept import Kept
from rlflow.method import OnProgress
from rlflow.runtime.isolation import Limits, call_isolated
from rlflow.schemas import plain

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", bound=tuple[object, ...])


def gathered(
    cells: Collection[K], rows: Iterable[tuple[K, T]], on_row: Callable[[K, T], str], on_progress: OnProgress
) -> dict[K, T]:
    """Return the rows by key, in the order of the cells. `on_row` logs each, and says in a few words what it shows."""
    found: dict[K, T] = {}
    on_progress(0.0, f"{len(cells)} cells")
    for key, row in rows:
        found[key] = row
        on_progress(len(found) / len(cells), f"{' '.join(map(str, key))}: {on_row(key, row)}")
    return {key: found[key] for key in cells if key in found}


def kept_rows(
    cells: Mapping[K, T],
    run: Callable[[T], R],
    longest_s: Callable[[T], float],
    processes: int,
    folder: Path,
    kind: Any = Any,
) -> Iterator[tuple[K, R]]:
    """Yield the rows as they come, so many cells at a time, those first that the folder has already.

    kind: the type of rows, if it is not JSON's.
    """
    with ThreadPoolExecutor(processes) as pool:
        futures = {
            pool.submit(kept_row, folder, _file_name(key), longest_s(cell), run, cell, kind): key
            for key, cell in cells.items()
        }
        try:
            for future in as_completed(futures):
                row = future.result()
                if row is not None:
                    yield futures[future], row
        finally:
            pool.shutdown(cancel_futures=True)


def _file_name(key: tuple[object, ...]) -> str:
    return "-".join(map(str, key)).replace(" ", "_").replace("/", "_")


def kept_row(folder: Path, name: str, longest_s: float, run: Callable[[T], R], cell: T, kind: Any = Any) -> R | None:
    """Return the row that is kept under a name, which `run` makes of the cell if there is none.

    None, with the reason in the log, if its process failed or took longer than `longest_s`.
    """
    try:
        kept = Kept[R].as_json(folder, plain, partial(convert, type=kind))
        return kept.get_or(name, partial(call_isolated, Limits(longest_s=longest_s), run, cell))
    except Exception as error:
        log.error("%s has no result: %s: %s", name, type(error).__name__, error)
        return None
