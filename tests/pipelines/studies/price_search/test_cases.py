"""Results of searches by other prices, told in measured ones: in closed form, and by searches of a tiny graph."""

from pathlib import Path

import pytest
from experiment.results import read_results
from experiment.tables import price_search_table
from studies.price_search.cases import COSTS, Aims, Case, averaged, priced, run_case, summary, time_ratio
from studies.price_search.documents import PriceSearch
from studies.search_task import SearchTask
from studies.subject import Subject
from support.prices import DrawnTimings

from rlflow import schemas
from rlflow.cost import pricing
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext
from rlflow.cost.measured import MeasuredCost
from rlflow.cost.price_list import Price, PriceList
from rlflow.cost.regions import partition
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy

KINDS = {"predicted": "predicted", "analytic": "analytic", "measured": "measured"}


class OnePrice(PriceList):
    """Every region takes a millisecond, give or take so many."""

    sigma_ms = 0.1

    def get(self, setting: str, signature: str) -> Price:
        return Price(1.0, signature, self.sigma_ms)


class OneNoisyPrice(OnePrice):
    sigma_ms = 1.0


@pytest.fixture(scope="module")
def original(tiny_merge: Path) -> Graph:
    return from_onnx(tiny_merge)


@pytest.fixture(scope="module")
def merged(original: Graph) -> Graph:
    rules = library.load()
    return Greedy(rules, Rewriter(rules.rules), AnalyticCost()).optimise(original, Budget()).best


def task(model: Path, kind: str) -> SearchTask:
    return SearchTask(Subject(model, kind, CostContext()), "greedy", {}, Budget())


def search(wall_time_s: float) -> dict:
    return {
        "wall_time_s": wall_time_s,
        "promised_percent": 1.0,
        "steps": 1,
        "rewrites": 1,
        "prices_asked": 1,
        "prices_measured": 0,
    }


def row(shares: tuple[float | None, float | None], times_s: tuple[float, float, float]) -> dict:
    share_of_measured = dict(zip(COSTS, (*shares, None if shares[0] is None else 1.0), strict=True))
    by_a_list = {
        "original_ms": 10.0,
        "vacuous": shares[0] is None,
        "saved_percent": dict.fromkeys(COSTS, 1.0),
        "noise_percent": dict.fromkeys(COSTS, 0.1),
        "dearer": {"predicted": False, "analytic": shares[1] is None, "measured": False},
        "share_of_measured": share_of_measured,
        "share_noise": dict.fromkeys(COSTS, None if shares[0] is None else 0.1),
    }
    searches = {cost: search(time_s) for cost, time_s in zip(COSTS, times_s, strict=True)}
    return {"searches": searches, "frozen": by_a_list, "anew": by_a_list}


def test_savings_are_told_by_one_list(original: Graph, merged: Graph) -> None:
    """Every region costs a millisecond, so that what is saved is the number of regions that are gone."""
    before, after = (len(partition(graph).regions) for graph in (original, merged))
    assert before > after
    best = {"predicted": original, "analytic": merged, "measured": merged}
    told = priced(MeasuredCost("deployed", OnePrice("none", "none"), None), original, best, sigmas=2.0)
    assert told["original_ms"] == before
    assert told["saved_percent"]["measured"] == pytest.approx(100 * (before - after) / before, abs=1e-5)
    assert told["share_of_measured"] == {"predicted": 0.0, "analytic": 1.0, "measured": 1.0}
    assert told["share_noise"]["analytic"] == told["share_noise"]["measured"] == 0.0, "the same graph"
    assert told["share_noise"]["predicted"] == pytest.approx(
        told["noise_percent"]["measured"] / told["saved_percent"]["measured"], abs=1e-5
    )
    assert told["dearer"] == dict.fromkeys(best, False)
    assert not told["vacuous"]


def test_a_search_that_is_led_astray_is_told(original: Graph, merged: Graph) -> None:
    """From the graph with fewer regions to the one with more, and nothing that the measured search would find."""
    best = {"predicted": original, "analytic": merged, "measured": merged}
    told = priced(MeasuredCost("deployed", OnePrice("none", "none"), None), merged, best, sigmas=2.0)
    assert told["vacuous"]
    assert told["saved_percent"]["predicted"] < 0
    assert told["dearer"] == {"predicted": True, "analytic": False, "measured": False}


@pytest.mark.parametrize("noisy", [True, False], ids=["within its noise", "nothing"])
def test_where_there_is_nothing_to_find_there_are_no_shares(original: Graph, merged: Graph, noisy: bool) -> None:
    listed = (OneNoisyPrice if noisy else OnePrice)("none", "none")
    best = {"predicted": merged, "analytic": original, "measured": merged if noisy else original}
    told = priced(MeasuredCost("deployed", listed, None), original, best, sigmas=2.0)
    assert told["vacuous"]
    assert set(told["share_of_measured"].values()) == {None}
    assert told["saved_percent"]["predicted"] > 0, "what is saved is told all the same"


