"""The price model: alone or in a batch the same, written and read back the same, and refused where it does not fit."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from support.price_models import (
    PACES,
    PLACE,
    PROCESSOR,
    drawn_description,
    drawn_model,
    drawn_trees,
    examples,
    regions_of,
)

from rlflow.cost.predicted import physics, price_model
from rlflow.cost.predicted.features import Features
from rlflow.cost.predicted.price_model import DESCRIPTION, TREES, Place, PriceModel, assembled, log_ratio, read, save
from rlflow.errors import PriceError
from rlflow.onnx_io.tree_ensemble import Tree


@pytest.fixture(scope="module")
def regions(bert) -> list[Features]:
    graphs = [bert(), bert(layer_norm="decomposed"), bert(sequence=5)]
    return [example.features for example in examples(regions_of(graphs), lambda _: 1.0)]


@pytest.fixture(scope="module")
def model(bert) -> PriceModel:
    return drawn_model([bert(), bert(layer_norm="decomposed")], count=300)


def test_a_region_has_one_price_alone_and_in_a_batch(model, regions) -> None:
    """To the last bit, and not vacuous: nearly all regions have prices of their own."""
    together = model.ms(regions, PLACE)
    assert [model.ms([features], PLACE)[0] for features in regions] == together
    assert model.ms(regions[::-1], PLACE)[::-1] == together
    assert len(set(together)) > 0.8 * len(regions) > 10
    assert model.ms([], PLACE) == []


def test_the_trees_correct_physics_by_a_factor(regions) -> None:
    """A single leaf of log 2 doubles every price, but for the microsecond on both sides of the ratio."""
    description = drawn_description(regions)
    doubled = assembled(description, [Tree([0], [log_ratio(0.003, 0.001)], [-1], [-1])], base=0.0)
    for features, ms in zip(regions, doubled.ms(regions, PLACE), strict=True):
        plain = physics.milliseconds(PACES, physics.terms(features, cold=1.0))
        assert ms == pytest.approx(2 * plain + 0.001, rel=1e-6, abs=1e-6)  # the leaf is a float32, prices are rounded


def test_a_model_that_is_written_reads_back_the_same(regions, tmp_path) -> None:
    description = drawn_description(regions)
    trees = drawn_trees(len(description.ranges) + len(description.grams), 20, seed=0)
    save(tmp_path, description, trees, base=0.5)
    found = read(tmp_path)
    assert found.description == description
    assert found.ms(regions, PLACE) == assembled(description, trees, base=0.5).ms(regions, PLACE)


def test_equal_models_are_equal_files(regions, tmp_path) -> None:
    description = drawn_description(regions)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        trees = drawn_trees(len(description.ranges) + len(description.grams), 5, seed=0)
        save(tmp_path / name, description, trees, base=0.0)
    for file in (DESCRIPTION, TREES):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


@pytest.fixture
def written(regions, tmp_path) -> Path:
    description = drawn_description(regions)
    save(tmp_path, description, drawn_trees(len(description.ranges) + len(description.grams), 5, seed=0), base=0.0)
    return tmp_path


def changed(**entries: object) -> Callable[[Path], None]:
    """Write other entries into the description."""

    def change(folder: Path) -> None:
        content = json.loads((folder / DESCRIPTION).read_text())
        (folder / DESCRIPTION).write_text(json.dumps({**content, **entries}))

    return change


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: (folder / DESCRIPTION).unlink(), r"there is no price model in .*`make study NAME=price_model`"),
        (lambda folder: (folder / DESCRIPTION).write_text("{"), "there is no price model in"),
        (
            lambda folder: (folder / TREES).write_bytes((folder / TREES).read_bytes() + b"\0"),
            rf"{TREES} is not the file that {DESCRIPTION} describes",
        ),
        (changed(version=price_model.VERSION + 1), "made for other features than those of this library"),
        (changed(version=3, processors={"drawn": {"view_ms": 0.003}}), "made for other features"),
        (changed(processors={"drawn": {**asdict(PROCESSOR), "physics": {"launches": 1.0}}}), "made for other features"),
        (changed(ranges={"bytes nowhere": [0, 1]}), "made for other features"),
    ],
    ids=[
        "missing",
        "damaged",
        "other trees",
        "another version",
        "views without steps",
        "other terms",
        "other numbers",
    ],
)
def test_a_model_that_does_not_fit_is_refused(written: Path, damage: Callable[[Path], None], reason: str) -> None:
    """Not vacuous: the model is read before."""
    read(written)
    damage(written)
    with pytest.raises(PriceError, match=reason):
        read(written)


@pytest.mark.parametrize(
    ("working_set_mb", "cold"), [(0.0, 0.0), (16.0, 0.0), (32.0, 0.5), (64.0, 1.0), (1e3, 1.0), (None, 1.0)]
)
def test_weights_are_cold_where_the_cache_does_not_hold_them(working_set_mb, cold) -> None:
    """Of a cache of 32 MB; where it is not known how much a run touches, weights are cold."""
    assert Place.of(PROCESSOR, working_set_mb).cold == cold


def test_what_was_measured_is_not_strange_and_what_is_larger_is(bert) -> None:
    model = drawn_model([bert()])
    for example in examples(regions_of([bert()]), lambda _: 1.0):
        assert model.strangeness(example.features) == 0.0
    larger = examples(regions_of([bert(hidden=256, intermediate=1024)]), lambda _: 1.0)
    assert max(model.strangeness(example.features) for example in larger) > 3, "eight times as wide: three doublings"


def test_a_pattern_that_was_never_measured_is_strange(bert) -> None:
    model = drawn_model([bert(layer_norm="fused")])
    unknown = examples(regions_of([bert(layer_norm="decomposed")]), lambda _: 1.0)
    assert max(model.strangeness(example.features) for example in unknown) >= 1


def test_the_model_that_ships_is_read_once() -> None:
    assert price_model.load() is price_model.load()
