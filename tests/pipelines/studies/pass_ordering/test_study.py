"""The study of pass ordering: what is configured exists, page and figures follow from what was found, it is resumed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from experiment.results import read_results
from studies.documents import check_results
from studies.pass_ordering.page import walked
from studies.pass_ordering.write_page import written
from support.study_settings import option_names, plain_settings

from rlflow.passes import search
from rlflow.passes.agents.algorithms import ALGORITHMS
from rlflow.passes.agents.pass_agent_config import DreamtConfig, PassAgentConfig, config_of
from rlflow.passes.backends import BACKENDS, backend_of
from rlflow.passes.transitions import Transitions
from rlflow.passes.worker import WorkerBackend

TINY = (
    "backend=onnx",
    "seeds=[0]",
    "steps=64",
    "of_backend.onnx.held_out=[mlp]",
    "of_backend.onnx.agents=[maskable_ppo]",
    "of_backend.onnx.held_out_graphs=1",
    "training_graphs=2",
    "episode.max_steps=6",
    "effort={max_passes: 6, beam_width: 1, random_episodes: 1, play: {episodes: 1}}",
    "timed=[default]",
    "timing={rounds: 1, runs: 1, seed: 0}",
)


def test_every_algorithm_is_an_option_whose_settings_can_be_read() -> None:
    options = sorted(option_names("pass_agent"))
    settings = plain_settings("pass_ordering", [f"+pass_agent@tried.{name}={name}" for name in options])
    configs = {name: config_of(section) for name, section in settings["tried"].items()}
    algorithms = {name: config for name, config in configs.items() if isinstance(config, PassAgentConfig)}
    assert {config.algorithm for config in algorithms.values()} == set(ALGORITHMS)
    assert configs.keys() - algorithms.keys() == {"world_model"}
    dreamt = configs["world_model"]
    assert isinstance(dreamt, DreamtConfig)
    assert dreamt.dream.max_steps == settings["episode"]["max_steps"]
    assert {agent for own in settings["of_backend"].values() for agent in own["agents"]} <= set(options)
    assert {config.potential for config in algorithms.values()} == {None, "cost", "bytes"}
    assert len(settings["seeds"]) == 5


def test_families_that_are_held_out_exist() -> None:
    """And some are left to train on; a wrong name would only be noticed by the run."""
    for backend, own in plain_settings("pass_ordering")["of_backend"].items():
        assert backend in BACKENDS.names()
        known = {source.family for source in backend_of(backend).sources()}
        assert set(own["held_out"]) < known


def test_page_and_figures_are_those_of_what_was_found(repository: Path, publishable: tuple[Path, ...]) -> None:
    """In the last commit, or in what is to be committed next."""
    page = (repository / "docs/pass_ordering.md").read_text()
    assert any(_fits(root, page) for root in publishable), (
        "write it anew: pipelines/studies/pass_ordering/write_page.py"
    )


def _fits(root: Path, page: str) -> bool:
    metrics, made = written(root)
    published = read_results(root / "data/results/pass_ordering/metrics.json")
    return bool(metrics) and (made, json.loads(json.dumps(metrics))) == (page, published)


def test_nobody_was_trained_on_a_family_that_was_held_out(repository: Path) -> None:
    for path in (repository / "data/results/pass_ordering").glob("*.json"):
        if path.stem != "metrics":
            document = read_results(path)
            family = {source.name: source.family for source in backend_of(document["backend"]).sources()}
            assert not {family[name] for name in document["training"]} & set(document["held_out"])


@pytest.mark.study
@pytest.mark.parametrize("file", ["onnx", "xla", "one_shot/onnx", "one_shot/xla"])
def test_published_passes_still_lead_to_what_is_published(repository: Path, file: str) -> None:
    """What is published may be older than the code: every program, of every entrant and seed, is made again."""
    document = read_results(repository / f"data/results/pass_ordering/{file}.json")
    entrants = document["entrants"].items()
    rows = [(entrant, row["outcomes"]) for entrant, seeds in entrants for row in seeds.values()]
    assert len(rows) > 1
    others = set[str]()
    with WorkerBackend(document["backend"]) as reached:
        transitions = Transitions(reached)
        for entrant, outcomes in rows:
            for source, published in outcomes.items():
                made = search.sequence(transitions, transitions.start(source), published["passes"])
                if made.facts.operations != published["operations"]:
                    others.add(f"{entrant} on {source}: {made.facts.operations}, not {published['operations']}")
    assert not others


@pytest.mark.study
def test_a_study_is_run_and_goes_on_from_what_is_kept(
    study: Callable[..., Path], study_refused: Callable[..., str], store_root: Path
) -> None:
    program = ("pass_ordering.study", *TINY)
    assert "the study knows no backend 'gcc'" in study_refused(*program, "backend=gcc")
    study(*program, "workers=2", "worker=0")
    kept = {path: path.stat().st_mtime_ns for path in (store_root / ".checkpoints").glob("pass_ordering_onnx/*/*.json")}
    assert len(kept) == 2, "the baselines, and the agent: every second of three cells"
    assert not (store_root / "data/results/pass_ordering").exists(), "a worker publishes nothing"
    found = read_results(study(*program) / "pass_ordering/onnx.json")
    assert {"start", "default", "fixpoint", "greedy", "beam", "random", "maskable_ppo"} < set(found["entrants"])
    assert set(found["times_ms"]) == {name for names in found["held_out"].values() for name in names}
    assert all({"default", "maskable_ppo"} == times.keys() for times in found["times_ms"].values())
    assert not [*(store_root / ".checkpoints").glob("pass_ordering_onnx/*")], "nothing is kept of what is done"


@pytest.mark.study
def test_a_core_set_is_learned_and_run_once(study: Callable[..., Path]) -> None:
    """What comes with RLFlow lies in the tree that the program runs in."""
    tiny = ("core_set.onnx={max_passes: 8, beam_width: 0}", *TINY)
    found = read_results(study("pass_ordering.one_shot", *tiny) / "pass_ordering/one_shot/onnx.json")
    row = found["entrants"]["core_set"]["0"]
    assert 0 < sum(map(len, row["core_set"])) <= 8
    assert {outcome["tried"] for outcome in row["outcomes"].values()} == {sum(map(len, row["core_set"]))}
    assert set(found["compiler_s"]) == set(row["outcomes"])


@pytest.mark.study
def test_random_walks_are_told_as_the_schema_says(
    repository: Path, store_root: Path, command: Callable[..., Any]
) -> None:
    """And the page can be made of what the benchmark writes."""
    command("python", str(repository / "benchmarks/pass_walks.py"), "--steps=60", "--backends=onnx", cwd=store_root)
    rows = read_results(store_root / "data/results/pass_walks.json")
    assert check_results(store_root / "data/results") == []
    assert rows[0]["cases"] >= 60
    assert walked(rows).splitlines()[-1].startswith("| `onnx` | 60 |")
