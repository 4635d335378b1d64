"""Running the cells of a study: each in a process of its own, a few at a time, none of them twice.

    for key, row in rows(cells, processes=2, folder=Path("kept"), source="9f3a..."):

A row is kept in a file as soon as there is one. When the study is started again after it was killed, rows of the same
cell and the same code are read instead of made. A cell whose process fails has no row, and costs the others nothing.
"""

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from rlflow.atomic_file import written_whole
from rlflow.evaluation.headroom import Cell, Key, Row, run_cell
from rlflow.runtime.isolation import Limits, call_isolated

GRACE_S = 600.0
"""Seconds beyond the time of a search: for reading and comparing models, and for steps that cannot be cut short."""

log = logging.getLogger(__name__)


def rows(cells: Mapping[Key, Cell], *, processes: int, folder: Path, source: str) -> Iterator[tuple[Key, Row]]:
    """Yield the rows as they come, kept ones among them.

    folder: where rows are kept. source: a digest of the code, without which an older version's rows would be taken.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(processes) as pool:
        futures = {pool.submit(_row, cell, folder / _file_name(key, cell, source)): key for key, cell in cells.items()}
        try:
            for future in as_completed(futures):
                row = future.result()
                if row is not None:
                    yield futures[future], row
        finally:
            pool.shutdown(cancel_futures=True)


def _row(cell: Cell, kept: Path) -> Row | None:
    """The cell's row; None, with the reason in the log, if its process failed."""
    if not kept.exists():
        try:
            row = call_isolated(Limits(longest_s=(cell.budget.time_s or 0.0) + GRACE_S), run_cell, cell)
        except Exception as error:
            log.error("%s has no result: %s: %s", kept.stem, type(error).__name__, error)
            return None
        with written_whole(kept) as draft:
            draft.write_text(json.dumps(row))
    content: Row = json.loads(kept.read_text())
    return content


def _file_name(key: Key, cell: Cell, source: str) -> str:
    digest = hashlib.sha256(f"{cell!r} {source}".encode()).hexdigest()
    return f"{'-'.join(key)}-{digest[:16]}.json"
