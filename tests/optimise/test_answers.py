"""Answers are given again only for the very same question, and only where time would tell nothing new."""

import logging
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
import pytest
from support.asked import NOTHING_SAID
from support.onnx_models import save

import rlflow
from rlflow.method import OnProgress, OptimisationResult, State, Workspace
from rlflow.optimise.answers import Answer, Answers, Question
from rlflow.optimise.api import INTERRUPTED_TIMING, UNTIMED, Optimised
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.pipeline import NOTHING_FOUND
from rlflow.search.base import Search

ASKED = replace(NOTHING_SAID, method="greedy")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("model") / "in.onnx", "tiny_chain")


@pytest.fixture(scope="module")
def optimised(model: Path) -> Optimised:
    """As if it had been found to be faster, whatever timing says here; with another model than the given one."""
    made = rlflow.optimise(model, method="greedy", budget_s=8.0, cost_model="analytic", gate=GateConfig(time_s=1.0))
    assert made.result.trajectory.steps
    assert made.latency
    changed = onnx.ModelProto()
    changed.CopyFrom(made.model)
    changed.producer_name = "test"
    verdict = replace(made.latency["deployed"].verdict, decision="faster")
    latency = {"deployed": replace(made.latency["deployed"], verdict=verdict)}
    report = replace(made.report, written="optimised", latency=latency)
    return replace(made, model=changed, written="optimised", latency=latency, report=report)


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    return Answers(tmp_path / "answers")


def kept(answers: Answers, optimised: Optimised, model: Path) -> tuple[Question, Answer]:
    question = Question.of(model, ASKED)
    answers.keep(question, optimised)
    answer = answers.known(question)
    assert answer is not None
    return question, answer


def test_the_same_question_has_the_same_answer(
    answers: Answers, optimised: Optimised, model: Path, tmp_path: Path
) -> None:
    question, answer = kept(answers, optimised, model)
    assert answers.known(Question.of(model, replace(ASKED))) == answer
    assert answer.report == optimised.report
    assert answers.write(question, answer, tmp_path / "out.onnx")
    optimised.save(tmp_path / "first.onnx")
    assert (tmp_path / "out.onnx").read_bytes() == (tmp_path / "first.onnx").read_bytes()


def test_what_is_asked_otherwise_is_another_question(model: Path, tmp_path: Path) -> None:
    """A model with one bit changed, another number of threads, another file of rules, whatever it is called."""
    rules, other_rules, other = (tmp_path / name for name in ("rules.py", "other_rules.py", "other.onnx"))
    rules.write_text("rule = 1\n")
    other_rules.write_text("rule = 2\n")
    other.write_bytes(model.read_bytes()[:-1] + b"\x00")
    onnx.save_model(onnx.load(str(model)), str(other))
    changed = onnx.load(str(model))
    changed.graph.name += "'"
    onnx.save_model(changed, str(other))
    asked = [
        Question.of(model, ASKED),
        Question.of(other, ASKED),
        Question.of(model, replace(ASKED, threads=2)),
        Question.of(model, replace(ASKED, rules=rules)),
        Question.of(model, replace(ASKED, rules=other_rules)),
    ]
    assert len({question.digest for question in asked}) == len(asked)
    renamed = rules.rename(tmp_path / "renamed.py")
    assert Question.of(model, replace(ASKED, rules=renamed)).digest == asked[3].digest


def test_weights_in_a_file_beside_the_model_are_part_of_the_question(tmp_path: Path) -> None:
    model = onnx.load(str(save(tmp_path / "in.onnx", "conv")))
    outside = tmp_path / "outside.onnx"
    onnx.save_model(model, str(outside), save_as_external_data=True, location="weights", size_threshold=0)
    before = Question.of(outside, ASKED)
    weights = bytearray((tmp_path / "weights").read_bytes())
    weights[-1] ^= 1
    (tmp_path / "weights").write_bytes(weights)
    assert Question.of(outside, ASKED).digest != before.digest


