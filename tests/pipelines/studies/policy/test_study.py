"""The policy that ships: its lessons are those that were promised, and a tiny course runs, goes on and repeats."""

import json
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from experiment.results import read_results
from studies.policy.curriculum import Unit, practice_subjects, units
from studies.policy.data_sheet import data_sheet
from support.study_settings import plain_settings

from rlflow import zoo
from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.demonstrations import GainConfig
from rlflow.agents.match_level.guide import SHIPPED, Guide
from rlflow.agents.match_level.guided_chains import ChainConfig
from rlflow.agents.match_level.lesson_files import Subject, read_records
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.agents.token_collection import TokenCollectionConfig
from rlflow.cost.analytic import AnalyticCost
from rlflow.rules import library
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.search.best import SEARCHES
from rlflow.settings import read_config
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig, MatchLevelModelConfig

TRANSFORMERS = {"bert", "gpt2", "dalle", "t5_decoder", "vit"}


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return plain_settings("policy")


@pytest.fixture(scope="module")
def course(settings: dict[str, Any]) -> list[Unit]:
    """Without the settings of costs, of which the names are enough here."""
    return units(settings, lambda group, name: {"kind": name})


@pytest.fixture(scope="module")
def practice(settings: dict[str, Any]) -> dict[str, Subject]:
    """By the names of graph and cost; costs without their settings."""
    return practice_subjects(settings, lambda group, name: {"kind": name})


def test_the_policy_learns_from_many_small_graphs(course: list[Unit]):
    """Of different families, widths and costs; those that measure it are others."""
    trained = [unit for unit in course if not unit.held_out]
    graphs = {json.dumps(unit.subject.graph, sort_keys=True) for unit in trained}
    assert len(graphs) >= 15
    assert {unit.family for unit in trained} > TRANSFORMERS
    assert len({unit.family for unit in trained} - TRANSFORMERS) >= 4
    assert {unit.subject.cost["kind"] for unit in trained} == {"analytic", "gpu", "predicted"}
    assert len({unit.subject.graph["settings"].get("hidden") for unit in trained}) >= 3
    assert any(unit.lesson.start.merged_by for unit in trained)
    assert any(unit.lesson.start.walked for unit in trained)


def test_every_family_of_transformers_is_measured_on_a_graph_of_its_own(course: list[Unit]):
    seen = [unit.subject.graph for unit in course if not unit.held_out]
    held_out = [unit for unit in course if unit.held_out]
    assert {unit.family for unit in held_out} >= TRANSFORMERS
    assert not [unit.lesson.name for unit in held_out if unit.subject.graph in seen]


def test_lessons_can_be_held(course: list[Unit], repository: Path):
    """Names differ, and builders, searches, rules and costs take what the lessons give them."""
    assert len({unit.lesson.name for unit in course}) == len(course)
    rules = library.load()
    for unit in course:
        assert set(unit.subject.graph["settings"]) <= set(zoo.describe(unit.family).settings)
        assert unit.lesson.expert.method in SEARCHES
        for name in unit.lesson.start.merged_by:
            rules.get(name)
        assert (repository / f"conf/cost/{unit.subject.cost['kind']}.yaml").exists()


def test_the_policy_can_practise_on_graphs_that_do_not_measure_it(
    practice: dict[str, Subject], course: list[Unit], repository: Path
):
    """Of families that it has lessons of, or that measure nothing; builders and costs take what they are given."""
    assert {subject.graph["entry"] for subject in practice.values()} > TRANSFORMERS
    assert {subject.cost["kind"] for subject in practice.values()} == {"predicted", "gpu"}
    taught = {unit.family for unit in course if not unit.held_out}
    measuring = [unit for unit in course if unit.held_out]
    for subject in practice.values():
        assert set(subject.graph["settings"]) <= set(zoo.describe(subject.graph["entry"]).settings)
        assert (repository / f"conf/cost/{subject.cost['kind']}.yaml").exists()
        assert subject.graph not in [unit.subject.graph for unit in measuring]
        assert subject.graph["entry"] not in {unit.family for unit in measuring} - taught


