import dataclasses
from pathlib import Path

import pytest

from rlflow import schemas
from rlflow.equivalence.report import EquivalenceReport
from rlflow.errors import RLFlowError
from rlflow.method import Effort
from rlflow.optimise.clock import TimeSpent
from rlflow.optimise.refusal import Refusal
from rlflow.optimise.report import OptimisationReport
from rlflow.optimise.reported.latency import LatencyChange
from rlflow.optimise.reported.steps import Step, SubgraphReport
from rlflow.runtime.timing.verdict import Verdict
from rlflow.schemas.optimise import OptimiseReport

EQUIVALENCE = EquivalenceReport(
    equivalent=True,
    reason="",
    max_absolute_error=3e-6,
    max_relative_error=7e-7,
    tolerance=2e-5,
    draws=3,
    non_vacuous_draws=3,
)
REPORT = OptimisationReport(
    input="model.onnx",
    output="faster.onnx",
    method="rlflow",
    written="optimised",
    reason="faster beyond noise",
    nodes_before=400,
    nodes_after=390,
    cost_before_ms=120.0,
    cost_after_ms=108.0,
    flops_ratio=1.0,
    launches_ratio=1.05,
    peak_memory_ratio=1.0,
    latency={
        "as_written": LatencyChange(121.0, 120.5, Verdict("same", 1.004, 0.993, 1.008, 1.001, 30, 0.2, 0.01)),
        "deployed": LatencyChange(120.0, 109.0, Verdict("faster", 1.1, 1.08, 1.12, 0.998, 7, 0.98, 0.001), retaken=2),
    },
    equivalence=EQUIVALENCE,
    steps=(Step("sum", 0, 119.0), Step("sum", 1, 112.0), Step("merge", 0, 108.0)),
    optimisation_s=12.34,
    effort=Effort(rewrites=250, prices_asked=700, prices_measured=4, measuring_s=1.5),
    budget_s=None,
    setting="deployed",
    threads=1,
    hardware="0123456789ab",
    seed=0,
    opset_before=13,
    opset_after=13,
)


def test_the_report_of_a_program_follows_its_schema():
    document = REPORT.to_json()
    schemas.validate(OptimiseReport, document)
    assert document["improvement_percent"] == pytest.approx(10)
    assert document["latency"]["deployed"] == {
        "latency_before_ms": 120.0,
        "latency_after_ms": 109.0,
        "decision": "faster",
        "ratio": 1.1,
        "ratio_interval": [1.08, 1.12],
        "faster_probability": 0.98,
        "harmful_probability": 0.001,
        "control_ratio": 0.998,
        "rounds": 7,
        "rounds_retaken": 2,
    }
    assert document["steps"][2] == {"rule": "merge", "location": 0, "cost_ms": 108.0}
    assert document["equivalence"]["non_vacuous_draws"] == 3
    assert document["budget_s"] is None


def test_figures_that_cannot_be_published_are_refused():
    with pytest.raises(RLFlowError, match="/method: "):
        dataclasses.replace(REPORT, method="").to_json()
    with pytest.raises(RLFlowError, match="/flops_ratio: inf is not a finite number"):
        dataclasses.replace(REPORT, flops_ratio=float("inf")).to_json()


def test_the_summary_says_what_was_written_how_fast_and_how_checked():
    summary = REPORT.summary()
    assert "Wrote faster.onnx: the optimised model (faster beyond noise)." in summary
    assert (
        "as deployed (ONNX Runtime's own optimisation on), 1 thread: 120.000 ms -> 109.000 ms, 1.100 times as fast "
        "(ratio 1.100, interval 1.080 to 1.120, faster with probability 0.98, original against itself 0.998, 7 rounds, "
        "2 taken again beside a slow machine)."
    ) in summary
    assert "Latency as deployed (ONNX Runtime's own optimisation on), 2 threads: 120.000 ms" in (
        dataclasses.replace(REPORT, threads=2).summary()
    )
    assert "121.000 ms -> 120.500 ms, the same within the margin (ratio 1.004, interval 0.993 to 1.008" in summary
    assert "120.000 ms -> 108.000 ms (+10.0 %), nodes 400 -> 390" in summary
    assert "largest relative error 7.0e-07, tolerance 2.0e-05 (3 of 3 draws informative)" in summary
    assert (
        "Method rlflow: 3 substitutions (sum x2, merge x1) in 12.3 s, 250 rewrites carried out, 700 priced." in summary
    )