def test_nothing_is_kept_of_a_model_that_takes_long_to_read(
    answers: Answers, optimised: Optimised, model: Path, tmp_path: Path
) -> None:
    """A file without data, as large as the weights of such a model."""
    with (tmp_path / "weights").open("wb") as file:
        file.truncate(2**31)
    question = Question.of(model, replace(ASKED, rules=tmp_path / "weights"))
    answers.keep(question, optimised)
    assert answers.known(question) is None
    assert not answers.folder.exists()


def test_an_answer_covers_budgets_up_to_its_own(answers: Answers, optimised: Optimised, model: Path) -> None:
    _, answer = kept(answers, optimised, model)
    assert [answer.covers(budget_s) for budget_s in (1.0, 8.0, 8.1)] == [True, True, False]


@pytest.mark.parametrize(
    ("written", "reason", "decision", "is_final"),
    [
        ("optimised", "faster with probability 0.95", "faster", True),
        ("optimised", INTERRUPTED_TIMING, "undecided", False),
        ("optimised", INTERRUPTED_TIMING, "same", False),
        ("original", UNTIMED, "undecided", False),
        ("original", NOTHING_FOUND, "undecided", True),
    ],
)
def test_only_what_is_decided_is_final(
    answers: Answers, optimised: Optimised, model: Path, written: str, reason: str, decision: str, is_final: bool
) -> None:
    change = optimised.latency["deployed"]
    latency = {"deployed": replace(change, verdict=replace(change.verdict, decision=decision))}
    _, answer = kept(answers, replace(optimised, written=written, reason=reason, latency=latency), model)
    assert answer.is_final == is_final


def test_damaged_answers_are_no_answers(
    answers: Answers, optimised: Optimised, model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A model that is not to the byte what was delivered, a model that is none, and a record that is none."""
    question, answer = kept(answers, optimised, model)
    folder = answers.folder / question.digest
    small = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    small.producer_name = "someone else"
    for damaged in (small.SerializeToString(), b"\xff" * 40):
        (folder / "model.onnx").write_bytes(damaged)
        assert not answers.write(question, answer, tmp_path / "out.onnx")
        assert not (tmp_path / "out.onnx").exists()
    for damaged in (b"", pickle.dumps("another thing"), b"\x80\x05garbage"):
        (folder / "answer.pickle").write_bytes(damaged)
        assert answers.known(question) is None
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_answers_that_nobody_asked_for_longest_go_first(answers: Answers, optimised: Optimised, model: Path) -> None:
    questions = [Question.of(model, replace(ASKED, method=name)) for name in "abc"]
    answers.keep(questions[0], optimised)
    answers.keep(questions[1], optimised)
    size = sum(file.stat().st_size for file in (answers.folder / questions[0].digest).iterdir())
    answers = replace(answers, most_bytes=int(2.5 * size))
    assert answers.known(questions[0]) is not None
    answers.keep(questions[2], optimised)
    assert [answers.known(question) is not None for question in questions] == [True, False, True]


@dataclass(frozen=True)
class Idle(Search):
    """Finds nothing by itself."""

    name: str = "idle"

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        return state


def test_a_search_goes_on_from_what_is_known(optimised: Optimised, model: Path) -> None:
    """Not with a rule that was taken out since, and not on another model."""
    found, rules = optimised.result, [step.rule for step in optimised.result.trajectory.steps]

    def idle(model: Path, disabled: Sequence[str] = ()) -> OptimisationResult:
        settings = {"cost_model": "analytic", "shortlist": 0, "budget_s": 8.0, "gate": GateConfig(time_s=0.1)}
        return rlflow.optimise(model, method=Idle, disabled=disabled, known=found.trajectory, **settings).result

    knowing = idle(model)
    assert knowing.trajectory == found.trajectory
    assert knowing.best_ms == found.best_ms < knowing.start_ms
    assert idle(model, disabled=rules[-1:]).trajectory.steps == ()
    assert idle(save(model.with_name("other.onnx"), "tiny_merge")).trajectory.steps == ()
