"""Session options are part of an answer where, and only where, the clock decides that the model is faster with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import ModelProto
from support.asked import NOTHING_SAID
from support.small_models import dense_model, foldable_model

import rlflow
from rlflow.cost.analytic import AnalyticCost
from rlflow.equivalence.compare import compare
from rlflow.errors import InputError
from rlflow.onnx_io.external_data import write_mapped
from rlflow.optimise.answers import Answers, Question
from rlflow.optimise.api import Optimised
from rlflow.optimise.clock import NO_DEADLINE, Deadline
from rlflow.optimise.gate import GateConfig, judged
from rlflow.optimise.phases import Phases
from rlflow.optimise.runtimes import NO_TIME
from rlflow.optimise.session_options import NOTHING_FASTER, NOTHING_TRIED, OptionFinder, fewer_threads, tuned
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session_options import DEFAULTS, SessionOptions
from rlflow.search.greedy import Greedy

ONE_THREAD = SessionOptions(intra_op_num_threads=1)
PLAIN = SessionOptions(graph_optimization_level="ORT_DISABLE_ALL")
UNFOLDED = SessionOptions(disabled_optimizers=("ConstantFolding",))


def optimised(model: ModelProto | Path, *found: SessionOptions, **settings: Any) -> Optimised:
    """A search without rules finds nothing, so that the options alone decide."""
    return rlflow.optimise(
        model,
        method="greedy",
        library=Library(()),
        cost_model="analytic",
        gate=GateConfig(draws=1, runs_per_round=2),
        **{"budget_s": 300.0, "session_options": lambda *_: list(found)} | settings,
    )


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that is run without any optimisation, and so computes all of its products at every run."""
    path = tmp_path_factory.mktemp("slow") / "in.onnx"
    onnx.save(PLAIN.put_into(foldable_model()), path)
    return path


@pytest.fixture(scope="module")
def faster(slow: Path) -> Optimised:
    """The last of three is the only one with which the products are folded."""
    return optimised(slow, PLAIN, UNFOLDED, ONE_THREAD)


def test_the_options_that_win_are_part_of_the_answer(faster: Optimised, slow: Path, tmp_path: Path) -> None:
    report, output = faster.report, tmp_path / "out.onnx"
    assert report.session_options is not None
    assert report.session_options.options == ONE_THREAD
    assert report.session_options.latency is not None
    assert report.session_options.latency.verdict.decision == "faster"
    assert report.session_options.latency.verdict.ratio > 2, "a dozen products and a sum against the sum"
    assert report.written == "original"
    assert report.reason.startswith(report.session_options.reason)
    faster.save(output)
    assert SessionOptions.of(output) == ONE_THREAD
    assert json.loads((tmp_path / "out.onnx.options.json").read_text()) == ONE_THREAD.to_json()
    assert onnx.load(output).graph == onnx.load(slow).graph
    assert compare(slow, output, draws=1).equivalent
    assert report.equivalence.equivalent
    assert set(report.equivalence.by_setting) == {"as_written", "deployed"}


def test_the_report_tells_how_to_use_them(faster: Optimised) -> None:
    """`to_json` holds it to the schema."""
    report = replace(faster.report, output="out.onnx")
    told = report.to_json()["session_options"]
    assert told["options"] == {"intra_op_num_threads": 1}
    assert len(told["python"]) == 3
    assert told["python"][-1] == 'session = onnxruntime.InferenceSession("out.onnx", options)'
    assert "\n".join(f"  {line}" for line in told["python"]) in report.summary()


def test_an_answer_is_kept_with_its_options(faster: Optimised, slow: Path, tmp_path: Path) -> None:
    question, answers = Question.of(slow, NOTHING_SAID), Answers(tmp_path / "answers")
    answers.keep(question, faster)
    answer = answers.known(question)
    assert answer is not None
    assert answers.write(question, answer, tmp_path / "out.onnx")
    faster.save(tmp_path / "first.onnx")
    for name in ("onnx", "onnx.options.json"):
        assert (tmp_path / f"out.{name}").read_bytes() == (tmp_path / f"first.{name}").read_bytes()


