"""Running the cells of a study: each in a process of its own, a few at a time, none of them twice.

    for key, row in rows(cells, processes=2, folder=Path("kept")):           those of the headroom study
    row = kept_row(Path("kept/bert-greedy.json"), 600.0, run_case, case)     one of any study

A row is kept in a file as soon as there is one, and read from there when a study that was killed is started again. A
cell whose process fails has no row, and costs the others nothing.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

from rlflow.atomic_file import written_whole
from rlflow.runtime.isolation import Limits, call_isolated
from studies.headroom.cells import Cell, Key, Row, run_cell

GRACE_S = 600.0
"""Seconds beyond the time of a search: for reading and comparing models, and for steps that cannot be cut short."""

log = logging.getLogger(__name__)

T = TypeVar("T")
K = TypeVar("K", bound=tuple[object, ...])


def rows(cells: Mapping[Key, Cell], *, processes: int, folder: Path) -> Iterator[tuple[Key, Row]]:
    """The rows of the headroom study, as `kept_rows` yields them."""
    return kept_rows(cells, run_cell, lambda cell: (cell.budget.time_s or 0.0) + GRACE_S, processes, folder)


def kept_rows(
    cells: Mapping[K, T], run: Callable[[T], Row], longest_s: Callable[[T], float], processes: int, folder: Path
) -> Iterator[tuple[K, Row]]:
    """Yield the rows as they come, so many cells at a time, those first that the folder has already."""
    with ThreadPoolExecutor(processes) as pool:
        futures = {
            pool.submit(kept_row, kept_file(folder, key), longest_s(cell), run, cell): key
            for key, cell in cells.items()
        }
        try:
            for future in as_completed(futures):
                row = future.result()
                if row is not None:
                    yield futures[future], row
        finally:
            pool.shutdown(cancel_futures=True)


def kept_file(folder: Path, key: tuple[object, ...]) -> Path:
    """The file in which the row of a cell is kept."""
    return folder / f"{'-'.join(map(str, key)).replace(' ', '_').replace('/', '_')}.json"


def kept_row(kept: Path, longest_s: float, run: Callable[[T], Row], cell: T) -> Row | None:
    """Return the row that a file keeps, which `run` makes of the cell if there is none.

    None, with the reason in the log, if its process failed or took longer than `longest_s`.
    """
    if not kept.exists():
        try:
            row = call_isolated(Limits(longest_s=longest_s), run, cell)
        except Exception as error:
            log.error("%s has no result: %s: %s", kept.stem, type(error).__name__, error)
            return None
        with written_whole(kept) as draft:
            draft.write_text(json.dumps(row))
    content: Row = json.loads(kept.read_text())
    return content
