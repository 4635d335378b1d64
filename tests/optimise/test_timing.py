"""A rewritten model that is wrong or slower beyond noise is not delivered."""

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from rlflow import zoo
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.reported.latency import LatencyChange
from rlflow.optimise.timing import is_better, is_faster, is_slower, latency_change, raced, timed
from rlflow.runtime.isolation import Limits
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.belief import Belief
from rlflow.runtime.timing.latency import Round
from rlflow.runtime.timing.sequential import SequentialTest


def rounds(candidate_ms: float, count: int, retaken: int = 0) -> list[Round]:
    """Of an original that takes 2 ms."""
    times_ms = {"original": 2.0, "original again": 2.0, "candidate": candidate_ms, "candidate again": candidate_ms}
    return [Round(times_ms, retaken)] * count


@pytest.mark.parametrize(
    ("candidate_ms", "count", "faster", "slower"),
    [(1.0, 3, True, False), (4.0, 3, False, True), (2.0, 3, False, False), (1.0, 2, False, False)],
)
def test_slower_is_what_is_slower_beyond_noise(candidate_ms: float, count: int, faster: bool, slower: bool) -> None:
    change = latency_change(rounds(candidate_ms, count, retaken=1), Belief())
    latency: dict[Setting, LatencyChange] = {"deployed": change}
    assert (is_faster(latency, "deployed"), is_slower(latency, "deployed")) == (faster, slower)
    assert (change.before_ms, change.after_ms, change.retaken) == (2.0, candidate_ms, count)


@pytest.fixture
def much_work() -> ModelProto:
    """Twenty times the work of `little_work`: no machine is so busy that it is not slower."""
    return zoo.build("mlp", layers=20, inputs=256, hidden=256, outputs=256)


@pytest.fixture
def little_work() -> ModelProto:
    return zoo.build("mlp", layers=1, inputs=256, hidden=256, outputs=256)


def test_rounds_go_on_until_the_answer_is_decided(much_work: ModelProto, little_work: ModelProto) -> None:
    """Of a model with a twentieth of the work: at the first number of rounds at which that can be said, or little
    later if a round was spoilt.
    """
    said: list[str] = []
    config = GateConfig(runs_per_round=2, time_s=60.0)
    change = timed(much_work, little_work, "as_written", config, on_progress=lambda fraction, text: said.append(text))
    assert change.verdict.decision == "faster"
    assert 3 <= change.verdict.rounds == len(said) < config.rounds
    assert change.before_ms > change.after_ms
    assert said[-1] == f"timing the result against the original: {change.verdict}"


def test_a_proof_takes_more_rounds(much_work: ModelProto, little_work: ModelProto) -> None:
    config = GateConfig(runs_per_round=2, time_s=60.0, proof=SequentialTest())
    change = timed(much_work, little_work, "as_written", config)
    assert change.verdict.decision == "faster"
    assert 4 <= change.verdict.rounds


@pytest.mark.parametrize("limits", [{"rounds": 2}, {"time_s": 0.0}])
def test_rounds_end_where_they_must(little_work: ModelProto, limits: dict[str, float]) -> None:
    change = timed(little_work, little_work, "deployed", GateConfig(runs_per_round=1, **limits))
    assert change.verdict.decision == "undecided"
    assert change.verdict.rounds == limits.get("rounds", 1)


def test_the_time_that_is_left_to_the_caller_counts_too(little_work: ModelProto) -> None:
    """It goes down by 4 s with every look at it, which makes 4 s of every round."""
    seconds = iter(range(11, -100, -4))
    change = timed(little_work, little_work, "deployed", GateConfig(runs_per_round=1), lambda: float(next(seconds)))
    assert change.verdict.rounds + change.retaken == 2, "a spoilt one takes its time as well"


def test_the_fastest_wins_a_race(tmp_path: Path) -> None:
    """Of three, the one with a twentieth of the work, though the others are predicted to be a little faster; the
    slowest falls out first. Of rounds that tell nothing, the prediction decides.
    """
    files = []
    for layers in (20, 10, 1):
        files.append(tmp_path / f"{layers}.onnx")
        onnx.save(zoo.build("mlp", layers=layers, inputs=256, hidden=256, outputs=256), files[-1])
    config = GateConfig(runs_per_round=2)
    race = raced(files[0], files, [1.1, 1.2, 1.0], "as_written", config, Limits())
    assert race.order == (2, 1, 0)
    assert [len(race.rounds[place]) for place in range(3)] == [1, 2, 2]
    assert race.ratio(2) > race.ratio(1) > race.ratio(0)
    assert latency_change(race.rounds[2], config.belief).verdict.rounds == 2


def test_what_a_race_has_shown_counts(much_work: ModelProto, little_work: ModelProto) -> None:
    """Where it decides, nothing is timed again: the file is not even there."""
    before = rounds(1.0, 3)
    change = timed(Path("nowhere"), Path("nowhere either"), "as_written", GateConfig(), before=before)
    assert change.verdict == latency_change(before, Belief()).verdict
    more = timed(much_work, little_work, "as_written", GateConfig(runs_per_round=2, time_s=60.0), before=rounds(1.0, 1))
    assert 2 <= more.verdict.rounds
    assert more.verdict.decision == "faster"


def at_sizes(*times_ms: float, count: int = 6) -> list[dict[str, LatencyChange]]:
    """Of a candidate beside an original that takes 2 ms at each size; nothing is known of the size of 0 ms."""
    return [{"deployed": latency_change(rounds(each, count), Belief())} if each else {} for each in times_ms]


@pytest.mark.parametrize(
    ("times_ms", "better"),
    [
        ([1.0], True),
        ([1.0, 1.5], True),
        ([2.0, 1.0, 2.0], True),
        ([2.0, 2.0], False),
        ([1.0, 4.0], False),
        ([1.0, 2.2], False),
        ([1.0, 0.0], False),
        ([0.0], False),
    ],
)
def test_better_is_what_is_faster_at_one_size_and_slower_at_none(times_ms: list[float], better: bool) -> None:
    assert is_better(at_sizes(*times_ms, count=12), "deployed", GateConfig()) is better


def test_where_too_little_is_known_of_a_size_nothing_is_better() -> None:
    """After a round, a model of the same time may still be slower by a percent."""
    assert not is_better([*at_sizes(1.0), *at_sizes(2.0, count=1)], "deployed", GateConfig())


def test_a_proof_is_asked_for_at_each_size() -> None:
    """What may be believed of one that is undecided does not count."""
    proof = SequentialTest()
    half = {"deployed": latency_change(rounds(1.0, 12), Belief(), proof)}
    undecided = {"deployed": latency_change(rounds(1.9, 3), Belief(), proof)}
    assert undecided["deployed"].verdict.decision == "undecided"
    assert is_better([half, half], "deployed", GateConfig(proof=proof))
    assert not is_better([half, undecided], "deployed", GateConfig(proof=proof))
