"""What types say of figures that are computed again: of every number that `dvc repro` writes, something."""

from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
from experiment.documents import DOCUMENTS
from experiment.documents.evaluate import Evaluate, RulesApplied
from experiment.documents.fit_world_model import FitWorldModel
from experiment.documents.train_controller import TrainController
from experiment.results import read_results, type_of
from msgspec import Meta
from tracking.declaration import outputs_by_kind

from rlflow import schemas
from rlflow.schemas import Kind, Place
from rlflow.schemas.figures import DIGITS, Count, Document, Interval


def numbers_without_kind(place: Place) -> list[str]:
    """The paths of numbers of which the type does not say how they reproduce."""
    assert place.form is not None
    own = [place.path] if place.form.type in (int, float) and place.kind is None else []
    return own + [path for child in place.children() for path in numbers_without_kind(child)]


def test_these_are_the_types_of_what_the_experiment_writes(repository: Path) -> None:
    written = [Path(path) for path in outputs_by_kind(repository) if path.endswith(".json") and "results" in path]
    assert {id(type_of(path, DOCUMENTS)) for path in written} == {id(kind) for kind in DOCUMENTS.values()}


@pytest.mark.parametrize("file", DOCUMENTS)
def test_every_number_of_a_stage_has_a_kind(file: str) -> None:
    assert numbers_without_kind(schemas.top(DOCUMENTS[file])) == []


class Row(Document):
    OTHERS: ClassVar[Mapping[str, Any]] = {".*": dict[str, float]}

    steps: list[Count]
    ratio: float
    pair: Interval
    known: Annotated[Interval, DIGITS]


def test_a_number_without_a_kind_is_named() -> None:
    """So the walk above reaches through lists, pairs, further keys and classes."""
    found = numbers_without_kind(schemas.top(dict[str, Row]))
    assert found == ["/*/ratio", "/*/pair/0", "/*/pair/1", "/*/.*/*"]


def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="'roughly' is not a valid Kind"):
        schemas.top(Annotated[float, Meta(extra_json_schema={"reproduces": "roughly"})])


def kind(document: Any, *keys: str | int) -> Kind | None:
    return reduce(Place.child, keys, schemas.top(document)).kind


def test_kinds_along_documents() -> None:
    """Of a class that is referred to, beside a reference, inside lists and pairs, and from above."""
    assert kind(Evaluate, "bert", "greedy", "steps") == Kind.EQUAL
    assert kind(Evaluate, "bert", "greedy", "optimisation_s") == Kind.TIMING
    assert kind(Evaluate, "bert", "greedy", "latency_ratio_deployed_ci95", 1) == Kind.TIMING
    assert kind(Evaluate, "bert", "greedy", "max_relative_error") == Kind.DIGITS
    assert kind(FitWorldModel, "bert", "open_loop", 3, "error", "value") == Kind.DIGITS
    assert kind(FitWorldModel, "bert", "open_loop", 3, "horizon") == Kind.EQUAL
    assert kind(RulesApplied, "bert", "greedy", "merge-1") == Kind.EQUAL
    assert kind(Evaluate, "bert") is None
    assert kind(Evaluate, "bert", "greedy", "no such key", 3) is None


def test_the_loosest_kind_on_the_way_holds() -> None:
    """Whatever the trained policy does follows from floats, its counts too; its times stay times."""
    assert kind(Evaluate, "bert", "rlflow", "steps") == Kind.DIGITS
    assert kind(Evaluate, "bert", "rlflow", "optimisation_s") == Kind.TIMING
    assert kind(RulesApplied, "bert", "rlflow", "merge-1") == Kind.DIGITS
    assert kind(TrainController, "bert", "real_interactions") == Kind.DIGITS


def test_every_published_number_has_a_kind(repository: Path) -> None:
    """In the files themselves, by the way on which figures are compared."""
    counted = 0
    for path in outputs_by_kind(repository):
        if document := type_of(Path(path), DOCUMENTS):
            for keys in numbers(read_results(repository / path)):
                assert kind(document, *keys) is not None, f"{path}: {keys}"
                counted += 1
    assert counted > 500


def numbers(document: Any, *keys: str | int) -> Iterator[tuple[str | int, ...]]:
    if isinstance(document, int | float) and not isinstance(document, bool):
        yield keys
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, child in items:
        yield from numbers(child, *keys, key)
