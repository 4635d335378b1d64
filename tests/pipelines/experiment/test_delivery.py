"""What is delivered is called what it is: by its file, by its figures, and by the trajectory beside it."""

from pathlib import Path

import onnx
import pytest
from experiment.delivery import OPTIMISED, ORIGINAL, Delivery, delivered, write_models

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget, OptimisationResult
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.optimise.source import Source
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.statistics import Estimate
from rlflow.search.greedy import Greedy
from rlflow.trajectory import record
from rlflow.trajectory.replay import replay


@pytest.mark.parametrize(
    ("speed", "setting", "model", "reason"),
    [
        (
            Estimate(1.2, 1.1, 1.3),
            "deployed",
            OPTIMISED,
            "deployed, the policy's model runs 1.20 [1.10, 1.30] times as fast",
        ),
        (Estimate(1.03, 1.021, 1.04), "as_written", OPTIMISED, "as written, the policy's model runs 1.03 [1.02, 1.04]"),
        (Estimate(1.04, 0.88, 1.12), "deployed", ORIGINAL, "1.04 [0.88, 1.12] times as fast, which is within noise"),
        (Estimate(1.01, 1.005, 1.015), "deployed", ORIGINAL, "which is within noise"),  # too little to be told from it
        (Estimate(0.8, 0.7, 0.9), "deployed", ORIGINAL, "0.80 [0.70, 0.90] times as fast"),
        (Estimate(1.0, 1.0, 1.0), "deployed", ORIGINAL, "which is within noise"),
    ],
)
def test_the_policy_delivers_what_is_faster_beyond_noise(speed: Estimate, setting: Setting, model: str, reason: str):
    delivery = delivered(speed, setting)
    assert delivery.to_json() == {"delivered": model, "delivered_because": delivery.reason}
    assert reason in delivery.reason
    assert ("noise" in delivery.reason) == ("noise" in reason)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    path = tmp_path_factory.mktemp("model") / "mine.onnx"
    onnx.save(zoo.build("tiny_merge"), path)
    return Source.of(path)


@pytest.fixture(scope="module")
def result(source: Source) -> OptimisationResult:
    """Another graph than the original, by a way of at least one step."""
    rules = library.load()
    found = Greedy(rules, Rewriter(rules.rules), AnalyticCost()).optimise(from_onnx(source.model), Budget())
    assert found.trajectory.steps
    return found


@pytest.mark.parametrize(
    ("model", "files"),
    [
        (OPTIMISED, ["optimised.jsonl", "optimised.onnx"]),
        (ORIGINAL, ["candidate.jsonl", "candidate.onnx", "original.onnx"]),
    ],
)
def test_a_model_and_its_trajectory_have_one_name(
    model: str, files: list[str], result: OptimisationResult, source: Source, tmp_path: Path
):
    """Replayed, a trajectory leads to the model beside it, which the original is not."""
    path = write_models(Delivery(model, "so it was measured"), result, source, tmp_path)
    assert path == tmp_path / f"{model}.onnx"
    assert sorted(file.name for file in tmp_path.iterdir()) == files
    assert source.file is not None
    assert (path.read_bytes() == source.file.read_bytes()) == (model == ORIGINAL)

    (way,) = tmp_path.glob("*.jsonl")
    (trajectory,) = record.load(way)
    *_, end = replay(from_onnx(source.model), trajectory, Rewriter(library.load().rules))
    beside = structural_hash(from_onnx(onnx.load(way.with_suffix(".onnx"))))
    assert beside == structural_hash(from_onnx(to_onnx(end))) != structural_hash(from_onnx(source.model))
