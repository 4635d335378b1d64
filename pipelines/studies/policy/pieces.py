"""Work that comes in pieces, each kept as soon as it is done, so that a run that was killed goes on where it was.

    carry_out("policy_lessons", settings, lasting, {"bert_cls": hold}, Path("data/policy/lessons"))

Several workers may have some of the pieces each. The run that is no worker's does what they have left over, and moves
all to its place.
"""

import logging
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tracking.share import Share

from rlflow.cli.progress import progress_bar
from studies.program import checkpoint_of, study_run

Piece = Callable[[Path], Mapping[str, float]]
"""Do a piece, unless it lies in this folder already, and keep it there; returns figures, `improvement_percent` among
them.
"""

log = logging.getLogger(__name__)


def carry_out(
    stage: str, settings: Mapping[str, Any], lasting: Mapping[str, Any], pieces: Mapping[str, Piece], place: Path
) -> None:
    """Do the pieces of this worker. lasting: what they depend on, beside the code."""
    share = Share(settings["worker"], settings["workers"])
    names = list(pieces)
    own = [names[number] for number in share.of(len(names))]
    folder = checkpoint_of(stage, lasting)
    with study_run(stage, settings) as run, progress_bar(stage.replace("_", " ")) as on_progress:
        for number, name in enumerate(own):
            figures = pieces[name](folder)
            run.log(number, figures)
            log.info("%s: %s", name, figures)
            on_progress((number + 1) / len(own), f"{name}, {figures['improvement_percent']:.1f} %")

    if share.workers == 1:
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder, place)
