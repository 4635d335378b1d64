"""Run a study by its name: `make study NAME=headroom`, or `python pipelines/study.py headroom 'methods=[greedy]'`.

A study lies in `pipelines/studies/<study>`, and its program in the module of that name; `learned.delivered` names
another program of a study, the module `delivered` of `learned`. What follows the name are overrides of conf/study. A
study with a `data/<study>/dvc.yaml` is a DVC project of several programs, which the experiment does not see: its
name runs `dvc repro` there, and what ends it.
"""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

STUDIES = Path(__file__).parent / "studies"
PROJECTS = Path(__file__).parents[1] / "data"
ENDS = {"policy": "policy.ship", "paper": "paper.write_page"}
"""The program that ends a project, where it writes what is no output of DVC."""


def programs() -> dict[str, str]:
    """Return the module of each program by the name under which it is run."""
    modules = [path for path in sorted(STUDIES.glob("*/*.py")) if "\ndef main(" in path.read_text()]
    named = ((path.parent.name, path.stem) for path in modules)
    return {
        study if study == program else f"{study}.{program}": f"studies.{study}.{program}" for study, program in named
    }


def projects() -> list[str]:
    """Return the names of the studies that are DVC projects."""
    return [path.parent.name for path in sorted(PROJECTS.glob("*/dvc.yaml"))]


def main(arguments: list[str]) -> None:
    """Run the program that the first argument names, with the others as its own; exit with a list if there is none."""
    name, *overrides = arguments or [""]
    known = programs()
    if name in projects():
        if failed := subprocess.run(["dvc", "repro", *overrides], cwd=PROJECTS / name).returncode:
            sys.exit(failed)  # DVC has said why
        name, overrides = ENDS.get(name, name), []
    if name in known:
        sys.argv[1:] = overrides
        import_module(known[name]).main()
    elif name not in projects():
        listed = ", ".join(sorted({*known, *projects()}))
        sys.exit(f"python pipelines/study.py NAME [overrides], where NAME is one of: {listed}")


if __name__ == "__main__":
    main(sys.argv[1:])
