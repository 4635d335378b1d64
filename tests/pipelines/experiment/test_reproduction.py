"""A fresh run beside the published one: what differs is told, by its kind, and nothing is passed over."""

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from experiment.reproduction import ABSOLUTE, RELATIVE, Reproduction, Run, reproduction
from hypothesis import given
from hypothesis import strategies as st

from rlflow.schemas import Kind

FILES = {
    "data/results/evaluate/metrics.json": "evaluate",
    "data/results/evaluate/rules_applied.json": "rules_applied",
    "data/results/fit_world_model/metrics.json": "fit_world_model",
    "data/results/fit_world_model/curves.json": "curves",
}
OUTPUTS = {"data/rules": Kind.EQUAL, "data/policies": Kind.DIGITS, "data/prices/evaluate.json": Kind.TIMING}
DIGESTS = {path: f"digest of {path}" for path in OUTPUTS}
EVALUATION, _, FIT, CURVES = FILES
Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def published(documents: dict[str, Any]) -> dict[str, Any]:
    """Documents by the paths of their files."""
    return {file: documents[name] for file, name in FILES.items()}


@pytest.fixture
def compared(published: dict[str, Any]) -> Callable[..., Reproduction]:
    """Compare what is published with the same after a change."""

    def compare(change: Change = lambda fresh: None, digests: dict[str, str] = DIGESTS) -> Reproduction:
        fresh = copy.deepcopy(published)
        change(fresh)
        return reproduction(FILES, OUTPUTS, run("HEAD", published), run("here", fresh, digests))

    return compare


def run(name: str, documents: dict[str, Any], digests: dict[str, str] = DIGESTS) -> Run:
    texts = {file: json.dumps(document) for file, document in documents.items()}
    return Run(name, texts.get, digests)


def told(again: Reproduction) -> list[tuple[str, str, Any, Any]]:
    return [(found.place, found.kind.value, found.published, found.fresh) for found in again.unlike]


def test_the_same_run_is_reproduced(compared: Callable[..., Reproduction]) -> None:
    again = compared()
    assert again.reproduced
    assert (again.unlike, again.faults) == ((), ())
    counts = {kind: sum(figure.kind is kind for figure in again.figures) for kind in Kind}
    assert all(count >= 20 for count in counts.values()), "nothing of a kind was compared"
    assert {figure.file for figure in again.figures} == set(FILES)


def test_a_changed_count_is_named(compared: Callable[..., Reproduction]) -> None:
    def change(fresh: dict[str, Any]) -> None:
        fresh[EVALUATION]["bert"]["greedy"]["real_interactions"] += 1

    again = compared(change)
    assert not again.reproduced
    (found,) = again.unlike
    assert (found.file, found.place, found.kind) == (EVALUATION, "/bert/greedy/real_interactions", Kind.EQUAL)
    assert found.fresh == found.published + 1
    assert found.deviation == pytest.approx(1 / found.fresh)


@pytest.mark.parametrize(("before", "now", "alike"), [(None, None, True), (None, 3, False), (3, None, False)])
def test_null_is_as_before_where_it_was_null(before: int | None, now: int | None, alike: bool) -> None:
    """A state that no known way reaches has no number of rewrites."""
    file = "data/results/evaluate/states.json"

    def states(rewrites: int | None) -> dict[str, Any]:
        source = {"states": 2, "alone": 2, "best_saved_percent": 1.5, "rewrites_to_best": rewrites, "shared": {}}
        return {file: {"bert": {"states": 2, "edges": 1, "sources": {"rollouts": source}}}}

    again = reproduction([file], {}, run("HEAD", states(before)), run("here", states(now)))
    assert again.faults == ()
    assert [place for place, *_ in told(again)] == ([] if alike else ["/bert/sources/rollouts/rewrites_to_best"])


def test_what_must_be_equal_may_not_differ_in_its_last_digit(compared: Callable[..., Reproduction]) -> None:
    def change(fresh: dict[str, Any]) -> None:
        row = fresh[EVALUATION]["bert"]["greedy"]
        row["cost_after_ms"] = math.nextafter(row["cost_after_ms"], 0.0)

    assert [place for place, *_ in told(compared(change))] == ["/bert/greedy/cost_after_ms"]


def test_last_digits_may_differ_and_no_more(compared: Callable[..., Reproduction]) -> None:
    """A loss, and a curve, which is one figure."""

    def scaled(factor: float) -> Change:
        def change(fresh: dict[str, Any]) -> None:
            losses = fresh[FIT]["bert"]["losses"]
            losses[next(iter(losses))] *= factor
            curve = next(iter(fresh[CURVES]["bert"].values()))
            curve["value"] = [value * factor for value in curve["value"]]

        return change

    assert compared(scaled(1.0 + RELATIVE / 2)).reproduced
    again = compared(scaled(1.0 + 4 * RELATIVE))
    assert [(found.file, found.kind) for found in again.unlike] == [(FIT, Kind.DIGITS), (CURVES, Kind.DIGITS)]
    assert all(found.deviation == pytest.approx(4 * RELATIVE, rel=0.01) for found in again.unlike)


