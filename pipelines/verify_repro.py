"""Compare a fresh run of the experiment with the published one: what is reproduced, and what is not.

    python pipelines/verify_repro.py                      # what `dvc repro` left here, with the last commit
    python pipelines/verify_repro.py other/checkout       # another checkout, with the last commit
    python pipelines/verify_repro.py v2 --published v1    # two revisions
    python pipelines/verify_repro.py --json

A run is what `dvc.yaml` lists as outputs: results files, whose types say how their figures reproduce, and others,
whose digests are in dvc.lock. Exit code 0 if it is reproduced, 1 if not, 2 if there is nothing to compare.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path

from experiment.documents import DOCUMENTS
from experiment.documents.reproduction import ReproductionReport
from experiment.reproduction import Run, reproduction
from experiment.reproduction_report import report, show
from experiment.results import type_of
from rich.console import Console
from tracking.declaration import digests, outputs_by_kind
from tracking.provenance import changed, commit_of, committed

from rlflow import schemas
from rlflow.errors import InputError

LOCK = "dvc.lock"
HERE = "the working tree"
REWRITTEN = ("data/results", LOCK, "params.yaml")
COLUMNS = 160  # of tables in a file or a log
RESTORE = f"The published results are in git: `git checkout HEAD -- {' '.join(REWRITTEN)}` brings them back."


def run_of(place: str, root: Path) -> Run:
    """The run that lies in a folder, which a checkout is, or in a git revision of `root`. InputError if in neither."""
    if (root / place).is_dir():
        text = partial(_text, root / place)
    elif commit_of(root, place) is not None:
        text = partial(committed, root, revision=place)
    else:
        raise InputError(f"{place} is neither a folder nor a revision that git knows in {root}")
    return Run(HERE if place == "." else place, text, digests(text(LOCK) or ""))


def _text(folder: Path, path: str) -> str | None:
    return (folder / path).read_text(encoding="utf-8") if (folder / path).is_file() else None


def verify(root: Path, published: str, fresh: str) -> dict:
    """The `ReproductionReport` on two runs of the experiment that `root`/dvc.yaml declares."""
    outputs = outputs_by_kind(root)
    files = [path for path in outputs if type_of(Path(path), DOCUMENTS)]
    kinds = {path: kind for path, kind in outputs.items() if kind is not None}
    before, now = run_of(published, root), run_of(fresh, root)
    document = report(reproduction(files, kinds, before, now), before.name, now.name)
    schemas.validate(ReproductionReport, document)
    return document


def main(arguments: list[str], root: Path) -> int:
    """Tell of the comparison that the command line asks for; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fresh", nargs="?", default=".", help="folder or git revision of the fresh run")
    parser.add_argument("--published", default="HEAD", help="folder or git revision to compare with")
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    given = parser.parse_args(arguments)
    try:
        document = verify(root, given.published, given.fresh)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if given.json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        show(document, Console(width=None if sys.stdout.isatty() else COLUMNS))
        if given.fresh == "." and changed(root, *REWRITTEN):
            sys.stdout.write(f"{RESTORE}\n")
    return 0 if document["reproduced"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path.cwd()))
