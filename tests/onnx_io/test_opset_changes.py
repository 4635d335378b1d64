"""The table of what the operators' changes leave as it was: complete, and true of nodes that are drawn anew."""

from collections import Counter
from collections.abc import Iterator
from datetime import date

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, helper
from support.conformance.guarded_process import GuardedProcess
from support.opset_changes.table import (
    DRAWS,
    Case,
    Transition,
    answer_to,
    cases_of,
    explanation,
    header,
    made,
    transitions,
)
from support.repository import REPOSITORY
from support.rotating_sample import sample, turn

from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io.opset_changes import ABSENT, Change, aspects, keeps_meaning, table

ANEW = "onnx has other operators or opsets than the table: `make renew NAME=opset_changes` runs them, and makes it anew"
TODAY = turn(REPOSITORY, date.today())
FRESH = 10_000_000
"""Seeds from here on have not made the table."""
AXES_5 = TensorType("float32", (1, 2, 3, 4, 5))


def rows() -> list[Change]:
    return [change for changes in table().rows.values() for change in changes]


def matrix(rank: int | None) -> TensorType:
    return TensorType("float32", None if rank is None else (2,) * rank)


def test_the_table_has_every_operator_and_opset_of_the_installed_onnx() -> None:
    shipped = table()
    told = header()
    assert (shipped.last, {name: list(found) for name, found in shipped.versions.items()}) == (
        told["opset"],
        told["versions"],
    ), ANEW
    assert [(row.operator, row.before, row.after) for row in rows()] == [
        (t.operator, t.before, t.after) for t in transitions()
    ], ANEW


