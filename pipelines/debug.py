"""Run all stages one after another in this process, on the tiny experiment: `make debug`.

    python pipelines/debug.py                               # experiment=smoke
    python pipelines/debug.py world_model=graph_level       # with settings of your own
    python -m pdb -c continue pipelines/debug.py            # stops where a stage fails

DVC has no part in it. A stage reads what the one before it has left in `.debug/`, which is made anew each time.
"""

import inspect
import logging
import shutil
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from tracking.composition import completed, compose_configuration
from tracking.declaration import stage_names
from tracking.stage import run_stage

from rlflow.errors import InputError

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".debug"

log = logging.getLogger("debug")


def main(overrides: Sequence[str]) -> None:
    """Compose the experiment, and call the function of each stage."""
    config = completed(compose_configuration(["experiment=smoke", *overrides], ROOT / "conf"))
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for part in ("dvc.yaml", "pipelines", "src"):
        (FOLDER / part).symlink_to(ROOT / part)
    for name in stage_names(ROOT):
        script = FOLDER / f"pipelines/{name}.py"
        if script.is_file():
            log.info("%s", name)
            function = inspect.unwrap(getattr(import_module(name), name))
            run_stage(function, config, script=script, root=FOLDER, output_root=FOLDER, overrides=list(overrides))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    log.setLevel(logging.INFO)
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(str(error))
