"""The document of `pipelines/verify_repro.py --json`."""

from rlflow.schemas.figures import Cases, Count, Document, Error, Kind, Text


class KindCounts(Document):
    """Figures and outputs of one kind."""

    figures: Count
    unlike_figures: Count
    outputs: Count
    unlike_outputs: Count


class Kinds(Document):
    """Counts by kind."""

    equal: KindCounts
    digits: KindCounts
    timing: KindCounts


class UnlikeFigure(Document):
    """A figure that is not as it was."""

    file: Text
    place: str
    """The path inside a results file; empty for an output."""
    kind: Kind
    published: str
    """The value as text; none: the run has nothing there."""
    fresh: str
    """The value as text; none: the run has nothing there."""
    deviation: Error | None
    """The largest difference of two numbers, relative to the larger one; null if these are not as many numbers."""


class Output(Document):
    """An output that is compared by its digest."""

    path: Text
    kind: Kind
    same_bytes: bool


class TimeRatio(Document):
    """Fresh times over published ones."""

    median: Error
    least: Error
    greatest: Error


class TimingGroup(Document):
    """Times of one name in a file."""

    file: Text
    name: Text
    """The last key of the figures that are told together."""
    figures: Cases
    ratio: TimeRatio
    intervals_apart: list[str]
    """The figures whose 95 % intervals have no value in common."""


class ReproductionReport(Document):
    """A fresh run of the experiment beside the published one."""

    reproduced: bool
    """Nothing differs that must not."""
    published: Text
    """The git revision or folder of the published run."""
    fresh: Text
    """The git revision or folder of the fresh run."""
    kinds: Kinds
    unlike: list[UnlikeFigure]
    outputs: list[Output]
    timings: list[TimingGroup]
    faults: list[Text]
    """A sentence for each file that could not be compared."""
