"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from rlflow.schemas.figures import NOT_EMPTY, Cases, Count, Document, Error, Share


class Errors(Document):
    """Relative errors of prices."""

    median: Error
    """Relative error."""
    p90: Error
    cases: Cases


class Signs(Document):
    """Differences of prices across rewrites: their sign and order."""

    sign: Share
    """Of changes, those whose sign is predicted."""
    majority_sign: Share
    """The same of always predicting the commoner sign."""
    spearman: Annotated[float, Meta(ge=-1, le=1)]
    """Rank correlation of predicted and measured changes."""
    cases: Cases


class Accuracy(Document):
    """The accuracy on regions, graphs and rewrites."""

    regions: Errors | UnsetType = UNSET
    """Of regions of at least 20 microseconds."""
    graphs: Errors | UnsetType = UNSET
    """Of whole graphs, against the sum of their measured regions."""
    rewrites: Signs | UnsetType = UNSET
    """Of distinct rewrites whose measured change exceeds twice its standard error."""


class Model(Document):
    """The accuracy of one way to price."""

    all: Accuracy
    families: Annotated[dict[str, Accuracy], NOT_EMPTY]


class Models(Document):
    """The ways to price."""

    predicted: Model
    initial_measured: Model
    far_measured: Model
    nearest: Model
    physics: Model
    analytic: Model


class Taken(Document):
    """Rewrites that are taken because they save more than so many sigmas."""

    saved: Annotated[float, Meta(le=1)]
    """By those taken together, as a share of what all rewrites save that save anything."""
    dearer: Share
    """Of those taken, the ones that cost more than twice their noise."""
    cases: Count


class PriceModel(Document):
    """Accuracy of prices on a family of models that they were not learned from.

    On its regions, graphs and rewrites; over all families, and by family. Baselines are rows beside the prediction.
    """

    regions: Cases
    """Distinct measured regions that the models learn from."""
    rewrites: Count
    """Gathered rewrites; of equal ones, one is judged."""
    graphs: Count
    """Gathered graphs, rewritten variants among them."""
    far_share: Share
    """Of the regions of a family, those that are far from what was learned without it."""
    trees_bytes: Cases
    """Size of the ONNX model that ships."""
    models: Models
    taken_beyond_sigmas: Annotated[dict[Annotated[str, Meta(pattern="^[0-9.]+$")], Taken], NOT_EMPTY]
    """By number of standard errors of the change: rewrites that are taken where the prediction saves more than so
    many.
    """


DOCUMENTS = {"price_model/metrics.json": PriceModel}
"""Types of results files, by the pattern that the end of a file's path matches."""