def test_no_clock_ends_an_expert(course: list[Unit]):
    """Not vacuous: left to itself, equality saturation looks at one."""
    rewriter = SharingRewriter(())
    for expert in {unit.lesson.expert.method: unit.lesson.expert for unit in course}.values():
        made = SEARCHES[expert.method](library.load().select([]), rewriter, AnalyticCost(), **expert.options)
        assert "time_s" not in str(made).replace("time_s=None", "")
    plain = SEARCHES["equality_saturation"](library.load().select([]), rewriter, AnalyticCost())
    assert "time_s" in str(plain).replace("time_s=None", "")


def test_the_configuration_gives_every_setting_of_the_fit_and_of_gains(settings: dict[str, Any]):
    assert set(settings["fit"]) == {entry.name for entry in fields(MatchLevelModelConfig)}
    assert set(settings["gain"]) == {entry.name for entry in fields(GainConfig)}
    read_config(ChainConfig, settings["chains"])


def test_the_configuration_gives_every_setting_of_the_practice_and_of_the_training_in_its_dream(
    settings: dict[str, Any],
):
    """Of the fit it gives what differs from the policy's; V keeps its weights, and M its sizes."""
    assert set(settings["practice"]["play"]) == {entry.name for entry in fields(TokenCollectionConfig)}
    assert set(settings["controller"]["dream"]) == {entry.name for entry in fields(MatchLevelDreamConfig)}
    assert set(settings["controller"]["ppo"]) == {entry.name for entry in fields(MatchLevelControllerConfig)}
    refitted = read_config(MatchLevelModelConfig, settings["fit"] | settings["practice_fit"])
    assert refitted.encoder_epochs == 0
    assert not [name for name in settings["practice_fit"] if name.endswith(("width", "layers"))]


def test_the_sheet_that_ships_tells_the_published_figures(repository: Path, publishable: tuple[Path, ...]):
    """Those of the last commit, or those that are to be committed with it."""
    folder = repository / "src" / Path(*SHIPPED.split("."))
    folders = [root / "data/results/policy" for root in publishable]
    documents = [[read_results(place / f"{name}.json") for name in ("metrics", "trial")] for place in folders]
    sheet = (folder / "data_sheet.md").read_text(encoding="utf-8")
    (document, *_) = [judged for judged, tried in documents if data_sheet(judged, tried) == sheet]
    assert Guide.load(folder).trained_on["lessons"] == document["trained_on"]["lessons"]


TINY = {
    "tiny_merge": {"all": {"model": {}}},
    "t5_decoder": {
        "one": {"model": {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "vocabulary": 50, "head": "last"}},
        "held_out": {
            "model": {"layers": 1, "hidden": 16, "heads": 2, "intermediate": 64, "vocabulary": 50, "head": "last"},
            "held_out": True,
        },
    },
}
FIT = {
    "encoder_width": 8,
    "encoder_layers": 1,
    "encoder_epochs": 2,
    "metric_width": 4,
    "survival_width": 4,
    "epochs": 1,
}


PRACTICE = {
    "tiny_merge": {"all": {"model": {}}},
    "t5_decoder": {"one": TINY["t5_decoder"]["one"] | {"costs": ["analytic"]}},
}
PLAY = {"episodes": 2, "steps": 4, "from_start": 1.0}
PPO = {"total_steps": 64, "steps_per_update": 8, "batch_size": 16, "epochs": 1}


@pytest.fixture
def stage(study: Callable[..., Path]) -> Callable[..., None]:
    """Run one stage of the tiny course in the test's folder."""
    tiny = ["~lessons", f"+lessons={_override(TINY)}", "experts.saturation.options.exploration.max_nodes=300"]
    tiny += ["judging.rewrites=20", *(f"fit.{name}={value}" for name, value in FIT.items())]
    tiny += ["~practice.graphs", f"+practice.graphs={_override(PRACTICE)}", "practice_fit.epochs=1"]
    tiny += [f"practice.play.{name}={value}" for name, value in PLAY.items()]
    tiny += ["controller.dream.num_envs=4", "controller.dream.max_steps=4"]
    tiny += [f"controller.ppo.{name}={value}" for name, value in PPO.items()]
    tiny += ["trial.costs=[analytic]", "trial.graphs=[tiny_merge]", "trial.rewrites=[5,20]"]
    tiny += ["trial.portfolio.expansions=20"]

    def run(name: str, *overrides: str) -> None:
        study(f"policy.{name}", *tiny, *overrides)

    return run


