"""Every type of documents refuses what it does not admit, and says where; that what it admits passes is tested too."""

import copy
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest
from experiment.documents.evaluate import Evaluate, Result
from support.documents import FIGURE, evaluation, result, sample
from support.every_document import EVERY

from rlflow.errors import RLFlowError
from rlflow.schemas import validate
from rlflow.schemas.forms import Form

Path = tuple[str | int, ...]
TOGETHER = {"evaluate/metrics.json": {"delivered", "delivered_because"}} | {
    "collect_rollouts/metrics.json": {"evaluations", "states", "distinct_tokens", "labels"},
    "evaluate/rules_applied.json": {"rlflow"},
    "fit_world_model/metrics.json": {"regrets", "calibration", "kept_track", "return_correlation"},
}
"""Keys that may be absent by themselves and not beside what else the sample has."""
each = pytest.mark.parametrize("name", EVERY)


def places(form: Form | None, document: Any, path: Path = ()) -> Iterator[tuple[Path, Form, Any]]:
    """Every value of a document with its path and its form, outermost first."""
    if form is None:
        return
    yield path, form, document
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, item in items:
        yield from places(form.child(key), item, (*path, key))


def changed(document: Any, path: Path, value: Any) -> Any:
    """A copy with another value at a path."""
    if not path:
        return value
    document = copy.deepcopy(document)
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


def refusal(name: str, document: Any) -> str:
    with pytest.raises(RLFlowError) as caught:
        validate(EVERY[name], document)
    return str(caught.value)


def at(path: Path) -> str:
    return "at /" + "/".join(map(str, path)) + ": "


@each
def test_a_sound_document_is_accepted(name: str) -> None:
    """What is not sound raises, as the tests below show; what is raises nothing."""
    validate(EVERY[name], sample(EVERY[name], optional=True))


@each
def test_required_keys_may_not_be_dropped_and_others_may(name: str) -> None:
    document = sample(EVERY[name], optional=True)
    objects = [(path, form, value) for path, form, value in places(Form.of(EVERY[name]), document) if form.is_object]
    for path, form, value in objects:
        for key in value:
            lacking = changed(document, path, {kept: item for kept, item in value.items() if kept != key})
            if key in form.required:
                assert f"{at(path)}'{key}' is a required key" in refusal(name, lacking)
            elif key not in TOGETHER.get(name, ()):
                validate(EVERY[name], lacking)


@each
def test_unknown_keys_are_refused(name: str) -> None:
    document = sample(EVERY[name], optional=True)
    for path, form, value in places(Form.of(EVERY[name]), document):
        if form.is_object and ".*" not in form.others:
            assert f"{at(path)}it has no key 'more'" in refusal(name, changed(document, path, value | {"more": 1}))


@each
def test_values_of_other_types_and_out_of_range_are_refused_with_their_path(name: str) -> None:
    """A list where a text is, a text where a number is, a number that is none or beyond a bound, nothing in a list."""
    document = sample(EVERY[name], optional=True)
    tried = 0
    for path, form, value in places(Form.of(EVERY[name]), document):
        wrong: list[Any] = []
        if type(value) in (int, float) and form.type in (int, float):
            wrong = ["12", float("nan"), float("inf")]
            bounds = [bound for meta in form.metas for bound in (meta.ge, meta.gt) if bound is not None]
            wrong += [bound - 1 for bound in bounds] + [meta.le + 1 for meta in form.metas if meta.le is not None]
            wrong += [0.5] if form.type is int else []
        elif form.type in (str, bool) or form.is_object:
            wrong = [[value]]
        elif isinstance(value, dict | list) and any(meta.min_length for meta in form.metas):
            wrong = [type(value)()]
        wrong += [] if form.nullable or form.type in (Any, list) or None in get_args(form.type) else [None]
        for other in wrong:
            assert at(path) in refusal(name, changed(document, path, other)), other
            tried += 1
    assert tried > 5


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("bert", "greedy", "latency_ratio_deployed_ci95"), [1.0], "Expected `array` of length 2, got 1"),
        (("bert", "greedy", "latency_ratio_deployed_ci95"), [1.2, 1.1], "the low end 1.2 lies above the high end 1.1"),
        (("bert", "greedy", "latency_ratio_deployed"), 0, "Expected `float` > 0.0, and it is 0"),
        (("bert", "greedy", "seeds"), [], "Expected `array` of length >= 1"),
        (("bert", "greedy", "seeds"), [1, 1], "[1, 1] has an element twice"),
        (("bert", "greedy", "trajectory"), "no hash", "Expected `str` matching regex '^[0-9a-f]{8,64}$'"),
        (("bert", "rlflow", "delivered"), "both", "Invalid enum value 'both'"),
        (("bert", "greedy", "improvement_percent"), 9.0, "9.00, but the costs give 8.00"),
    ],
)
def test_what_is_wrong_is_said(path: Path, value: Any, message: str) -> None:
    with pytest.raises(RLFlowError) as caught:
        validate(Evaluate, changed(evaluation(), path, value))
    assert str(caught.value).partition("at /")[2].startswith(f"{'/'.join(map(str, path))}")
    assert message in str(caught.value)


def test_all_faults_are_told_in_the_order_of_their_paths() -> None:
    document = evaluation()
    del document["tiny"]["original"]
    document["bert"]["greedy"] |= {"flops_ratio": float("inf"), "steps": -1}
    first, second, third = refusal("evaluate/metrics.json", document).split("; ")
    assert first.endswith("at /bert/greedy/flops_ratio: inf is not a finite number")
    assert second == "at /bert/greedy/steps: Expected `int` >= 0, and it is -1"
    assert third == "at /tiny: 'original' is a required key"


def test_json_does_not_tell_whole_numbers_from_floats() -> None:
    """So a count may be 3.0, though not 3.5, and a number of numpy is one."""
    validate(Result, result() | {"real_interactions": 3.0, "far_share": np.float64(0.5)})
    with pytest.raises(RLFlowError, match="at /real_interactions: Expected `int`, got `float`"):
        validate(Result, result() | {"real_interactions": 3.5})


def test_absent_keys_are_left_out() -> None:
    assert set(Result(**result()).to_json()) == set(result()) == Form.of(Result).required | set(result())
    assert FIGURE.to_json() == {"value": 0.9, "baseline": 0.5, "baseline_name": "copy", "cases": 120}
