"""Methods side by side on real files: what each row says is what was found, checked and timed."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from experiment import comparison
from experiment.comparison import Contender, Contest, Timing
from experiment.documents.evaluate import Evaluate

from rlflow import schemas, zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.equivalence.compare import compare
from rlflow.errors import EquivalenceError, RLFlowError
from rlflow.method import Budget
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.source import Source
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy

CONFIG = GateConfig(draws=2, rounds=2, runs_per_round=2)


@dataclass(frozen=True)
class Case:
    """A contest over a small model, and greedy search for it."""

    contest: Contest
    greedy: Greedy
    cost_model: AnalyticCost


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    rules, cost_model = library.load(), AnalyticCost()
    contest = comparison.contest_of(Source.of(zoo.build("tiny_scale")), tmp_path_factory.mktemp("comparison"), CONFIG)
    return Case(contest, Greedy(rules, Rewriter(rules.rules), cost_model), cost_model)


@pytest.fixture(scope="module")
def rows(case: Case, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    contender = Contender(case.greedy, Budget(), (0,), training_s=3.0, training_rewrites=100)
    kept = tmp_path_factory.mktemp("kept")
    outcomes = {"greedy": comparison.compete(contender, case.contest, kept)}
    timing = comparison.time_all(case.contest, outcomes, lambda fraction, text: None)
    original = comparison.original_row(case.contest, case.cost_model, timing)
    return {"original": original, "greedy": comparison.row(case.contest, outcomes["greedy"], case.cost_model, timing)}


def test_rows_follow_the_schema(rows: dict[str, dict]):
    """Not vacuous: a row that lacks a figure is refused."""
    schemas.validate(Evaluate, {"tiny_scale": rows})
    lacking = {name: figure for name, figure in rows["greedy"].items() if name != "max_relative_error"}
    with pytest.raises(RLFlowError, match="max_relative_error"):
        schemas.validate(Evaluate, {"tiny_scale": rows | {"greedy": lacking}})


def test_the_original_changes_nothing(rows: dict[str, dict]):
    original = rows["original"]
    assert original["improvement_percent"] == original["max_relative_error"] == original["steps"] == 0
    assert {original[f"{name}_ratio"] for name in ("flops", "launches", "peak_memory")} == {1.0}


def test_a_row_tells_what_the_search_found(rows: dict[str, dict], case: Case):
    """Read off the files: the nodes that are gone, and that something is gone at all."""
    row = rows["greedy"]
    before, after = (
        len(onnx.load(path).graph.node)
        for path in (case.contest.original, case.contest.original.with_name("greedy.onnx"))
    )
    assert row["launches_ratio"] == before / after > 1
    assert row["improvement_percent"] > 0
    assert row["steps"] >= row["distinct_rules"] > 0
    assert 0 < row["max_relative_error"] <= row["tolerance"]
    assert row["real_interactions"] > 100


def test_a_wrong_model_is_no_result(case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """An exporter that spoils a weight: the export is named, since every step by itself is right."""
    export = comparison.to_onnx

    def spoiled(best):
        model = export(best)
        weight = model.graph.initializer[0]
        values = onnx.numpy_helper.to_array(weight) * 1.01
        weight.CopyFrom(onnx.numpy_helper.from_array(values.astype(np.float32), weight.name))
        return model

    monkeypatch.setattr(comparison, "to_onnx", spoiled)
    with pytest.raises(EquivalenceError, match=r"greedy: .*not equivalent.*it broke at import or export"):
        comparison.compete(Contender(case.greedy, Budget()), case.contest, tmp_path)
    folder = tmp_path / "greedy.reproducer"
    assert {file.name for file in folder.iterdir()} == {"README.txt", "before.onnx", "after.onnx", "inputs.npz"}
    feeds = dict(np.load(folder / "inputs.npz"))
    assert not compare(folder / "before.onnx", folder / "after.onnx", inputs=[feeds]).equivalent


def test_a_ratio_is_original_over_other():
    times = {"original": np.array([2.0, 4.0]), "original again": np.array([2.0, 4.0]), "fast": np.array([1.0, 2.0])}
    timing = Timing({"deployed": times})
    assert timing.ratio("deployed", "fast").value == 2.0
    assert timing.ratio("deployed", "original").value == 1.0
    assert timing.median_ms("deployed", "fast") == 1.5


def test_a_budget_is_kept(case: Case, tmp_path: Path):
    contender = Contender(replace(case.greedy), Budget(expansions=1))
    outcome = comparison.compete(contender, case.contest, tmp_path)
    assert len(outcome.result.trajectory.steps) <= 1


@pytest.mark.slow
def test_a_graph_that_two_methods_have_found_is_one_model(case: Case, tmp_path: Path):
    """Checked and timed once; the third one, which has no rules, found another."""
    contest, outcomes = comparison.contest_of(Source.of(zoo.build("tiny_scale")), tmp_path, CONFIG), {}
    idle = replace(case.greedy, rewriter=Rewriter(()))
    for alias, method in (("first", case.greedy), ("second", case.greedy), ("idle", idle)):
        contender, others = Contender(method, Budget(), alias=alias), tuple(outcomes.values())
        outcomes[alias] = comparison.compete(contender, contest, tmp_path / "kept" / alias, others=others)
    assert [outcome.model.stem for outcome in outcomes.values()] == ["first", "first", "idle"]
    assert not (tmp_path / "second.onnx").exists()
    assert outcomes["second"].equivalence is outcomes["first"].equivalence
    times_ms = comparison.time_all(contest, outcomes, lambda fraction, text: None).times_ms["deployed"]
    assert list(times_ms["second"]) == list(times_ms["first"]) != list(times_ms["idle"])
    assert set(times_ms) == {"original", "original again", "first", "second", "idle"}


def test_one_method_competes_with_several_settings(case: Case, tmp_path: Path):
    """Under a name of its own, or it would be given the result that is kept of the other."""
    results = []
    for alias, budget in (("", Budget()), ("one step", Budget(expansions=1))):
        contender = Contender(case.greedy, budget, alias=alias)
        results.append(comparison.compete(contender, case.contest, tmp_path))
    assert [outcome.model.stem for outcome in results] == ["greedy", "one step"]
    first, second = (outcome.result for outcome in results)
    assert first.effort.prices_asked > second.effort.prices_asked, "the second was searched for, too"
