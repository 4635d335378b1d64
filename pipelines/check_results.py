"""Check all results files against their types: `python pipelines/check_results.py`, or with another folder.

    python pipelines/check_results.py                                         # data/results
    python pipelines/check_results.py --page                                  # docs/figures.md: which code made which
    python pipelines/check_results.py --schema data/results/evaluate/metrics.json    # JSON Schema of such a file

Exit code 1, naming what is wrong with which file and where in it, if one is not as it must be. Files whose code has
changed since they were made are named as well; they are no problem, but want to be made again before anyone quotes
them.
"""

import argparse
import json
import sys
from pathlib import Path

from studies.documents import check_results, document_type
from studies.published import PAGE, outdated, page

from rlflow.atomic_file import written_whole
from rlflow.schemas import json_schema


def main(arguments: list[str]) -> int:
    """Check what the command line names, or print a JSON Schema; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("data/results"), help="where the results lie")
    parser.add_argument("--schema", type=Path, metavar="FILE", help="print the JSON Schema of a results file")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE}: which code made which file")
    given = parser.parse_args(arguments)
    if given.page:
        with written_whole(Path(PAGE)) as draft:
            draft.write_text(page(Path()), encoding="utf-8")
        return 0
    if given.schema is not None:
        if (kind := document_type(given.schema)) is None:
            sys.stderr.write(f"{given.schema}: no type of documents belongs to this file\n")
            return 2
        sys.stdout.write(json.dumps(json_schema(kind), indent=2) + "\n")
        return 0
    problems = check_results(given.folder)
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    if problems:
        sys.stderr.write(f"{len(problems)} problems in {given.folder}\n")
        return 1
    sys.stdout.write(f"{given.folder}: every results file agrees with its type.\n")
    sys.stdout.writelines(f"{note}\n" for note in outdated(given.folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
