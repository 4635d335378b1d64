"""Make what several jobs of a sweep have in common once, and link it into the folder of each.

    with made_once(shared / key, ["data/rollouts"], folder) as is_there:
        if not is_there:
            ...                                                    writes folder/data/rollouts

A job waits where another is at the same work. The invariant: what is shared is there as a whole or not at all, and is
never written to again, as all outputs are replaced, not changed.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from rlflow.atomic_file import written_whole


@contextmanager
def made_once(shared: Path, outputs: Sequence[str], folder: Path) -> Iterator[bool]:
    """Yield True if `shared` has the outputs, which then lie in `folder`, too; else share those that the body makes.

    outputs: files and folders, relative to `folder`. Both folders are on one file system. A body that fails shares
    nothing.
    """
    shared.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{shared}.lock"):
        is_there = shared.is_dir()
        if is_there:
            _link(outputs, shared, folder)
        yield is_there
        if not is_there:
            with written_whole(shared) as draft:
                _link(outputs, folder, draft)


def _link(outputs: Sequence[str], source: Path, target: Path) -> None:
    for path in outputs:
        found, place = source / path, target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        if found.is_dir():
            shutil.copytree(found, place, copy_function=os.link)
        else:
            os.link(found, place)
