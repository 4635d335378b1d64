"""Prices that searches share: one for a region, whoever asks, and each counts those that it did not have."""

import math
from pathlib import Path

import pytest
from studies.learned.shared_prices import SharedPrices, shared_prices
from support.cost_graphs import graph, weight

from rlflow.cost.base import CostContext
from rlflow.cost.price_list import read
from rlflow.errors import InputError, PriceError
from rlflow.ir.graph import Graph

FAST = {"sessions": 2, "turns": 1, "eviction_bytes": 1_000_000, "slow_pace": math.inf}


def product(columns: int) -> Graph:
    shapes = {"x": (3, 4)}, {"y": (3, columns)}
    return graph([("MatMul", "x w", "u"), ("Relu", "u", "y")], *shapes, {"w": weight(4, columns)})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "prices.json"


def search(file: Path) -> SharedPrices:
    return shared_prices(CostContext("as_written", prices=file, settings=FAST))


def test_who_comes_later_counts_the_same_and_measures_nothing(file: Path, monkeypatch: pytest.MonkeyPatch):
    first = search(file)
    costs = [first.runtime_ms(product(5)), first.runtime_ms(product(6))]
    assert first.measuring.prices == len(first.shared.prices) == 4
    assert first.measuring.seconds > 0

    def refuse(*arguments, **settings):
        raise AssertionError("a price that the file has was measured again")

    monkeypatch.setattr("studies.learned.shared_prices.add_prices", refuse)
    second = search(file)
    assert [second.runtime_ms(product(5)), second.runtime_ms(product(6))] == costs
    assert second.measuring.prices == 4


def test_a_search_counts_only_what_it_asks_for(file: Path):
    search(file).runtime_ms(product(5))
    other = search(file)
    assert other.measuring.prices == 0, "what the file has costs nothing until it is asked for"
    other.runtime_ms(product(6))
    other.runtime_ms(product(6))
    assert other.measuring.prices == 2
    assert len(read(file).prices) == 4


def test_prices_are_measured_together(file: Path):
    """As searches that look ahead want it: both graphs' prices, before either is asked for."""
    model = search(file)
    assert model.measure([product(5), product(6)]) == 0
    counted = model.measuring.prices
    model.runtime_ms(product(5))
    assert model.measuring.prices == counted == 4


def test_a_file_must_be_named_and_be_of_this_machine(file: Path):
    with pytest.raises(InputError, match="name one"):
        shared_prices(CostContext("as_written"))
    search(file).runtime_ms(product(5))
    file.write_text(file.read_text().replace(f'"hardware": "{read(file).hardware}"', '"hardware": "another"'))
    with pytest.raises(PriceError, match="other hardware"):
        search(file)
