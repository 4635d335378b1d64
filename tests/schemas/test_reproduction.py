"""What the schemas say of figures that are computed again: of every number that `dvc repro` writes, something."""

import json
from collections.abc import Iterator
from functools import reduce
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import pytest
from experiment.results import read_results, schema_of
from rlflow.schemas.validation import resolver
from tracking.declaration import outputs_by_kind

from rlflow import schemas
from rlflow.schemas import Kind, Place

STAGES = (
    "collect_rollouts curves evaluate fit_world_model generate_rules rules_applied temperature_sweep train_controller"
).split()


def numbers_without_kind(place: Place) -> list[str]:
    """The paths of numbers of which the schema does not say how they reproduce."""
    own = [place.path] if place.part.get("type") in ("number", "integer") and place.kind is None else []
    return own + [path for child in place.children() for path in numbers_without_kind(child)]


def test_these_are_the_schemas_of_what_the_experiment_writes(repository: Path) -> None:
    written = [Path(path) for path in outputs_by_kind(repository) if path.endswith(".json") and "results" in path]
    assert {schema_of(path) for path in written} == set(STAGES)


@pytest.mark.parametrize("name", STAGES)
def test_every_number_of_a_stage_has_a_kind(name: str) -> None:
    assert numbers_without_kind(schemas.top(name)) == []


@pytest.mark.parametrize(
    ("name", "path", "numbers"),
    [
        ("train_controller", ["additionalProperties", "properties", "temperature"], ["/*/temperature"]),
        (
            "evaluate",
            ["$defs", "result", "properties", "latency_ratio_deployed_ci95"],
            [f"/*/{method}/latency_ratio_deployed_ci95/{end}" for method in ("original", "*") for end in (0, 1)],
        ),
        (
            "fit_world_model",
            ["additionalProperties", "properties", "open_loop", "items", "properties", "error"],
            ["/*/open_loop/*/error/value", "/*/open_loop/*/error/baseline"],
        ),
    ],
)
def test_a_number_without_a_kind_is_named(name: str, path: list[str], numbers: list[str]) -> None:
    """So the walk above reaches through arrays, pairs and definitions of this schema and of others."""
    spoiled = schemas.schema(name)
    part = spoiled
    for key in path:
        part = part[key]
    del part["reproduces"]
    assert sorted(numbers_without_kind(Place.of("", spoiled, None, resolver(spoiled)))) == sorted(numbers)


@pytest.mark.parametrize("path", sorted(files("rlflow.schemas").iterdir(), key=str), ids=lambda path: path.name)
def test_every_kind_that_a_schema_names_is_one(path: Traversable) -> None:
    if path.name.endswith(".json"):
        assert set(named_kinds(json.loads(path.read_text()))) <= set(Kind)


def named_kinds(part: Any) -> Iterator[Any]:
    if isinstance(part, dict):
        yield from [part["reproduces"]] if "reproduces" in part else []
    for child in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from named_kinds(child)


def test_a_kind_that_there_is_not_is_refused() -> None:
    document = schemas.schema("curves") | {"additionalProperties": {"type": "number", "reproduces": "roughly"}}
    with pytest.raises(ValueError, match="'roughly' is not a valid Kind"):
        numbers_without_kind(Place.of("", document, None, resolver(document)))


def kind(name: str, *keys: str | int) -> Kind | None:
    return reduce(Place.child, keys, schemas.top(name)).kind


def test_kinds_along_documents() -> None:
    """Of a definition that is referred to, beside a reference, inside arrays and pairs, and from above."""
    assert kind("evaluate", "bert", "greedy", "steps") == Kind.EQUAL
    assert kind("evaluate", "bert", "greedy", "optimisation_s") == Kind.TIMING
    assert kind("evaluate", "bert", "greedy", "latency_ratio_deployed_ci95", 1) == Kind.TIMING
    assert kind("evaluate", "bert", "greedy", "max_relative_error") == Kind.DIGITS
    assert kind("fit_world_model", "bert", "open_loop", 3, "error", "value") == Kind.DIGITS
    assert kind("fit_world_model", "bert", "open_loop", 3, "horizon") == Kind.EQUAL
    assert kind("rules_applied", "bert", "greedy", "merge-1") == Kind.EQUAL
    assert kind("evaluate", "bert") is None


def test_the_loosest_kind_on_the_way_holds() -> None:
    """Whatever the trained policy does follows from floats, its counts too; its times stay times."""
    assert kind("evaluate", "bert", "rlflow", "steps") == Kind.DIGITS
    assert kind("evaluate", "bert", "rlflow", "optimisation_s") == Kind.TIMING
    assert kind("rules_applied", "bert", "rlflow", "merge-1") == Kind.DIGITS
    assert kind("train_controller", "bert", "real_interactions") == Kind.DIGITS


def test_every_published_number_has_a_kind(repository: Path) -> None:
    """In the files themselves, by the way on which figures are compared."""
    counted = 0
    for path in (path for path in outputs_by_kind(repository) if schema_of(Path(path)) in STAGES):
        for keys in numbers(read_results(repository / path)):
            assert kind(str(schema_of(Path(path))), *keys) is not None, f"{path}: {keys}"
            counted += 1
    assert counted > 500


def numbers(document: Any, *keys: str | int) -> Iterator[tuple[str | int, ...]]:
    if isinstance(document, int | float) and not isinstance(document, bool):
        yield keys
    children = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, child in children:
        yield from numbers(child, *keys, key)
