"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from rlflow.schemas.figures import NOT_EMPTY, Cases, Document, Error, Share


class Errors(Document):
    """Relative errors of prices."""

    median: Error
    """Relative error."""
    p90: Error
    cases: Cases


class Signs(Document):
    """The sign of what rewriting changes of a graph's time."""

    sign: Share
    """Of changes, those whose sign is predicted."""
    majority_sign: Share
    """The same of always predicting the commoner sign."""
    cases: Cases


class Ranks(Document):
    """The order of the variants of a graph."""

    median: Annotated[float, Meta(ge=-1, le=1)]
    """Rank correlation of predicted and measured times."""
    cases: Cases
    """Graphs with variants that differ by more than noise."""


class Accuracy(Document):
    """The accuracy on regions and on graphs."""

    regions: Errors | UnsetType = UNSET
    """Of regions of at least 20 microseconds."""
    graphs: Errors | UnsetType = UNSET
    """Of whole graphs, against their runs end to end."""
    changes: Signs | UnsetType = UNSET
    """Of variants that differ from their original by more than twice the standard error."""
    changed_regions: Signs | UnsetType = UNSET
    """The same by the regions that were changed alone: what both graphs have is the control."""
    ranks: Ranks | UnsetType = UNSET


class Processor(Document):
    """The accuracy of one way to price on one processor."""

    all: Accuracy
    families: Annotated[dict[str, Accuracy], NOT_EMPTY]


ByProcessor = Annotated[dict[str, Processor], NOT_EMPTY]


class Models(Document):
    """The ways to price, each by processor."""

    predicted: ByProcessor
    nearest: ByProcessor
    physics: ByProcessor
    analytic: ByProcessor


class PriceModel(Document):
    """Accuracy of prices on a family of models that they were not learned from.

    On its regions and graphs; over all families, and by family. Baselines are rows beside the prediction. `unseen` is
    the accuracy of a stand-in's prices, where nothing was learned on the processor itself.
    """

    stand_ins: dict[str, str]
    """The processors, with those whose prices the product takes where nothing was learned on them."""
    unseen: dict[str, dict[str, Accuracy]]
    """The ways to price, each by the processor that is left out."""
    regions: Cases
    """Distinct measured regions that the models learn from."""
    graphs: Cases
    """Measured graphs, rewritten variants among them."""
    trees_bytes: Cases
    """Size of the ONNX model that ships."""
    models: Models


DOCUMENTS = {"price_model/metrics.json": PriceModel}
"""Types of results files, by the pattern that the end of a file's path matches."""
