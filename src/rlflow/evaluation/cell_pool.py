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
from rlflow.evaluation.headroom import Cell, Key, Row, run_cell
from rlflow.runtime.isolation import Limits, call_isolated

GRACE_S = 600.0
"""Seconds beyond the time of a search: for reading and comparing models, and for steps that cannot be cut short."""

log = logging.getLogger(__name__)

T = TypeVar("T")


def rows(cells: Mapping[Key, Cell], *, processes: int, folder: Path) -> Iterator[tuple[Key, Row]]:
    """Yield the rows as they come, those first that the folder has from the same cells and the same code."""
    with ThreadPoolExecutor(processes) as pool:
        futures = {
            pool.submit(
                kept_row, folder / f"{'-'.join(key)}.json", (cell.budget.time_s or 0.0) + GRACE_S, run_cell, cell
            ): key
            for key, cell in cells.items()
        }
        try:
            for future in as_completed(futures):
                row = future.result()
                if row is not None:
                    yield futures[future], row
        finally:
            pool.shutdown(cancel_futures=True)


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