def test_it_tells_what_the_time_went_to():
    assert "Time:" not in REPORT.summary(), "nobody has looked at a clock"
    spent = TimeSpent({"reading": 0.5, "judging": 1.25}, 1.75)
    report = dataclasses.replace(REPORT, time_spent=spent)
    assert report.summary().endswith("Time: reading 0.5 s, judging 1.2 s; the first answer was known after 1.8 s.")
    document = report.to_json()
    assert (document["phases_s"], document["first_answer_s"]) == ({"reading": 0.5, "judging": 1.25}, 1.75)


def test_the_summary_hides_neither_a_loss_nor_an_empty_hand():
    slower = {"deployed": LatencyChange(100.0, 125.0, Verdict("slower", 0.8, 0.78, 0.82, 1.0, 6, 0.0, 1.0))}
    report = dataclasses.replace(REPORT, written="original", reason="nothing was faster", latency=slower, steps=())
    assert "slower, 0.800 times as fast" in report.summary()
    assert "the original model (nothing was faster)" in report.summary()
    assert "no substitution in" in report.summary()
    many = tuple(Step(f"rule{index}", 0, 1.0) for index in range(8))
    assert "and 3 more" in dataclasses.replace(REPORT, steps=many).summary()


def test_the_summary_says_so_where_nothing_was_timed():
    """As after an interrupt. Of an original that nothing was found for, there was nothing to time."""
    untimed = dataclasses.replace(REPORT, latency={}, reason="interrupted: equal within rounding, not timed")
    assert "Not timed: whether it is faster is predicted, not known." in untimed.summary()
    assert untimed.to_json()["latency"] == {}
    assert "Not timed" not in REPORT.summary()
    assert "Not timed" not in dataclasses.replace(untimed, written="original", steps=()).summary()


def test_too_few_rounds_give_no_interval():
    """JSON has no infinity, and a reader no use for it."""
    open_ = {"deployed": LatencyChange(100.0, 99.0, Verdict("undecided", 1.01, 0.0, float("inf"), 1.0, 3, 0.7, 0.05))}
    report = dataclasses.replace(REPORT, latency=open_)
    assert report.to_json()["latency"]["deployed"]["ratio_interval"] is None
    said = "ratio 1.010, faster with probability 0.70, original against itself 1.000, 3 rounds"
    assert f"no difference beyond noise ({said})." in report.summary()


def test_the_summary_calls_rules_by_their_names():
    """A name is what `rlflow rules show` and a search of the code find; the document has both."""
    report = dataclasses.replace(REPORT, rule_names={"sum": "add-up", "merge": "merge-2-matmuls"})
    assert "3 substitutions (add-up x2, merge-2-matmuls x1)" in report.summary()
    assert report.to_json()["rule_names"]["sum"] == "add-up"
    assert report.to_json()["steps"][0]["rule"] == "sum"


def test_the_summary_says_what_the_model_asks_for_that_the_original_does_not():
    pinned, raised = ("merge", "merge"), ("sum",)
    conditions = {"pinned": {"ids": (1, 128)}, "pinned_for": pinned, "opset_after": 17, "raised_for": raised}
    report = dataclasses.replace(REPORT, **conditions)
    assert "It accepts only ids=1x128, which merge x2 requires." in report.summary()
    assert "It uses opset 17 instead of 13, which sum x1 requires." in report.summary()
    document = report.to_json()
    assert (document["pinned"], document["pinned_for"]) == ({"ids": [1, 128]}, ["merge", "merge"])
    assert (document["opset_before"], document["opset_after"], document["raised_for"]) == (13, 17, ["sum"])
    assert "alone" not in REPORT.summary()
    assert "alone" not in dataclasses.replace(report, written="original").summary(), "that is of the one turned down"


