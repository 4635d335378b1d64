"""JSON Schemas of documents, for those who check or read them elsewhere."""

import ast
import inspect
from itertools import pairwise
from textwrap import dedent
from typing import Any

import msgspec
from msgspec.structs import fields

from rlflow.schemas.figures import Document
from rlflow.schemas.forms import ANY, Form

_REFERENCE = "#/$defs/"


def json_schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a document's type, where each field is described by the text below it.

    A figure that is computed again has the keyword `reproduces`. What code alone can say (`Document.contradictions`) is
    left out.
    """
    (schema,), definitions = msgspec.json.schema_components([kind], ref_template=_REFERENCE + "{name}")
    _complete(Form.of(kind), schema, definitions, set())
    return schema | {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


def _complete(form: Form, part: dict[str, Any], definitions: dict[str, Any], seen: set[str]) -> None:
    """Write the texts and the further keys of all objects below a form into their parts of the schema."""
    part = next((member for member in part.get("anyOf", ()) if member.get("type") != "null"), part)
    reference = part.get("$ref", "").removeprefix(_REFERENCE)
    if reference in seen:
        return
    if reference:
        seen.add(reference)
        part = definitions[reference]
    if form.is_object:
        for key, text in _texts(form.cls).items():
            part["properties"][key]["description"] = text
        for pattern, other in form.others.items():
            (below,), further = msgspec.json.schema_components(
                [form.cls.OTHERS[pattern]], ref_template=_REFERENCE + "{name}"
            )
            definitions |= {name: found for name, found in further.items() if name not in definitions}
            part.setdefault("patternProperties", {})[pattern] = below
            _complete(other, below, definitions, seen)
    for key, child in form.children.items():
        if key is not ANY and form.is_object:
            _complete(child, part["properties"][key], definitions, seen)
        elif key is ANY:
            _complete(child, part["items" if form.origin is list else "additionalProperties"], definitions, seen)


def _texts(cls: type[Document]) -> dict[str, str]:
    """The text below each field of a class, by the field's key."""
    keys = {field.name: field.encode_name for field in fields(cls)}
    found = {}
    for owner in reversed(cls.__mro__[: cls.__mro__.index(Document)]):
        if not issubclass(owner, Document):
            continue
        (definition,) = ast.parse(dedent(inspect.getsource(owner))).body
        assert isinstance(definition, ast.ClassDef)
        for statement, below in pairwise(definition.body):
            match statement, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[keys[name]] = " ".join(text.split())
    return found