MEANINGS = {
    # Before opset 13 these work on a matrix, which the axis splits the others into.
    "Hardmax of the last axis": (("Hardmax", {"axis": -1}), [AXES_5], 12, 13, True),
    "Hardmax of the last axis, counted from the front": (("Hardmax", {"axis": 4}), [AXES_5], 11, 17, True),
    "Hardmax of an axis of unknown place": (("Hardmax", {"axis": 1}), [matrix(None)], 12, 13, False),
    "Hardmax of the last axis, of unknown rank": (("Hardmax", {"axis": -1}), [None], 12, 13, True),
    "Hardmax of the old default": (("Hardmax", {}), [matrix(3)], 12, 13, False),
    "Hardmax of the old default, which is the last": (("Hardmax", {}), [matrix(2)], 12, 13, True),
    "LogSoftmax of another axis": (("LogSoftmax", {"axis": 1}), [matrix(4)], 11, 13, False),
    "LogSoftmax of the last axis": (("LogSoftmax", {"axis": 3}), [matrix(4)], 11, 13, True),
    "Softmax that is raised far enough to flatten no more": (("Softmax", {"axis": 0}), [matrix(2)], 13, 23, True),
    # Attributes that became inputs.
    "Dropout with a ratio": (("Dropout", {"ratio": 0.5}), [matrix(2)], 11, 12, False),
    "Dropout without": (("Dropout", {}), [matrix(2)], 10, 22, True),
    "Clip with a bound": (("Clip", {"max": 6.0}), [matrix(2)], 10, 11, False),
    "ReduceMax over axes": (("ReduceMax", {"axes": [1]}), [matrix(3)], 13, 18, False),
    "ReduceMax over all": (("ReduceMax", {"keepdims": 0}), [matrix(3)], 13, 18, True),
    "Split into parts": (("Split", {"axis": 0}), [matrix(2)], 13, 18, False),
    # Names and places that changed.
    "GridSample, bilinear by name": (("GridSample", {"mode": "bilinear"}), [matrix(4), matrix(4)], 16, 20, False),
    "GridSample, bilinear by default": (("GridSample", {}), [matrix(4), matrix(4)], 16, 20, True),
    "DFT along axis 1 of 2": (("DFT", {}), [matrix(3)], 17, 20, True),
    "DFT along axis 1 of 3": (("DFT", {}), [matrix(4)], 17, 20, False),
    "RoiAlign half a pixel on": (("RoiAlign", {}), [matrix(4), matrix(2), TensorType("int64", (2,))], 10, 16, False),
    "Upsample, which is gone": (("Upsample", {}), [matrix(2), matrix(1)], 9, 10, False),
    "BatchNormalization with its mask": (
        ("BatchNormalization", {"spatial": 1}),
        [matrix(4), *[matrix(1)] * 4],
        7,
        9,
        False,
    ),
    "GroupNormalization with a scale a group": (
        ("GroupNormalization", {"num_groups": 2}),
        [matrix(4), matrix(1), matrix(1)],
        18,
        21,
        False,
    ),
    # What nobody has run.
    "an attribute of no schema": (("Abs", {"unheard": 1}), [matrix(2)], 7, 13, False),
    "an operator of no schema": (("Unheard", {}), [matrix(2)], 7, 13, False),
    "an opset of no table": (("Abs", {}), [matrix(2)], 7, 1000, False),
    "an opset that ONNX Runtime has not": (("Abs", {}), [matrix(2)], 5, 13, False),
    "an operator that never changed": (("Not", {}), [TensorType("bool", (2,))], 7, 23, True),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_what_the_changes_of_operators_are_known_to_leave_alone(name: str) -> None:
    """As ONNX's documentation of the operators has it."""
    (operator, attributes), types, before, after, kept = MEANINGS[name]
    inputs = [f"i{place}" for place in range(len(types))]
    outputs = ["a", "b"] if operator == "Split" else ["a"]
    node = helper.make_node(operator, inputs, outputs, **attributes)
    assert keeps_meaning(node, types, before, after) == kept


def test_a_reference_to_an_attribute_may_have_any_form() -> None:
    """Inside a function the value is not known: nothing may be lost for any value."""
    for operator, kept in (("Softmax", False), ("Concat", True)):
        node = helper.make_node(operator, ["a"], ["b"])
        node.attribute.append(AttributeProto(name="axis", type=AttributeProto.INT, ref_attr_name="of_the_function"))
        assert keeps_meaning(node, [matrix(3)], 11, 13) == kept


def test_aspects_say_what_a_node_has() -> None:
    values = helper.make_node("Cast", ["a"], ["b"], to=TensorProto.FLOAT16)
    assert aspects(values, [None], 13) == {
        "input 0": {"given"},
        "output 0": {"given"},
        "type of input 0": None,
        "rank of input 0": None,
        "to": {"float16"},
    }
    pads = helper.make_node("MaxPool", ["a"], ["b", ""], pads=[0, 2], kernel_shape=[1], auto_pad="VALID", strides=[-1])
    found = aspects(pads, [matrix(3)], 12)
    assert found["pads"] == {"0", "> 1"}
    assert found["kernel_shape"] == {"1"}
    assert found["strides"] == {"< 0"}
    assert found["auto_pad"] == {"valid"}
    assert found["output 1"] == {ABSENT}
    assert found["rank of input 0"] == {"3"}


def test_an_aspect_that_no_node_had_is_not_kept() -> None:
    change = Change(
        "F", 1, 2, {"input 0": frozenset({"given"}), "a": frozenset({ABSENT, "0"})}, {"a": frozenset({"1"})}
    )
    given = {"input 0": frozenset({"given"})}
    assert change.keeps(given)
    assert change.keeps(given | {"a": frozenset({"0"})})
    assert not change.keeps(given | {"a": frozenset({"0", "1"})})
    assert not change.keeps(given | {"a": None})
    assert change.keeps(given | {"type of input 0": None})
    assert not change.keeps(given | {"b": frozenset({"0"})})
    assert not change.keeps({"a": frozenset({"0"})})


def drawn_cases(unlike: int, reasons: set[str], rng: np.random.Generator) -> list[Case]:
    """Cases of random forms; those with one of the reasons are unlike, and `unlike` others."""
    forms = [frozenset(("a", form) for form in "stuvwxyz" if rng.random() < 0.4) for _ in range(300)]
    differ = [any(form in reasons for _, form in found) for found in forms]
    for place in rng.choice([p for p, is_unlike in enumerate(differ) if not is_unlike], unlike, replace=False):
        differ[place] = True
    return [(found, not is_unlike) for found, is_unlike in zip(forms, differ, strict=True)]


@pytest.mark.parametrize("seed", range(10))
def test_the_forms_that_make_the_difference_are_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for reasons in (set(), {"s"}, {"s", "z"}, set("stu")):
        assert explanation(drawn_cases(0, reasons, rng)) == {("a", reason) for reason in reasons}


@pytest.mark.parametrize("seed", range(10))
def test_differences_that_no_form_explains_are_not_put_down_to_one(seed: int) -> None:
    for unlike in (1, 2, 20, 100):
        assert explanation(drawn_cases(unlike, set(), np.random.default_rng(seed))) is None


def counterexamples(transition: Transition, cases: list[Case]) -> Iterator[str]:
    """Nodes that compute something else though the table keeps their meaning."""
    change = next(
        row
        for row in rows()
        if (row.operator, row.before, row.after) == (transition.operator, transition.before, transition.after)
    )
    for forms, alike in cases:
        if not alike and change.keeps(by_aspect(forms)):
            yield f"{transition}: {sorted(forms)}"


def by_aspect(forms: frozenset[tuple[str, str]]) -> dict[str, frozenset[str] | None]:
    names = {aspect for aspect, _ in forms}
    return {name: frozenset(form for aspect, form in forms if aspect == name) for name in names}


def test_a_few_changes_are_as_the_table_says() -> None:
    """With nodes that did not make it; all changes in as many commits as there are samples."""
    with GuardedProcess(answer_to) as process:
        for transition in sample(transitions(), TODAY, 8):
            cases = list(cases_of(transition, range(FRESH + TODAY * 40, FRESH + (TODAY + 1) * 40), process))
            assert list(counterexamples(transition, cases)) == []


@pytest.mark.fuzz
def test_the_table_is_what_running_all_operators_makes_it() -> None:
    """The same rows from the same draws, and no counterexample among as many others: half an hour."""
    found: Counter[str] = Counter()
    with GuardedProcess(answer_to) as process:
        for transition, row in zip(transitions(), rows(), strict=True):
            anew = made(transition, process)
            assert (as_sets(anew["kept"]), as_sets(anew["lost"])) == (row.kept, row.lost), transition
            others = list(cases_of(transition, range(FRESH, FRESH + DRAWS), process))
            assert list(counterexamples(transition, others)) == []
            found.update(kept=bool(row.kept), run=bool(others))
    assert found["kept"] > 0.6 * found["run"] > 0


def as_sets(forms: dict[str, list[str]]) -> dict[str, frozenset[str]]:
    return {aspect: frozenset(members) for aspect, members in forms.items()}