@pytest.mark.parametrize(
    ("found", "because"),
    [((), NOTHING_TRIED), ((PLAIN,), NOTHING_FASTER), ((PLAIN, UNFOLDED), NOTHING_FASTER)],
    ids=["none", "one", "two"],
)
def test_without_any_that_is_faster_the_model_is_as_it_was(
    found: tuple[SessionOptions, ...], because: str, tmp_path: Path
) -> None:
    """To the byte, and nothing lies beside it of what a run before has found."""
    source, output = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(foldable_model(), source)
    (tmp_path / "out.onnx.options.json").write_text("{}")
    made = optimised(source, *found)
    assert made.report.session_options is not None
    assert (made.report.session_options.options, made.report.session_options.left_because) == (DEFAULTS, because)
    assert "Session options" not in made.report.summary()
    made.save(output)
    assert output.read_bytes() == source.read_bytes()
    assert not (tmp_path / "out.onnx.options.json").exists()


def test_none_are_tried_unless_they_are_asked_for() -> None:
    made = rlflow.optimise(dense_model(), library=Library(()), method="greedy", gate=GateConfig(draws=1))
    assert made.report.session_options is None
    assert made.report.to_json()["session_options"] is None
    with pytest.raises(InputError, match="as_written"):
        optimised(dense_model(), setting="as_written")


def test_the_original_may_be_faster_with_options_than_what_was_made_of_it(tmp_path: Path) -> None:
    """Of two models that compute the same, both run without optimisation, options are found for the second alone."""
    slow = PLAIN.put_into(foldable_model())
    config = GateConfig(draws=1, runs_per_round=2)
    judgement, nothing = judged(slow, config), Library(())
    phases = Phases(Greedy(nothing, Rewriter(()), AnalyticCost()), AnalyticCost(), "deployed", config)
    original, again = (write_mapped(slow, tmp_path / f"original_{number}.onnx") for number in range(2))

    def find(file: Path, *_: object) -> list[SessionOptions]:
        return [ONE_THREAD] if file.stem.endswith("1") else []

    found = tuned(phases, [(slow, original), (slow, again)], original, judgement, find, NO_DEADLINE)
    assert (found.place, found.report.options) == (1, ONE_THREAD)
    assert found.equivalence is not None
    assert found.equivalence.equivalent
    assert SessionOptions.of(found.model) == ONE_THREAD


def broken(*_: object) -> list[SessionOptions]:
    raise ValueError("nobody knows")


@pytest.mark.parametrize(
    ("find", "reason"), [(broken, "nobody knows"), (lambda *_: [SessionOptions("x")], "could not be run")]
)
def test_whatever_goes_wrong_with_options_the_model_is_delivered(
    find: Callable[..., list[SessionOptions]], reason: str
) -> None:
    """The second names a level that ONNX Runtime does not have."""
    made = optimised(dense_model(), session_options=find)
    assert made.report.session_options is not None
    assert reason in made.report.session_options.left_because
    assert made.model is made.source.model


def test_without_time_none_are_tried(slow: Path) -> None:
    made = optimised(slow, ONE_THREAD, is_interrupted=lambda: True)
    assert made.report.session_options is None or made.report.session_options.left_because == NO_TIME


def test_fewer_threads_are_one_and_half_of_them() -> None:
    tried = {most: [each.intra_op_num_threads for each in fewer_threads(most)] for most in (1, 2, 3, 4, 9)}
    assert tried == {1: [], 2: [1], 3: [1], 4: [1, 2], 9: [1, 4]}


def test_options_are_found_as_the_doctor_does(tmp_path: Path) -> None:
    """Fewer threads only where nobody has said how many there are; nothing that would take too long."""
    file = write_mapped(dense_model(), tmp_path / "model.onnx")
    config = GateConfig(threads=4)
    found = OptionFinder()(file, config, NO_DEADLINE, 0.01)
    assert PLAIN in found
    assert SessionOptions(disabled_optimizers=("MatMulAddFusion",)) in found
    assert OptionFinder(with_threads=True)(file, config, Deadline.after(10.0), 1.0) == fewer_threads(4)
