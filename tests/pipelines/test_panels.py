"""What each panel of DVC's plots draws is what the rows say of the graph, setting and series in its titles."""

import csv
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from support.panels import Panel, Place, panels, specification

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Template:
    """The columns of a template: those of a panel's titles, those along x and y, that of colours."""

    titles: tuple[str, ...]
    x: str
    y: str
    colour: str


TEMPLATES = {
    "methods": Template(("setting", "graph"), "value", "series", "rev"),
    "curves": Template(("graph", "series"), "step", "value", "rev"),
    "lines": Template(("graph",), "step", "value", "series"),
}
TEMPLATE_FOLDER = ".dvc/plots"
FACET = '"title": null}'  # how the settings of a facet end
UNSORTED = '"title": null, "sort": []}'  # by which Vega fills panels in the order of the data
GRAPHS, SETTINGS, SERIES = ("vit", "bert", "t5"), ("deployed", "as_written"), ("random", "greedy", "best")


def made_up(name: str, seed: int, share: float = 1.0, revisions: Sequence[str] = ("workspace",)) -> list[Row]:
    """Rows for a template in any order, of that share of all graphs, settings and series; no value comes twice."""
    draw = random.Random(seed)
    steps = range(1) if name == "methods" else range(4)
    cells = [cell for cell in product(GRAPHS, SETTINGS, SERIES) if draw.random() <= share]
    rows = [
        {"rev": rev, "graph": graph, "setting": setting, "series": series, "step": step}
        | {"value": value, "low": value - 1.0, "high": value + 1.0}
        for rev in revisions
        for graph, setting, series in cells
        for step in steps
        for value in [draw.uniform(-5.0, 20.0)]
    ]
    return draw.sample(rows, len(rows))


def drawn(name: str, rows: Sequence[Row], folder: Path) -> dict[tuple[str, ...], Panel]:
    return panels(specification(name, rows, TEMPLATES[name].x, TEMPLATES[name].y, folder))


def told(rows: Sequence[Row], template: Template) -> dict[tuple[str, ...], Panel]:
    """What each panel must draw, by the rows alone."""
    found: dict[tuple[str, ...], Panel] = {}
    for row in rows:
        x, y = (row[column] if column == "series" else float(row[column]) for column in (template.x, template.y))
        found.setdefault(tuple(row[title] for title in template.titles), set()).add((x, y, row[template.colour]))
    return found


def differing(one: Mapping[tuple[str, ...], Panel], other: Mapping[tuple[str, ...], Panel]) -> set[tuple[str, ...]]:
    """The titles of panels that are not alike; an empty one is like none at all."""
    empty: Panel = set()
    return {
        titles for titles in one.keys() | other.keys() if not alike(one.get(titles, empty), other.get(titles, empty))
    }


def alike(one: Panel, other: Panel) -> bool:
    """Return True if each point of either is one of the other; Vega computes places in double precision."""
    return all(any(same(a, b) for b in other) for a in one) and all(any(same(a, b) for b in one) for a in other)


def same(one: tuple[Place, Place, str], other: tuple[Place, Place, str]) -> bool:
    return all(
        a == b if isinstance(a, str) else None in (a, b) or a == pytest.approx(b, rel=1e-9, abs=1e-9)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_panel_draws_the_rows_of_its_titles(name: str, seed: int, repository: Path):
    """In whatever order these are."""
    rows = made_up(name, seed)
    expected = told(rows, TEMPLATES[name])
    assert differing(drawn(name, rows, repository / TEMPLATE_FOLDER), expected) == set()
    assert len(expected) >= 3


@pytest.mark.parametrize("name", TEMPLATES)
def test_panels_that_miss_rows_stay_empty(name: str, repository: Path):
    """Most graphs, settings and series have none, and the others move to no other panel."""
    rows = made_up(name, seed=3, share=0.25)
    expected = told(rows, TEMPLATES[name])
    assert differing(drawn(name, rows, repository / TEMPLATE_FOLDER), expected) == set()
    assert name == "lines" or len(expected) < len(told(made_up(name, seed=3), TEMPLATES[name])), "some have no row"


@pytest.mark.parametrize("name", TEMPLATES)
def test_experiments_beside_each_other_are_in_one_panel(name: str, repository: Path):
    """As `dvc plots diff` draws them, the second on another graph."""
    rows = made_up(name, seed=4) + [row | {"rev": "main", "graph": "dalle"} for row in made_up(name, seed=5)]
    assert differing(drawn(name, rows, repository / TEMPLATE_FOLDER), told(rows, TEMPLATES[name])) == set()


@pytest.mark.parametrize("name", ["methods", "curves"])
def test_the_order_of_rows_has_swapped_panels(name: str, repository: Path, tmp_path: Path):
    """Not vacuous: the templates of before filled the panels in that order, whatever their titles."""
    text = (repository / TEMPLATE_FOLDER / f"{name}.json").read_text()
    assert text.count(FACET) >= 2
    (tmp_path / f"{name}.json").write_text(text.replace(FACET, UNSORTED))
    rows = made_up(name, seed=0)
    assert differing(drawn(name, rows, tmp_path), told(rows, TEMPLATES[name]))
    if name == "methods":
        rows.sort(key=lambda row: (row["graph"], row["setting"]))  # as in latency_ratios.csv
        before, expected = drawn(name, rows, tmp_path), told(rows, TEMPLATES[name])
        assert alike(before[("as_written", "t5")], expected[("deployed", "bert")])


def test_a_panel_of_one_value_draws_each_row(repository: Path):
    """Its axis has one label, 2.0 for 1.869, so that only the places along x and the colours can be compared."""
    rows = [
        {"graph": "bert", "step": str(step), "value": "1.869", "series": series, "rev": "workspace"}
        for step in range(3)
        for series in ("dream", "real")
    ]
    expected = told(rows, TEMPLATES["lines"])
    shown = drawn("lines", rows, repository / TEMPLATE_FOLDER)
    assert differing(shown, expected) == set()
    assert differing(shown, told(rows[1:], TEMPLATES["lines"])) == {("bert",)}


def test_every_declared_plot_draws_its_file(repository: Path):
    """Of the figures that are here: those of dvc.yaml, with all of the templates."""
    settings: Any = OmegaConf.to_container(OmegaConf.load(repository / "dvc.yaml"), resolve=False)
    plots = [plot for entry in settings["plots"] if isinstance(entry, Mapping) for plot in entry.values() if plot]
    for plot in plots:
        ((file, y),) = plot["y"].items()
        template = replace(TEMPLATES[plot["template"]], x=plot["x"], y=y)
        with (repository / file).open(newline="") as lines:
            rows = [row | {"rev": "workspace"} for row in csv.DictReader(lines)]
        shown = panels(specification(plot["template"], rows, template.x, y, repository / TEMPLATE_FOLDER))
        assert differing(shown, told(rows, template)) == set(), file
    assert {plot["template"] for plot in plots} == TEMPLATES.keys()
    assert {path.stem for path in (repository / TEMPLATE_FOLDER).iterdir()} == TEMPLATES.keys()