def _override(value: Any) -> str:
    """A nested value as Hydra reads it on the command line."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_override(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_override, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _without_seconds(file: Path) -> Any:
    """The bytes of a file of a policy, but what it says of its training without the time that this took."""
    if file.name != "policy.json":
        return file.read_bytes()
    told = json.loads(file.read_text())
    assert told["trained_on"].pop("seconds") > 0
    return told


@pytest.mark.study
def test_a_tiny_policy(stage: Callable, study_refused: Callable[..., str], store_root: Path):
    """Two workers hold the lessons, of which one is then killed; the policy is fitted twice, practises, is judged, and
    shipped.
    """
    kept = store_root / ".checkpoints/policy_lessons"
    stage("lessons", "workers=2", "worker=1")
    (folder,) = kept.iterdir()
    assert [record.name for record in read_records(folder)] == ["t5_decoder_one"]
    assert not (store_root / "data").exists(), "half of the lessons are none"
    (alone,) = read_records(folder)
    stage("lessons", "workers=2", "worker=0")
    shutil.rmtree(next(folder.glob("tiny_merge_all-*")))

    stage("lessons")
    lessons = store_root / "data/policy/lessons"
    records = {record.name: record for record in read_records(lessons)}
    assert set(records) == {"tiny_merge_all", "t5_decoder_one", "t5_decoder_held_out"}
    assert records["t5_decoder_one"] == alone, "with its seconds, so that it was not held again"
    assert not list(kept.iterdir()), "nothing to go on from"

    assert "make it with `make study NAME=policy`" in study_refused("policy.practice"), "there is no policy"
    place, policies = store_root / "data/policy/policy", []
    for _ in range(2):
        shutil.rmtree(place, ignore_errors=True)
        stage("fit")
        policies.append({file.name: _without_seconds(file) for file in place.iterdir()})
    assert policies[0] == policies[1]
    assert Guide.load(place).trained_on["families"] == ["t5_decoder", "tiny_merge"]

    stage("practice", "workers=2", "worker=1")
    (kept_practice,) = (store_root / ".checkpoints/policy_practice").iterdir()
    assert [path.name for path in kept_practice.iterdir()] == ["tiny_merge_all_gpu"]
    stage("practice")
    played = store_root / "data/policy/practice"
    names = {"tiny_merge_all_predicted", "tiny_merge_all_gpu", "t5_decoder_one_analytic"}
    assert {path.name for path in played.iterdir()} == names
    assert not kept_practice.exists()

    learned, controllers = store_root / "data/policy/whole", []
    for _ in range(2):
        shutil.rmtree(learned, ignore_errors=True)
        stage("controller")
        controllers.append({file.name: file.read_bytes() for file in learned.iterdir()})
    assert controllers[0] == controllers[1]
    assert MatchLevelController.load(learned).arguments.max_steps == 4

    stage("judge")
    document = read_results(store_root / "data/results/policy/metrics.json")
    assert document["trained_on"]["lessons"] == 2
    assert document["lessons"]["t5_decoder_held_out"]["held_out"]
    assert document["lessons"]["t5_decoder_held_out"]["reading"]["taken_auc"]["cases"] > 0

    stage("trial")
    (tried,) = read_results(store_root / "data/results/policy/trial.json")["analytic"].values()
    assert [at["rewrites"] for at in tried["searches"]] == [5, 20]
    assert all(at["rlflow_percent"] >= tried["greedy_percent"] > 0 for at in tried["searches"])

    stage("ship")
    shipped = store_root / "src/rlflow/agents/shipped"
    assert {file.name for file in shipped.iterdir()} == {*controllers[0], "data_sheet.md"}
    assert "t5_decoder_held_out" in (shipped / "data_sheet.md").read_text()
