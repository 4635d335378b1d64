"""Compute the golden set, and compare it with the file or write it anew: `make golden`."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Iterable

import torch
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from support.golden.file import MACHINE, PROCESSOR, Difference, Entries, differences, read, write
from support.golden.machine import machine
from support.golden.sections import SECTIONS

_LOGGER = logging.getLogger("golden")


def main() -> int:
    """Return the exit status: 0 if nothing differs, 1 if something does."""
    asked = _arguments()
    if os.environ.get("OMP_NUM_THREADS") != "1":
        sys.exit("sums of floats follow the number of threads: set OMP_NUM_THREADS=1, as `make golden` does")
    torch.set_num_threads(1)
    recorded, here = read(), machine()
    names = [name for name in SECTIONS if name in asked.sections or not asked.sections]
    if PROCESSOR in names and not asked.write and (other := [*differences(MACHINE, recorded.get(MACHINE, {}), here)]):
        _LOGGER.warning("skipped %s, which was recorded on another machine: %s", PROCESSOR, _listed(other))
        names.remove(PROCESSOR)
    with logging_redirect_tqdm():
        found = {name: _computed(name) for name in names}
    if asked.write:
        write({**recorded, **found, **({MACHINE: here} if PROCESSOR in found else {})})
        return 0
    return _compared(recorded, found)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m support.golden", description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"the sections to compute, all by default: {', '.join(SECTIONS)}")
    parser.add_argument("--write", action="store_true", help="write what is computed in place of what is recorded")
    asked = parser.parse_args()
    if unknown := [name for name in asked.sections if name not in SECTIONS]:
        parser.error(f"there is no section {', '.join(unknown)}: choose among {', '.join(SECTIONS)}")
    return asked


def _computed(name: str) -> Entries:
    """Return the values of a section; log how long it took."""
    started, entries = time.perf_counter(), SECTIONS[name]()
    values = {}
    with tqdm(entries.items(), desc=name, unit="entry", leave=False) as bar:
        for entry, compute in bar:
            bar.set_postfix_str(entry, refresh=True)
            values[entry] = compute()
    _LOGGER.info("%s: %d entries in %.0f s", name, len(values), time.perf_counter() - started)
    return values


def _compared(recorded: dict[str, Entries], found: dict[str, Entries]) -> int:
    different = [one for name, entries in found.items() for one in differences(name, recorded.get(name, {}), entries)]
    for one in different:
        _LOGGER.error("%s", one)
    _LOGGER.info("%d values differ in %d entries", len(different), sum(map(len, found.values())))
    return 1 if different else 0


def _listed(different: Iterable[Difference]) -> str:
    return "; ".join(map(str, different))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
    _LOGGER.setLevel(logging.INFO)
    sys.exit(main())