def test_the_summary_says_what_the_model_assumes_of_its_values():
    """Which rules those are is said too; a model that was turned down assumes nothing."""
    names = {"sum": "add-up", "merge": "merge-2-matmuls"}
    report = dataclasses.replace(REPORT, rule_names=names, assumptions={"finite": ("merge",), "moderate": ("sum",)})
    summary = report.summary()
    assert (
        "It assumes that values are finite: neither side computes NaN or an infinity (merge-2-matmuls x1)." in summary
    )
    assert "It assumes that values are of ordinary size" in summary
    assert report.to_json()["assumptions"] == {"finite": ["merge"], "moderate": ["sum"]}
    assert "assumes" not in REPORT.summary()
    assert "assumes" not in dataclasses.replace(report, written="original").summary()


def test_the_summary_says_what_was_done_in_bodies():
    done = SubgraphReport(
        "choice", "then_branch", "", (Step("sum", 0, 1.5), Step("sum", 1, 1.0)), 2.0, 1.0, 0.5, Effort(7, 9)
    )
    left = [
        SubgraphReport("choice", "else_branch", "nothing was found"),
        SubgraphReport("loop", "body", "nothing was found"),
    ]
    report = dataclasses.replace(REPORT, subgraphs=(done, *left))
    lines = report.summary().splitlines()
    assert lines[-2] == "In the then_branch of choice: 2 substitutions (sum x2), predicted cost 2.000 ms -> 1.000 ms."
    assert lines[-1] == "Other subgraphs are unchanged: nothing was found (x2)."
    first, *others = report.to_json()["subgraphs"]
    assert first == {
        "node": "choice",
        "attribute": "then_branch",
        "left_because": "",
        "steps": [{"rule": "sum", "location": 0, "cost_ms": 1.5}, {"rule": "sum", "location": 1, "cost_ms": 1.0}],
        "cost_before_ms": 2.0,
        "cost_after_ms": 1.0,
        "optimisation_s": 0.5,
        "real_interactions": 7,
        "prices_asked": 9,
        "prices_measured": 0,
        "rewriting_s": 0.0,
        "pricing_s": 0.0,
        "measuring_s": 0.0,
        "pinned_for": [],
        "refusals": [],
    }
    assert [body["left_because"] for body in others] == ["nothing was found"] * 2
    assert "subgraphs" not in REPORT.summary()


def test_nothing_is_called_checked_that_was_not() -> None:
    """A model that could not be judged is only compared with itself, if at all."""
    unjudged = dataclasses.replace(REPORT, latency={}, steps=(), written="original", reason="it could not be tried")
    assert "Checked" in REPORT.summary()
    assert unjudged.summary() == (
        "Wrote faster.onnx: the original model (it could not be tried).\n"
        "Method rlflow: no substitution in 12.3 s, 250 rewrites carried out, 700 priced."
    )


def test_nobody_overlooks_a_candidate_that_was_wrong_or_an_original_that_is():
    """Right behind what was written, whichever that is; a candidate inside of a body as well."""
    wrong = Refusal("the check", "is not equivalent: y differs", True, ("r1",), 3, ("GeluFusionL1",), Path("r"))
    inside = dataclasses.replace(wrong, differs=False, reason="could not be run: no memory", place="the body of loop")
    about = SubgraphReport("loop", "body", "nothing was found", refusals=(inside,))
    own = dataclasses.replace(REPORT.equivalence, own_error=0.02)
    report = dataclasses.replace(REPORT, refusals=(wrong,), subgraphs=(about,), equivalence=own)
    _, first, second, third, *_ = report.summary().splitlines()
    assert first == "A rewritten model computes something else and was refused: it is not equivalent: y differs."
    assert second == "In the body of loop, a rewritten model was refused: it could not be run: no memory."
    assert third.startswith("Mind that the original itself differs by 2.0e-02 between as written and as deployed")
    document = report.to_json()
    assert document["equivalence"]["own_error"] == 0.02
    (told,) = document["refusals"]
    assert told == {
        "phase": "the check",
        "place": "",
        "reason": "is not equivalent: y differs",
        "differs": True,
        "rules": ["r1"],
        "step": 3,
        "fusions": ["GeluFusionL1"],
        "reproducer": "r",
    }
    assert document["subgraphs"][0]["refusals"][0]["place"] == "the body of loop"