def test_counts_that_follow_from_floats_are_not_rounded(published: dict[str, Any]) -> None:
    """One more in a million is less than the bound of floats."""

    def of(interactions: int) -> Run:
        document = copy.deepcopy(published[EVALUATION])
        document["bert"]["rlflow"]["real_interactions"] = interactions
        return run(str(interactions), {EVALUATION: document})

    (found,) = reproduction([EVALUATION], {}, of(10**6), of(10**6 + 1)).unlike
    assert (found.place, found.kind) == ("/bert/rlflow/real_interactions", Kind.DIGITS)
    assert found.deviation is not None
    assert found.deviation < RELATIVE


def test_another_time_is_no_fault(compared: Callable[..., Reproduction]) -> None:
    def change(fresh: dict[str, Any]) -> None:
        row = fresh[EVALUATION]["bert"]["greedy"]
        row["optimisation_s"] = 1e6
        row["latency_ratio_deployed"] = 3.0
        row["latency_ratio_deployed_ci95"] = [2.9, 3.1]
        row["latency_ratio_as_written"] += 0.001

    again = compared(change)
    assert again.reproduced
    apart = [figure.place for figure in again.figures if figure.intervals_apart]
    assert apart == ["/bert/greedy/latency_ratio_deployed"]


def test_the_policy_may_not_become_another_unnoticed(compared: Callable[..., Reproduction]) -> None:
    def change(fresh: dict[str, Any]) -> None:
        fresh[EVALUATION]["bert"]["rlflow"]["steps"] += 1

    assert [(place, kind) for place, kind, *_ in told(compared(change))] == [("/bert/rlflow/steps", "digits")]


def test_a_missing_file_is_a_fault_on_either_side(published: dict[str, Any]) -> None:
    fewer = {file: document for file, document in published.items() if file != FIT}
    for before, now, where in ((published, fewer, "here"), (fewer, published, "HEAD")):
        again = reproduction(FILES, OUTPUTS, run("HEAD", before), run("here", now))
        assert again.faults == (f"{FIT}: {where} has no such file",)
        assert not again.reproduced
        assert {figure.file for figure in again.figures} == set(fewer)


def test_what_appears_or_vanishes_is_told_as_one(compared: Callable[..., Reproduction]) -> None:
    """A method, an optional figure, and one that is a time."""

    def change(fresh: dict[str, Any]) -> None:
        rows = fresh[EVALUATION]["bert"]
        rows["newer"] = rows.pop("backtracking")
        del rows["random"]["measuring_s"]
        del rows["greedy"]["prices_asked"]

    again = compared(change)
    assert not again.reproduced
    places = {found.place: (found.published is None, found.fresh is None) for found in again.unlike}
    assert places == {
        "/bert/newer": (True, False),
        "/bert/backtracking": (False, True),
        "/bert/random/measuring_s": (False, True),
        "/bert/greedy/prices_asked": (False, True),
    }


def test_arrays_of_another_length_are_unlike(compared: Callable[..., Reproduction]) -> None:
    def change(fresh: dict[str, Any]) -> None:
        errors = fresh[FIT]["bert"]["open_loop"]
        errors.append(errors[0])
        name, curve = next(iter(fresh[CURVES]["bert"].items()))
        fresh[CURVES]["bert"][name] = curve | {"step": [*curve["step"], 10**6], "value": [*curve["value"], 0.0]}

    found = compared(change).unlike
    assert [one.place.rpartition("/")[2] for one in found] == ["1", "step", "value"]
    assert all(one.deviation is None for one in found)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"bert": {"greedy": {"steps": NaN}}}', "NaN is not JSON"),
        ('{"bert": ', "Expecting value"),
        ('{"bert": {"original": {}}}', "'cost_after_ms' is a required key"),
    ],
)
def test_a_file_that_is_no_sound_document_is_a_fault(published: dict[str, Any], text: str, reason: str) -> None:
    """NaN above all, which is unlike itself; two files that are spoiled alike are not the same results."""
    sound, spoiled = run("HEAD", published), Run("here", lambda file: text, DIGESTS)
    for before, now in ((sound, spoiled), (spoiled, sound), (spoiled, spoiled)):
        (fault,) = reproduction([EVALUATION], {}, before, now).faults
        assert fault.startswith(f"{EVALUATION} of here: ")
        assert reason in fault


def test_digests_decide_of_outputs_that_must_be_equal(compared: Callable[..., Reproduction]) -> None:
    others = {path: f"another {digest}" for path, digest in DIGESTS.items()}
    again = compared(digests=others)
    assert [output.file for output in again.unlike] == ["data/rules"]
    assert compared(digests=others | {"data/rules": DIGESTS["data/rules"]}).reproduced


def test_an_output_that_a_run_has_not_is_unlike(compared: Callable[..., Reproduction]) -> None:
    assert [output.file for output in compared(digests={}).unlike] == list(OUTPUTS)


@given(before=st.floats(-1e6, 1e6), error=st.floats(-1.0, 1.0))
def test_the_bound_of_digits_is_that_of_numpy(before: float, error: float) -> None:
    """Errors within half of the bound are rounding, of whatever size the number is, and twice the bound is not."""
    bound = ABSOLUTE + RELATIVE * abs(before)
    assert as_before(before, before + error * bound / 2)
    assert not as_before(before, before + math.copysign(2 * bound, error))


def as_before(published: float, fresh: float) -> bool:
    def of(name: str, value: float) -> Run:
        curve = {"unit": "loss", "step_name": "epoch", "step": [0], "value": [value]}
        return Run(name, {CURVES: json.dumps({"bert": {"loss": curve}})}.get, {})

    return reproduction([CURVES], {}, of("HEAD", published), of("here", fresh)).reproduced
