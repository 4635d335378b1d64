"""The study of budgets, in closed form on runs that are written down, and one run of the command."""

from pathlib import Path
from typing import Any

import pytest
from studies.budgets.documents import Budgets
from studies.budgets.runs import Afterwards, Allowance, Command, Run, run_command, summary

from rlflow import schemas, zoo
from rlflow.errors import RLFlowError
from rlflow.onnx_io import save_model


def run(wall_time_s: float, budget_s: float, improvement_percent: float, **others: Any) -> Run:
    return {
        "wall_time_s": wall_time_s,
        "wall_time_ratio": wall_time_s / budget_s,
        "search_s": 1.0,
        "improvement_percent": improvement_percent,
        "prices_measured": 3,
        "draws": 3,
        "rounds": 0,
        "latency_ratio": None,
        "written": "original",
        "reason": "as it is",
        "afterwards": None,
    } | others


def delivered(ratio: float) -> dict[str, Any]:
    return {"written": "optimised", "afterwards": {"value": ratio, "ci95": (ratio, ratio), "rounds": 40}}


RUNS = {
    "bert": {"15": run(23.0, 15, 4.0, **delivered(0.98)), "600": run(650.0, 600, 5.0, **delivered(1.1))},
    "vit": {"15": run(23.1, 15, 1.0), "600": run(100.0, 600, 10.0, **delivered(0.995))},
    "vgg": {"15": run(5.0, 15, 0.0), "600": run(50.0, 600, 0.0)},
    "t5": {"15": run(14.0, 15, 3.0)},
}


def test_the_allowance_is_1_2_times_the_budget_and_5_s() -> None:
    assert Allowance().admits(23.0, 15.0)
    assert not Allowance().admits(23.1, 15.0)
    assert Allowance(factor=2.0, seconds=0.0).admits(30.0, 15.0)


def test_figures_of_runs_that_are_written_down() -> None:
    """A model on which the long run finds nothing has no share, and one without a long run has none either.

    Of the three models on which 15 s find something, one was delivered, and it ran 2 % slower afterwards; the long run
    delivered it as well, and one more.
    """
    document = summary(RUNS, Allowance(), long="600")
    schemas.validate(Budgets, document)
    of_15 = document["budgets"]["15"]
    assert of_15["holding"] == {"value": 0.75, "baseline": 1.0, "baseline_name": "do_nothing", "cases": 4}
    assert of_15["share_percent"]["value"] == pytest.approx((80.0 + 10.0) / 2)
    assert of_15["share_percent"]["cases"] == 2
    assert of_15["delivered"] == {"value": 1 / 3, "baseline": 0.0, "baseline_name": "do_nothing", "cases": 3}
    assert of_15["delivered_of_long"] == {"value": 0.5, "baseline": 0.0, "baseline_name": "do_nothing", "cases": 2}
    assert of_15["slower"]["value"] == 1.0
    assert document["budgets"]["600"]["slower"] == {
        "value": 0.0,
        "baseline": 0.0,
        "baseline_name": "do_nothing",
        "cases": 2,
    }
    assert of_15["longest_ratio"] == pytest.approx(1.54)
    assert document["budgets"]["600"]["holding"]["cases"] == 3
    held = {name: runs["15"]["holds"] for name, runs in document["models"].items()}
    assert held == {"bert": True, "vit": False, "vgg": True, "t5": True}
    shares = {name: runs["15"]["share_percent"] for name, runs in document["models"].items()}
    assert shares == {"bert": 80.0, "vit": 10.0, "vgg": None, "t5": None}


@pytest.mark.study
def test_a_run_of_the_command(tmp_path: Path) -> None:
    save_model(zoo.build("tiny_chain"), tmp_path / "model.onnx")
    found = run_command(Command(tmp_path / "model.onnx", 10.0), Afterwards(rounds=2))
    assert found["improvement_percent"] > 0
    assert (found["written"] == "optimised") == (found["afterwards"] is not None)
    assert found["wall_time_ratio"] == pytest.approx(found["wall_time_s"] / 10.0, abs=1e-3)
    schemas.validate(Budgets, summary({"tiny_chain": {"10": found}}, Allowance(), long="10"))


@pytest.mark.study
@pytest.mark.timing
@pytest.mark.parametrize("budget_s", [5.0, 20.0])
def test_a_budget_holds_where_the_search_would_take_minutes(tmp_path: Path, budget_s: float) -> None:
    save_model(zoo.build("bert", layers=2), tmp_path / "model.onnx")
    found = run_command(Command(tmp_path / "model.onnx", budget_s))
    assert Allowance().admits(found["wall_time_s"], budget_s)


@pytest.mark.study
def test_a_run_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_text("no model")
    with pytest.raises(RLFlowError, match=r"at 1 s ended with exit code 2: rlflow: .*model\.onnx"):
        run_command(Command(tmp_path / "model.onnx", 1.0))
