"""The figures of all documents, and the class that a document's objects derive from.

    class Row(Document):
        steps: Annotated[Count, DIGITS]
        memory_mb: Error | None                       # a key whose value may be null
        far_share: Share | UnsetType = UNSET         # a key that may be absent

A figure is a type with its bounds and with how it is the same when it is computed again (`msgspec.Meta`). A text below
a field describes it, here and in the JSON Schema.
"""

import copyreg
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import partial
from operator import methodcaller
from typing import Annotated, Any, ClassVar, Literal, dataclass_transform

from msgspec import Meta, Struct, field, to_builtins


class Kind(StrEnum):
    """The ways in which figures reproduce, from the strictest to the loosest.

    equal: on every machine, whatever runs beside it. digits: up to the rounding of floats, which differs between
    processors. timing: it is a time, or follows from times.
    """

    EQUAL = "equal"
    DIGITS = "digits"
    TIMING = "timing"


REPRODUCES = "reproduces"
"""The keyword of JSON Schemas for the kind of a figure, and of all figures below it."""
ORDERED = "ordered"
"""The keyword for pairs whose first number is not above the second."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Document(Struct, frozen=True, forbid_unknown_fields=True):
    """An object of a document: its keys are the fields, and no others."""

    OTHERS: ClassVar[Mapping[str, Any]] = {}
    """Types of further keys, by the regular expression that such a key matches; a field goes first."""

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the key and a sentence for whatever no type can say and does not hold; "" stands for the object.

        `document` has the right keys with values of the right types.
        """
        yield from ()

    def to_json(self) -> dict[str, Any]:
        """Return the object as a dictionary, see `plain`."""
        content: dict[str, Any] = plain(self)
        return content


def plain(document: Any) -> Any:
    """Return a document as dictionaries with textual keys, lists and scalars; keys that are absent are left out."""
    return to_builtins(document, str_keys=True, enc_hook=methodcaller("item"))  # what numpy calls its scalars' values


def _pickled(meta: Meta) -> tuple[partial[Meta], tuple[()]]:
    return partial(Meta, **dict(meta.__rich_repr__())), ()


# Joblib gives its processes a stage together with the types that this names, and msgspec pickles none.
copyreg.pickle(Meta, _pickled)


def _reproduces(kind: Kind) -> Meta:
    return Meta(extra_json_schema={REPRODUCES: kind.value})


EQUAL, DIGITS, TIMING = map(_reproduces, Kind)
"""Beside a figure in `Annotated`: how it reproduces, and all figures below it."""
NOT_EMPTY = Meta(min_length=1)
"""Beside a dictionary or a list in `Annotated`: it has an element."""
UNIQUE = Meta(extra_json_schema={"uniqueItems": True})
"""Beside a list in `Annotated`: no element stands there twice."""
ASCENDING = Meta(extra_json_schema={ORDERED: True})
"""Beside a pair in `Annotated`: the first number is not above the second."""

Tally = Annotated[int, Meta(ge=0)]
"""A count of which nobody asks how it reproduces."""
Count = Annotated[Tally, EQUAL]
Cases = Annotated[int, Meta(ge=1, description="number of non-vacuous cases behind a figure"), EQUAL]
Seed = Count
Seeds = Annotated[list[Tally], NOT_EMPTY, UNIQUE, EQUAL]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{8,64}$"), EQUAL]
Text = Annotated[str, Meta(min_length=1)]

Error = Annotated[float, Meta(ge=0)]
"""An error, or any other number that cannot be negative."""
Positive = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Milliseconds = Error
Seconds = Annotated[Error, TIMING]
Percent = Annotated[float, Meta(description="percent of the start value; positive is better")]
Ratio = Annotated[Positive, Meta(description="old over new: above 1 is better")]
Interval = Annotated[tuple[float, float], Meta(description="95 % interval as a pair [low, high]"), ASCENDING]
Load = tuple[Error, Error]
"""Processes that ran or waited to run in the last minute, before the timing and after it; the timing is one itself."""

Written = Literal["optimised", "flushed", "original"]
"""The model that is delivered; flushed: the original with its subnormal weights at zero."""
Assumption = Literal["finite", "moderate"]
"""A property of numbers that a rule's certificate rests on: that they are finite, that they are of ordinary size."""

BaselineName = Literal[
    "copy",
    "majority",
    "mean",
    "random",
    "untrained",
    "untuned",
    "do_nothing",
    "unchecked",
    "rule_mean",
    "uncalibrated",
]
"""copy: the last value again; majority: the commonest class; mean: the average of the training data; random:
uniform over valid actions; untrained: weights as initialised; untuned: default settings; do_nothing: terminate at
once; unchecked: without verification; rule_mean: the mean of all matches of the rule; uncalibrated: as learned.
"""


class Figure(Document):
    """A published figure beside its trivial baseline and the number of non-vacuous cases behind it."""

    value: float
    baseline: float
    """The same quantity of the trivial baseline."""
    baseline_name: BaselineName
    cases: Cases
