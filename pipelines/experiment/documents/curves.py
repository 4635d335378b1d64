"""The document of training curves, which several stages write."""

from collections.abc import Iterator
from typing import Annotated, Any

from rlflow.schemas.figures import DIGITS, EQUAL, NOT_EMPTY, Document, Text


class Curve(Document):
    """The points of one curve."""

    unit: Text
    step_name: Text
    """What a step is: epoch, update, ..."""
    step: Annotated[list[float], EQUAL, NOT_EMPTY]
    value: Annotated[list[float], DIGITS, NOT_EMPTY]

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        if len(document["step"]) != len(document["value"]):
            yield "", f"{len(document['step'])} steps but {len(document['value'])} values"


TrainingCurves = Annotated[dict[str, Annotated[dict[str, Curve], NOT_EMPTY]], NOT_EMPTY]
"""Graph -> curve name -> the points that a training figure is drawn from."""