def test_figures_over_graphs_that_are_written_down() -> None:
    """A vacuous case counts for times, and where the search by analytic prices is led astray."""
    rows = {
        ("bert", "greedy"): row((0.94, 0.2), (1.0, 0.5, 40.0)),
        ("vit", "greedy"): row((0.98, 0.96), (2.5, 0.5, 10.0)),
        ("vgg", "greedy"): row((1.02, 0.0), (1.25, 0.5, 10.0)),
        ("squeezenet", "greedy"): row((None, None), (4.0, 0.5, 10.0)),
        ("squeezenet", "chains"): row((None, None), (4.0, 0.5, 10.0)),
    }
    document = summary(rows, Aims(share=0.95, time=0.05))
    schemas.validate(PriceSearch, document)
    greedy = document["methods"]["greedy"]
    assert greedy["predicted"]["frozen"] == {"median": 0.98, "smallest": 0.94, "reached": 2, "cases": 3, "dearer": 0}
    assert greedy["analytic"]["frozen"] == {"median": 0.2, "smallest": 0.0, "reached": 1, "cases": 3, "dearer": 1}
    assert greedy["predicted"]["time_ratio"] == {"median": 0.1875, "largest": 0.4, "within": 1, "cases": 4}
    nothing = {"median": None, "smallest": None, "reached": 0, "cases": 0, "dearer": 0}
    assert document["methods"]["chains"]["predicted"]["anew"] == nothing
    assert list(document["graphs"]["squeezenet"]) == ["greedy", "chains"]


def test_the_table_has_a_row_for_each_search() -> None:
    rows = {
        ("bert", "greedy"): row((0.95, 0.25), (20.0, 1.0, 40.0)),
        ("squeezenet1_1", "greedy"): row((None, None), (4.0, 0.5, 10.0)),
    }
    table = [line.split(" | ") for line in price_search_table(summary(rows, Aims())).splitlines()]
    assert table[2][0] == "| bert"
    assert table[2][5].startswith("0.950 ± ")
    assert table[2][8:] == ["40.0", "20.0 |"]
    assert table[3][5:] == ["-", "-", "-", "10.0", "4.0 |"]


def test_the_published_document_is_what_its_rows_give(repository: Path) -> None:
    published = read_results(repository / "data/results/price_search/metrics.json")
    graphs = published["graphs"]
    rows = {(graph, method): row for graph, methods in graphs.items() for method, row in methods.items()}
    assert summary(rows, Aims(**published["aims"])) == published


@pytest.mark.slow
def test_a_case_searches_by_all_prices_from_an_empty_list(tiny_merge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are drawn, the same for the same region, so that both lists must say the same."""
    drawn = DrawnTimings()
    for name in ("time_batch", "time_launch", "time_probe_ms"):
        monkeypatch.setattr(pricing, name, getattr(drawn, name))
    found = run_case(Case({cost: task(tiny_merge, kind) for cost, kind in KINDS.items()}, sigmas=2.0, lists=2))
    measured = {cost: search["prices_measured"] for cost, search in found["searches"].items()}
    assert measured.pop("measured") > 0
    assert set(measured.values()) == {0}
    assert found["anew"]["saved_percent"] == found["frozen"]["saved_percent"]
    assert found["anew"]["noise_percent"]["measured"] < found["frozen"]["noise_percent"]["measured"], "that of a mean"
    assert found["frozen"]["saved_percent"]["measured"] == pytest.approx(
        found["searches"]["measured"]["promised_percent"], abs=1e-5
    )
    assert time_ratio(found, "measured") == 1.0
    schemas.validate(PriceSearch, summary({("tiny_merge", "greedy"): found}, Aims()))


def test_the_mean_of_lists_has_the_noise_of_a_mean() -> None:
    """Of 1 and 3 ms, with noise of 3 and 4 us: the mean's is half of 5 us."""
    lists = [PriceList("here", "this machine", 1.0) for _ in range(2)]
    for listed, price in zip(lists, (Price(1.0, "a", 0.003), Price(3.0, "a", 0.004)), strict=True):
        listed.add("deployed", "region", price)
    mean = averaged(lists).get("deployed", "region")
    assert (mean.ms, mean.sigma_ms) == (2.0, pytest.approx(0.0025))
    assert lists[0].get("deployed", "region") == Price(1.0, "a", 0.003), "what was taken stays"


def test_what_does_not_measure_is_no_reference(tiny_merge: Path) -> None:
    with pytest.raises(InputError, match="analytic does not measure"):
        run_case(Case({cost: task(tiny_merge, "analytic") for cost in COSTS}, sigmas=2.0, lists=1))
