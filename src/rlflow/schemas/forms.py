"""A document's type, taken apart: what is below it, key by key, and what its annotations say.

form = Form.of(Annotated[dict[str, Row], Meta(min_length=1)])
form.child("bert")             # Form of Row
form.child("bert").child("steps").says("reproduces")     # ["equal"]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec import Meta, UnsetType
from msgspec.structs import fields

from rlflow.schemas.figures import Document

ANY = "*"
"""Stands for the keys and indices that a type does not name."""


@dataclass(frozen=True)
class Form:
    """A type without its annotations, these, and if null may stand for it.

    type: a class derived from Document, a dict, list or tuple with its arguments, or the type of a scalar.
    """

    type: Any
    metas: tuple[Meta, ...] = ()
    nullable: bool = False

    @classmethod
    @cache
    def of(cls, annotation: Any) -> Form:
        """The form of an annotation, with those of the types that it is made of."""
        metas: tuple[Meta, ...] = ()
        nullable = False
        while True:
            if get_origin(annotation) is Annotated:
                metas = (*annotation.__metadata__, *metas)
                annotation = annotation.__origin__
            elif isinstance(annotation, UnionType) or get_origin(annotation) is Union:
                members = [member for member in get_args(annotation) if member not in (NoneType, UnsetType)]
                nullable |= NoneType in get_args(annotation)
                if len(members) > 1:
                    return cls(Union[tuple(members)], metas, nullable)  # noqa: UP007
                (annotation,) = members
            else:
                return cls(annotation, metas, nullable)

    @property
    def is_object(self) -> bool:
        """True for a class of documents, whose keys have names."""
        return isinstance(self.cls, type) and issubclass(self.cls, Document)

    @property
    def cls(self) -> Any:
        """The class of a type with or without arguments."""
        return self.origin or self.type

    @cached_property
    def origin(self) -> Any:
        """The type without its arguments, as `dict` is of `dict[str, int]`; None for one that has none."""
        return get_origin(self.type)

    def says(self, keyword: str) -> list[Any]:
        """Return what the annotations say under a keyword of JSON Schemas, the innermost first."""
        said = [meta.extra_json_schema or {} for meta in self.metas]
        return [keywords[keyword] for keywords in said if keyword in keywords]

    @cached_property
    def required(self) -> set[str]:
        """The keys that an object must have."""
        return {field.encode_name for field in fields(self.type) if field.required} if self.is_object else set()

    @cached_property
    def children(self) -> dict[str, Form]:
        """The forms below by key or index; `*` stands for those that are not named, of a dict and of a list."""
        if self.is_object:
            return {field.encode_name: Form.of(field.type) for field in fields(self.type)}
        arguments = get_args(self.type)
        if self.origin is tuple:
            return {str(index): Form.of(argument) for index, argument in enumerate(arguments)}
        return {ANY: Form.of(arguments[-1])} if self.origin in (dict, list) else {}

    @cached_property
    def others(self) -> dict[str, Form]:
        """The forms of further keys of an object, by the regular expression that such a key matches."""
        return {pattern: Form.of(other) for pattern, other in self.cls.OTHERS.items()} if self.is_object else {}

    def child(self, key: str | int) -> Form | None:
        """The form below a key or an index; None if the type has none there."""
        named = self.children.get(str(key)) or self.children.get(ANY)
        return named or next((form for pattern, form in self.others.items() if re.search(pattern, str(key))), None)
