"""The study of what learning is worth: everything that its configuration names exists, and a tiny one runs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig
from studies.documents import check_results
from studies.learned.cells import BASELINES
from support.study_settings import study_settings

from rlflow import zoo
from rlflow.agents.tokens.lesson_files import Subject, hold
from rlflow.agents.tokens.lessons import Expert, Lesson
from rlflow.cost.analytic import AnalyticCost
from rlflow.onnx_io import from_onnx
from rlflow.optimise.methods import METHODS
from rlflow.rules import library
from rlflow.world_model.settings import read_config
from rlflow.world_model.tokens.config import TokenModelConfig

CASE = "cost: analytic, family: tiny_merge, taught_at: analytic"
TINY = (
    "seeds=[0,1]",
    "graphs=[small,large]",
    f"+cases.small={{graph: tiny_merge, {CASE}, small: null}}",
    f"+cases.large={{graph: tiny_merge, {CASE}, small: small}}",
    "policy.encoder_epochs=1",
    "readings=[5,20]",
    "long.backtracking=50",
    "steps=[0,5,20,50]",
    "headless=[large]",
)


@pytest.fixture(scope="module")
def config(repository: Path) -> DictConfig:
    return study_settings("learned")


@pytest.mark.parametrize("program", ["learned", "learned_planned", "learned_priced"])
def test_whatever_is_named_is_there(program: str, repository: Path):
    config = study_settings(program)
    assert {*config.graphs, *config.headless, *config.delivered.graphs} <= set(config.cases)
    known = {group: {file.stem for file in (repository / "conf" / group).glob("*.yaml")} for group in ("graph", "cost")}
    for case in config.cases.values():
        assert case.graph in known["graph"]
        assert {case.cost, case.taught_at} <= known["cost"]
        assert case.family == compose_graph(repository, case.graph).entry, "what is left out is the graph's own family"
        assert case.small is None or case.small in config.cases
    methods = {*config.once, *config.drawn}
    assert {*methods, *config.options, *config.long} <= {*BASELINES, *METHODS.names()}
    assert {*config.finders} <= methods
    assert read_config(TokenModelConfig, config.policy).encoder_layers == config.policy.encoder_layers


def compose_graph(repository: Path, graph: str) -> DictConfig:
    return study_settings("learned", [f"+graph={graph}"]).graph


def test_the_protocol_has_every_baseline(config: DictConfig):
    """Five seeds, both readings, every baseline, and a long run of backtracking."""
    assert len(config.seeds) == 5
    assert list(config.readings) == [500, 2000]
    baselines = {"backtracking", "iterated", "chains_random", "untrained", "rule_mean", "replayed"}
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
def test_a_tiny_study(repository: Path, taught: Path, command: Callable):
    """Of two seeds on a model of which all searches find the best; only its own lesson is left out."""
    command("python", str(repository / "pipelines/study.py"), "learned", *TINY, cwd=taught)
    results = taught / "data/results/learned"
    assert check_results(results) == []
    assert {path.suffix for path in results.iterdir()} == {".json", ".md", ".png"}
    metrics = json.loads((results / "metrics.json").read_text())
    assert list(metrics) == ["small", "large"]
    assert set(metrics["large"]) - set(metrics["small"]) == {"replayed", "depth_transfer"}
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
    assert not list((taught / ".checkpoints/learned").iterdir()), "nothing to go on from"


@pytest.mark.study
def test_a_study_of_what_draws_alone(repository: Path, taught: Path, command: Callable):
    """As when several processes share the seeds: nothing is run once but greedy search, with which curves begin."""
    command("python", str(repository / "pipelines/study.py"), "learned", *TINY, "graphs=[small]", "once=[]", cwd=taught)
    metrics = json.loads((taught / "data/results/learned/metrics.json").read_text())
    assert metrics["small"].keys() == {"greedy", "rlflow", "chains_random", "untrained", "rule_mean", "iterated"}


@pytest.mark.study
def test_a_study_of_deep_graphs_alone(repository: Path, taught: Path, command: Callable):
    """What is replayed is found first, on a graph of which nothing is published unless it is asked for."""
    program = ("python", str(repository / "pipelines/study.py"), "learned", *TINY, "once=[replayed]", "drawn=[]")
    command(*program, "graphs=[large,small]", cwd=taught)
    metrics = json.loads((taught / "data/results/learned/metrics.json").read_text())
    assert metrics["small"].keys() == {"greedy", "equality_saturation"}
    assert metrics["large"].keys() == {"greedy", "replayed"}

    command(*program, "graphs=[large]", cwd=taught)
    metrics = json.loads((taught / "data/results/learned/metrics.json").read_text())
    assert metrics.keys() == {"large"}
    least = metrics["large"]["greedy"]["improvement_percent"]
    assert metrics["large"]["replayed"]["improvement_percent"] >= least > 0, "the small graph is the large one here"


@pytest.mark.study
def test_a_tiny_study_of_planning(repository: Path, taught: Path, command: Callable):
    """By policies whose M is fitted, too; what planning costs counts as training of the same policy."""
    program = ("python", str(repository / "pipelines/study.py"), "learned", "-cn", "learned_planned")
    command(*program, *TINY, "policy.epochs=1", "graphs=[small]", "headless=[]", cwd=taught)
    results = taught / "data/results/planned/learned"
    assert check_results(results) == []
    metrics = json.loads((results / "metrics.json").read_text())["small"]
    assert metrics.keys() == {"greedy", "equality_saturation", "rlflow", "planned"}
    assert metrics["planned"]["improvement_percent_20"] >= metrics["greedy"]["improvement_percent"] > 0
    assert metrics["planned"]["training_s"] == metrics["rlflow"]["training_s"] > 0
    assert json.loads((results / "summary.json").read_text())["below_greedy"] == []


@pytest.mark.study
def test_a_tiny_study_by_measured_prices(repository: Path, taught: Path, command: Callable):
    """Every search is told by the prices that it would have measured alone."""
    program = ("python", str(repository / "pipelines/study.py"), "learned", "-cn", "learned_priced")
    case = "{graph: tiny_merge, cost: fused, family: tiny_merge, taught_at: analytic, small: null}"
    searches = ("once=[chains]", "drawn=[rlflow]", "graphs=[tiny]", f"+cases.tiny={case}", "readings=[20]")
    quick = ("seeds=[0,1]", "policy.encoder_epochs=1", "headless=[]", "long={}")
    command(*program, *searches, *quick, cwd=taught)
    results = taught / "data/results/priced/learned"
    assert check_results(results) == []
    metrics = json.loads((results / "metrics.json").read_text())["tiny"]
    assert all(figures["prices_measured"] > 0 for figures in metrics.values())
    drawn = json.loads((results / "curves_by_prices.json").read_text())["tiny"]
    assert drawn["rlflow"]["value"][0] == 0.0, "nothing is known without a price"
    assert drawn["rlflow"]["value"][-1] == pytest.approx(metrics["rlflow"]["improvement_percent"], abs=1e-3)
    assert (results / "curves_by_prices.png").exists()


@pytest.mark.study
def test_a_tiny_delivery(repository: Path, taught: Path, command: Callable):
    """Of microseconds, which prove no more than that the figures are there and belong together."""
    program = ("python", str(repository / "pipelines/study.py"), "learned.delivered")
    command(
        *program, *TINY, "delivered.graphs=[small]", "delivered.cost=analytic", "delivered.gate.rounds=3", cwd=taught
    )
    assert check_results(taught / "data/results") == []
    timed = json.loads((taught / "data/results/learned/delivered.json").read_text())["small"]
    found = timed["rlflow"]
    assert found["improvement_percent"] >= timed["backtracking"]["improvement_percent"] > 0
    assert found["evaluations"] > 0
    for setting in ("as_written", "deployed"):
        figures = timed[setting]
        product = figures["original_over_backtracking"]["value"] * figures["backtracking_over_rlflow"]["value"]
        assert product == pytest.approx(figures["original_over_rlflow"]["value"], rel=0.5)
        assert figures["rounds"] == 3
