"""The study of searches by predicted prices: what its configuration names exists, and a tiny study runs to its end."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from studies.price_search.cases import COSTS, Aims
from support.study_settings import plain_settings

TINY = ("graphs=[tiny_merge]", "methods=[greedy]")


def test_the_study_has_the_prices_and_aims_of_its_module() -> None:
    settings = plain_settings("price_search")
    assert len({*settings["graphs"]}) == 8
    assert {*settings["expansions"]} <= {*settings["methods"]}
    assert set(settings["costs"]) == set(COSTS)
    assert Aims(**settings["aims"]) == Aims()


@pytest.mark.study
def test_a_tiny_study(study: Callable[..., Path]) -> None:
    """Of microseconds, which prove no more than that the figures are there and belong together."""
    results = study("price_search", *TINY)
    assert {path.name for path in (results / "price_search").iterdir()} == {"metrics.json", "table.md"}
    document = json.loads((results / "price_search/metrics.json").read_text())
    row = document["graphs"]["tiny_merge"]["greedy"]
    assert row["searches"]["measured"]["prices_measured"] > 0
    assert row["frozen"]["saved_percent"]["measured"] == pytest.approx(
        row["searches"]["measured"]["promised_percent"], abs=1e-4
    )
    assert document["methods"]["greedy"]["predicted"]["time_ratio"]["cases"] == 1
