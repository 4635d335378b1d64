"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from experiment.documents.reproduction import Kinds

from rlflow.schemas.figures import EQUAL, NOT_EMPTY, TIMING, Count, Document, Seconds, Text


class Stage(Document):
    """The time of a stage."""

    cpu_s: Seconds
    wall_s: Seconds


class Run(Document):
    """One run of the experiment in a fresh clone."""

    cpu_s: Seconds
    """Of processors, DVC's own included."""
    wall_s: Seconds
    busy_loops: Count
    """Processes beside it that did nothing but keep processors busy."""
    stages: Annotated[dict[str, Stage], NOT_EMPTY]


class Runs(Document):
    """A run on a quiet machine, and one beside busy loops."""

    quiet: Run
    busy: Run


class ReproStudy(Document):
    """The experiment run twice in fresh clones, the second time beside busy loops: what it takes, and whether it
    came out alike.
    """

    runs: Runs
    reproduced: Annotated[bool, EQUAL]
    """The second run is the first one again: nothing differs that must not."""
    kinds: Kinds
    outputs: Annotated[dict[str, Annotated[bool, TIMING]], NOT_EMPTY]
    """Output of the experiment that is no results file -> whether both runs wrote the same bytes."""
    unlike: list[Text]
    """files, with the place in them, that are not as alike as they must be."""
    faults: list[Text]
    """Files that could not be compared."""


DOCUMENTS = {"repro_study/metrics.json": ReproStudy}
"""Types of results files, by the pattern that the end of a file's path matches."""
