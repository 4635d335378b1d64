"""The study of searches by predicted prices: what its configuration names exists, and a tiny study runs to its end."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from studies.documents import check_results
from studies.price_search.cases import COSTS, Aims
from support.study_settings import study_settings

TINY = ("graphs=[tiny_merge]", "methods=[greedy]")


@pytest.fixture(scope="module")
def settings(repository: Path) -> dict[str, Any]:
    composed: Any = OmegaConf.to_container(study_settings("price_search"))
    return composed


def options(repository: Path, group: str) -> set[str]:
    return {file.stem for file in (repository / "conf" / group).glob("*.yaml")}


def test_whatever_is_named_is_there(settings: dict[str, Any], repository: Path) -> None:
    assert len({*settings["graphs"]}) == 8
    assert {*settings["graphs"]} <= options(repository, "graph")
    assert {*settings["methods"]} <= options(repository, "search")
    assert {*settings["expansions"]} <= {*settings["methods"]}
    assert {*settings["costs"].values()} <= options(repository, "cost")


def test_the_study_has_the_prices_and_aims_of_its_module(settings: dict[str, Any]) -> None:
    assert set(settings["costs"]) == set(COSTS)
    assert Aims(**settings["aims"]) == Aims()


@pytest.mark.study
def test_a_tiny_study(repository: Path, store_root: Path, command: Callable) -> None:
    """Of microseconds, which prove no more than that the figures are there and belong together."""
    program = ("python", str(repository / "pipelines/study.py"), "price_search")
    command(*program, *TINY, cwd=store_root)
    results = store_root / "data/results"
    assert check_results(results) == []
    assert {path.name for path in (results / "price_search").iterdir()} == {"metrics.json", "table.md"}
    document = json.loads((results / "price_search/metrics.json").read_text())
    row = document["graphs"]["tiny_merge"]["greedy"]
    assert row["searches"]["measured"]["prices_measured"] > 0
    assert row["frozen"]["saved_percent"]["measured"] == pytest.approx(
        row["searches"]["measured"]["promised_percent"], abs=1e-4
    )
    assert document["methods"]["greedy"]["predicted"]["time_ratio"]["cases"] == 1
    assert not list((store_root / ".checkpoints/price_search").iterdir()), "nothing to go on from"
