"""The study of what learning is worth: everything that its configuration names exists, and a tiny one runs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig
from support.study_settings import study_settings

from rlflow import zoo
from rlflow.agents.match_level.lesson_files import Subject, hold
from rlflow.agents.match_level.lessons import Expert, Lesson
from rlflow.cost.analytic import AnalyticCost
from rlflow.onnx_io import from_onnx
from rlflow.rules import library

TINY = (
    "seeds=[0,1]",
    "graphs=[small,large]",
    "+cases.small={graph: tiny_merge, cost: analytic}",
    "+cases.large={graph: tiny_merge, cost: analytic, deep: true}",
    "policy.encoder_epochs=1",
    "readings=[5,20]",
    "long.backtracking=50",
    "steps=[0,5,20,50]",
    "headless=[large]",
)


@pytest.fixture(scope="module")
def config(repository: Path) -> DictConfig:
    return study_settings("learned")


def test_the_protocol_has_every_baseline(config: DictConfig):
    """Five seeds, both readings, every baseline, and a long run of backtracking."""
    assert len(config.seeds) == 5
    assert list(config.readings) == [500, 2000]
    baselines = {"backtracking", "iterated", "chains_random", "untrained", "rule_mean"}
    assert baselines | {"equality_saturation", "rlflow"} <= {*config.once, *config.drawn}
    assert config.long == {"backtracking": 10000}
    assert set(config.steps) >= {*config.readings, 10000}


@pytest.fixture
def taught(store_root: Path) -> Path:
    """A workspace with two lessons."""
    for entry in ("tiny_merge", "tiny_scale"):
        lesson = Lesson(entry, expert=Expert("chains", {"depth": 2, "width": 2}))
        model = from_onnx(zoo.build(entry))
        hold(
            lesson,
            Subject({"entry": entry}, {"kind": "analytic"}),
            store_root / "data/policy/lessons",
            library.load(),
            lambda m=model: (m, AnalyticCost()),
        )
    return store_root


@pytest.mark.study
def test_a_tiny_study(study: Callable[..., Path], taught: Path):
    """Of two seeds on a model of which all searches find the best; only its own lesson is left out."""
    results = study("learned", *TINY) / "learned"
    assert {path.suffix for path in results.iterdir()} == {".json", ".md", ".png"}
    metrics = json.loads((results / "metrics.json").read_text())
    assert list(metrics) == ["small", "large"]
    assert set(metrics["large"]) - set(metrics["small"]) == {"depth_transfer"}
    for methods in metrics.values():
        least = methods["greedy"]["improvement_percent"]
        assert least > 10
        for method in ("rlflow", "chains_random", "untrained", "rule_mean"):
            assert methods[method]["seeds"] == [0, 1]
            assert methods[method]["improvement_percent_20"] >= least
        assert "improvement_percent_50" in methods["backtracking"]
        assert methods["rlflow"]["training_s"] > 0 == methods["untrained"]["training_s"]
    together = json.loads((results / "summary.json").read_text())
    assert together["below_greedy"] == []
    assert together["share_of_best"] == {"large": {"rlflow": 1.0, "depth_transfer": 1.0}}
    (*deep, policy, other) = sorted((taught / ".checkpoints/learned_policies").iterdir())
    assert policy.name.startswith("tiny_merge-0-")
    (lesson,) = json.loads((policy / "policy.json").read_text())["trained_on"]["lessons"]
    assert lesson.startswith("tiny_scale-")
    assert other.name.startswith("tiny_merge-1-")
    assert [place.name[:6] for place in deep] == ["none-0", "none-1"], "depth transfer knows the family"


@pytest.mark.study
def test_a_study_of_what_draws_alone(study: Callable[..., Path], taught: Path):
    """As when several processes share the seeds: nothing is run once but greedy search, with which curves begin."""
    results = study("learned", *TINY, "graphs=[small]", "once=[]")
    metrics = json.loads((results / "learned/metrics.json").read_text())
    assert metrics["small"].keys() == {"greedy", "rlflow", "chains_random", "untrained", "rule_mean", "iterated"}


@pytest.mark.study
def test_a_tiny_study_of_planning(study: Callable[..., Path], taught: Path):
    """By policies whose M is fitted, too; what planning costs counts as training of the same policy."""
    program = ("learned", "-cn", "learned_planned")
    results = study(*program, *TINY, "policy.epochs=1", "graphs=[small]", "headless=[]") / "planned/learned"
    metrics = json.loads((results / "metrics.json").read_text())["small"]
    assert metrics.keys() == {"greedy", "equality_saturation", "rlflow", "planned"}
    assert metrics["planned"]["improvement_percent_20"] >= metrics["greedy"]["improvement_percent"] > 0
    assert metrics["planned"]["training_s"] == metrics["rlflow"]["training_s"] > 0
    assert json.loads((results / "summary.json").read_text())["below_greedy"] == []


@pytest.mark.study
def test_a_tiny_study_of_the_policy_that_ships(study: Callable[..., Path]):
    """No policy is fitted, and a portfolio with more rewrites than the others says what is known at best."""
    case = "+cases.tiny={graph: tiny_merge, cost: analytic}"
    searches = ("graphs=[tiny]", case, "readings=[5,20]", "++long.portfolio_long=30")
    results = study("learned", "-cn", "learned_shipped", *searches) / "shipped/learned"
    metrics = json.loads((results / "metrics.json").read_text())["tiny"]
    assert metrics.keys() >= {"rlflow", "without_controller", "untrained", "best", "portfolio_long"}
    assert {name for name, row in metrics.items() if "improvement_percent_30" in row} == {"portfolio_long"}
    assert metrics["rlflow"]["training_s"] == metrics["without_controller"]["training_s"] > 0
    assert metrics["rlflow"]["improvement_percent"] >= metrics["greedy"]["improvement_percent"] > 0
    assert not (results / "unseen.json").exists()


@pytest.mark.study
def test_a_tiny_study_by_measured_prices(study: Callable[..., Path], taught: Path):
    """Every search is told by the prices that it would have measured alone."""
    program = ("learned", "-cn", "learned_priced")
    case = "{graph: tiny_merge, cost: fused, taught_at: analytic}"
    searches = ("once=[chains]", "drawn=[rlflow]", "graphs=[tiny]", f"+cases.tiny={case}", "readings=[20]")
    quick = ("seeds=[0,1]", "policy.encoder_epochs=1", "headless=[]", "long={}")
    results = study(*program, *searches, *quick) / "priced/learned"
    metrics = json.loads((results / "metrics.json").read_text())["tiny"]
    assert all(figures["prices_measured"] > 0 for figures in metrics.values())
    drawn = json.loads((results / "curves_by_prices.json").read_text())["tiny"]
    assert drawn["rlflow"]["value"][0] == 0.0, "nothing is known without a price"
    assert drawn["rlflow"]["value"][-1] == pytest.approx(metrics["rlflow"]["improvement_percent"], abs=1e-3)
    assert (results / "curves_by_prices.png").exists()


@pytest.mark.study
def test_a_tiny_delivery(study: Callable[..., Path], taught: Path):
    """Of microseconds, which prove no more than that the figures are there and belong together."""
    tiny = (*TINY, "delivered.graphs=[small]", "delivered.cost=analytic", "delivered.gate.rounds=3")
    timed = json.loads((study("learned.delivered", *tiny) / "learned/delivered.json").read_text())["small"]
    found = timed["rlflow"]
    assert found["improvement_percent"] >= timed["backtracking"]["improvement_percent"] > 0
    assert found["evaluations"] > 0
    for setting in ("as_written", "deployed"):
        figures = timed[setting]
        product = figures["original_over_backtracking"]["value"] * figures["backtracking_over_rlflow"]["value"]
        assert product == pytest.approx(figures["original_over_rlflow"]["value"], rel=0.5)
        assert figures["rounds"] == 3
