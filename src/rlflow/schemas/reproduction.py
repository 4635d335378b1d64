"""The keyword `reproduces`, by which a schema says how a figure is the same when it is computed again.

    "improvement_percent": {"$ref": "urn:rlflow:schema:common#/$defs/percent", "reproduces": "equal"}

    top("evaluate").child("bert").child("greedy").child("optimisation_s").kind    # Kind.TIMING

The keyword holds for all that lies below it. Where several stand on the way to a figure, or in the definition that its
schema refers to, the loosest of them holds: a count is equal again, but not one that follows from a trained network.

The invariant: `Place.child` leads through a schema as a key or an index leads through a document that follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rlflow.schemas.validation import resolver, schema

_KEYWORD = "reproduces"
_ANY = "*"


class Kind(StrEnum):
    """The ways in which figures reproduce, from the strictest to the loosest.

    equal: on every machine, whatever runs beside it. digits: up to the rounding of floats, which differs between
    processors. timing: it is a time, or follows from times.
    """

    EQUAL = "equal"
    DIGITS = "digits"
    TIMING = "timing"


@dataclass(frozen=True)
class Place:
    """A place in the documents of a schema: its path, what the schema says of it, and how figures there reproduce.

    `kind` is None where no part of the schema on the way there says it.
    """

    path: str
    part: dict[str, Any]
    kind: Kind | None
    resolver: Any

    @classmethod
    def of(cls, path: str, part: dict[str, Any], kind: Kind | None, resolver: Any) -> Place:
        """The place that `part` describes, with the definition that it refers to, below one of that kind."""
        kind = _loosest(kind, part)
        while "$ref" in part:
            found = resolver.lookup(part["$ref"])
            part, resolver = found.contents, found.resolver
            kind = _loosest(kind, part)
        return cls(path, part, kind, resolver)

    def child(self, key: str | int) -> Place:
        """The place under a key of an object or an index of an array."""
        parts = _parts(self.part)
        return self._below(str(key), parts.get(str(key), parts.get(_ANY, {})))

    def children(self) -> Iterator[Place]:
        """The places under all keys and indices that the schema tells apart; `*` stands for any other."""
        return (self._below(key, part) for key, part in _parts(self.part).items())

    def _below(self, key: str, part: dict[str, Any]) -> Place:
        return Place.of(f"{self.path}/{key}", part, self.kind, self.resolver)


def top(name: str) -> Place:
    """The place of a whole document of the schema `name`. Raises InputError for a name that no schema has."""
    document = schema(name)
    return Place.of("", document, None, resolver(document))


def _loosest(kind: Kind | None, part: dict[str, Any]) -> Kind | None:
    kinds = [Kind(k) for k in (kind, part.get(_KEYWORD)) if k is not None]
    return max(kinds, key=list(Kind).index, default=None)


def _parts(part: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The parts of a schema by key or index; `*` stands for those that it does not name."""
    named = part.get("properties", {}) | {str(i): sub for i, sub in enumerate(part.get("prefixItems", []))}
    others = part.get("additionalProperties", part.get("items"))
    return named | ({_ANY: others} if isinstance(others, dict) else {})
