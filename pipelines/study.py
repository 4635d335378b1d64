"""Run a study by its name: `make study NAME=headroom`, or `python pipelines/study.py headroom 'methods=[greedy]'`.

A study lies in `pipelines/studies/<study>`, and its program in the module of that name; `learned.delivered` names
another program of a study, the module `delivered` of `learned`. What follows the name are overrides of conf/study.
"""

import sys
from importlib import import_module
from pathlib import Path

STUDIES = Path(__file__).parent / "studies"


def programs() -> dict[str, str]:
    """Return the module of each program by the name under which it is run."""
    modules = [path for path in sorted(STUDIES.glob("*/*.py")) if "\ndef main(" in path.read_text()]
    named = ((path.parent.name, path.stem) for path in modules)
    return {
        study if study == program else f"{study}.{program}": f"studies.{study}.{program}" for study, program in named
    }


def main(arguments: list[str]) -> None:
    """Run the program that the first argument names, with the others as its own; exit with a list if there is none."""
    known = programs()
    if not arguments or arguments[0] not in known:
        sys.exit(f"python pipelines/study.py NAME [overrides], where NAME is one of: {', '.join(known)}")
    sys.argv[1:] = arguments[1:]
    import_module(known[arguments[0]]).main()


if __name__ == "__main__":
    main(sys.argv[1:])
