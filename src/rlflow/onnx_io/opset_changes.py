"""Changes of ONNX's operators between opsets, and the nodes whose meaning they keep: a table made by running both.

`opset_changes.jsonl` says in its first line which operators there are, each with the opsets that changed it. Each
further line is one change. Nodes of many forms were run in ONNX Runtime, word for word the same, under both opsets:

    {"operator": "Hardmax", "before": 11, "after": 13, "alike": 211, "unlike": 143,
     "kept": {"axis": ["absent", "given", "last"], "rank of input 0": ["1", "2", "3", ...], ...},
     "lost": {"axis": ["other"]}}

`kept` are the forms, by aspect, of the nodes that computed the same in both; `lost` those that explain all others.
A node keeps its meaning if each aspect of it has a kept form; what nobody has run does not.
`make renew NAME=opset_changes` makes the table anew (`tests/support/opset_changes`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import onnx
from onnx import AttributeProto, TensorProto, helper

from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io.element_type import dtype_name

Forms = Mapping[str, frozenset[str]]
ABSENT = "absent"

_CHOICES = frozenset("dtype output_dtype precision qk_matmul_output_mode softmax_precision stash_type to".split())
"""Attributes whose every number means something else; of others it matters if they are below, at or above 0 and 1."""
_TEXTS = frozenset({"equation", "value_string", "value_strings"})
_MOST_PLACES = 8
_MOST_AXES = 5


@dataclass(frozen=True)
class Change:
    """One change of an operator: from the schema of opset `before` to that of opset `after`."""

    operator: str
    before: int
    after: int
    kept: Forms
    lost: Forms

    def keeps(self, aspects: Mapping[str, frozenset[str] | None]) -> bool:
        """Return True if a node of these aspects, None where one is not known, computes the same after the change."""
        if not self.kept:
            return False
        unstated = self.kept.keys() - aspects.keys()
        return all(ABSENT in self.kept[aspect] for aspect in unstated if not _is_of_type(aspect)) and all(
            aspect not in self.lost if forms is None else forms <= self.kept.get(aspect, frozenset())
            for aspect, forms in aspects.items()
        )


@dataclass(frozen=True)
class Changes:
    """The table, up to the opset `last`: for each operator the opsets that changed it, its first one included, and what
    each of these but the first one changed.
    """

    last: int
    versions: Mapping[str, Sequence[int]]
    rows: Mapping[str, Sequence[Change]]


@cache
def table() -> Changes:
    """Return the table that ships with the library."""
    text = resources.files(__package__).joinpath("opset_changes.jsonl").read_text(encoding="utf-8")
    header, *lines = map(json.loads, text.splitlines())
    rows: dict[str, list[Change]] = {operator: [] for operator in header["versions"]}
    for line in lines:
        change = Change(line["operator"], line["before"], line["after"], _as_sets(line["kept"]), _as_sets(line["lost"]))
        rows[change.operator].append(change)
    return Changes(header["opset"], header["versions"], rows)


def keeps_meaning(node: onnx.NodeProto, types: Sequence[TensorType | None], before: int, after: int) -> bool:
    """Return True if an ai.onnx node, word for word the same, computes in opset `after` what it does in `before`.

    `types` are those of its inputs, as far as they are known. The nodes of its subgraphs are not judged.
    """
    known = table()
    if after > known.last or before < min(known.versions.get(node.op_type, [after + 1])):
        return False
    changes = [change for change in known.rows[node.op_type] if before < change.after <= after]
    return all(change.keeps(aspects(node, types, before)) for change in changes)


def aspects(node: onnx.NodeProto, types: Sequence[TensorType | None], opset: int) -> dict[str, frozenset[str] | None]:
    """Return a node's forms by aspect: which inputs and outputs it has, their types and ranks, and its attributes.

    An aspect of None is not known. `types` are those of the inputs, as many as are known of.
    """
    found: dict[str, frozenset[str] | None] = {}
    for kind, names in (("input", node.input), ("output", node.output)):
        for place, name in enumerate(names):
            _add(found, f"{kind} {min(place, _MOST_PLACES)}", frozenset({"given" if name else ABSENT}))
    for place, name in enumerate(node.input):
        if name:
            tensor_type = types[place] if place < len(types) else None
            place = min(place, _MOST_PLACES)
            _add(found, f"type of input {place}", None if tensor_type is None else frozenset({tensor_type.dtype}))
            rank = None if tensor_type is None else tensor_type.rank
            _add(found, f"rank of input {place}", None if rank is None else frozenset({str(min(rank, _MOST_AXES))}))
    for attribute in node.attribute:
        found[attribute.name] = None if attribute.ref_attr_name else _forms(attribute)
    _add_axis(found, node, next(iter(types), None), opset)
    return found


def _add(found: dict[str, frozenset[str] | None], aspect: str, forms: frozenset[str] | None) -> None:
    known = found.get(aspect, frozenset())
    found[aspect] = None if forms is None or known is None else known | forms


def _is_of_type(aspect: str) -> bool:
    return aspect.startswith(("type of ", "rank of "))


def _add_axis(found: dict[str, frozenset[str] | None], node: onnx.NodeProto, of: TensorType | None, opset: int) -> None:
    """Say of the axis if it is the last one, which many operators treated alike before they treated each axis so."""
    schema = onnx.defs.get_schema(node.op_type, opset, "").attributes.get("axis")
    if schema is None or schema.type != onnx.defs.OpSchema.AttrType.INT:
        return
    given = next((a for a in node.attribute if a.name == "axis"), None)
    if given is None:
        found["axis"] = frozenset({ABSENT})
        if not schema.default_value.name:
            return
    elif given.ref_attr_name:
        return
    axis = schema.default_value.i if given is None else given.i
    rank = None if of is None else of.rank
    forms = None if rank is None and axis != -1 else frozenset({"last" if axis in (-1, (rank or 0) - 1) else "other"})
    found["axis"] = None if forms is None else forms | {ABSENT if given is None else "given"}


def _forms(attribute: AttributeProto) -> frozenset[str]:
    """Return the forms of an attribute's value, or of the members of a list of values."""
    if attribute.type == AttributeProto.TENSOR:
        return frozenset({dtype_name(attribute.t.data_type), f"rank {min(len(attribute.t.dims), _MOST_AXES)}"})
    value = helper.get_attribute_value(attribute)
    members = value if isinstance(value, list) else [value]
    return frozenset(_form(attribute, member) for member in members) or frozenset({"empty"})


def _form(attribute: AttributeProto, value: object) -> str:
    if isinstance(value, bytes):
        return "text" if attribute.name in _TEXTS else value.decode(errors="replace").lower()
    if not isinstance(value, int | float):
        return type(value).__name__
    if attribute.name in _CHOICES and value in TensorProto.DataType.values():
        return dtype_name(int(value))
    if value != value:
        return "nan"
    return next(
        (str(bound) for bound in (0, 1) if value == bound), "< 0" if value < 0 else "> 1" if value > 1 else "> 0"
    )


def _as_sets(forms: Mapping[str, Sequence[str]]) -> Forms:
    return {aspect: frozenset(found) for aspect, found in forms.items()}
