"""conf/: everything composes, params.yaml is what it composes to, and its numbers are those that the library takes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf
from studies.paper.by_stages import name_of
from tracking import composition
from tracking.composition import completed, compose_configuration, graph_names
from tracking.declaration import read_declaration, stage_names

from rlflow import zoo
from rlflow.agents.candidates.candidate_config import CandidateControllerConfig, CandidateNetworkConfig
from rlflow.agents.collection import CollectionConfig
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig
from rlflow.agents.token_collection import TokenCollectionConfig
from rlflow.cost.analytic import AnalyticConfig, AnalyticCost, GpuConfig
from rlflow.cost.pricing import PricingConfig
from rlflow.egraph.ilp import Limits
from rlflow.environments import CandidateConfig, EnvironmentConfig, RewardConfig
from rlflow.errors import InputError
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.methods import METHODS
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.verification.verify import VerificationConfig
from rlflow.search.base import Search
from rlflow.search.rule_selection import SelectionConfig
from rlflow.synthesis.families import SHIPPED
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig, MatchLevelModelConfig

CONF = Path(__file__).parents[2] / "conf"
GROUPS = sorted(folder for folder in CONF.iterdir() if folder.is_dir() and folder.name not in ("hydra", "study"))
OPTIONS = sorted(f"{file.parent.name}={file.stem}" for folder in GROUPS for file in folder.glob("*.yaml"))
ZOO_GRAPHS = [option for option in OPTIONS if option.startswith("graph=") and option != "graph=file"]


@cache
def compose(*overrides: str) -> DictConfig:
    return compose_configuration(overrides, CONF)


BESIDE = ("agent", "cost", "graph", "pass_agent", "reward", "search")
"""Groups whose options hold settings alone, so that all of them compose beside each other."""


@cache
def beside() -> DictConfig:
    """The experiment with each option of these groups at a place of its own; composing takes a fifth of a second.

    The study of pass ordering says for how many steps its agents learn, and how long episodes are.
    """
    options = [option.split("=") for option in OPTIONS]
    places = [f"+{group}@tried.{group}.{name}={name}" for group, name in options if group in BESIDE]
    return compose(*places, "+steps=64", "+episode.max_steps=24")


def settings_of_option(option: str) -> DictConfig:
    """What an option of a group of `BESIDE` says."""
    group, _, name = option.partition("=")
    return beside().tried[group][name]


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_composes(option: str):
    config = settings_of_option(option) if option.startswith(BESIDE) else compose(option)
    plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    assert plain
    assert "experiment" not in plain, "a group that is written into params.yaml would run every stage again"


def test_every_group_of_the_design_is_there():
    names = {folder.name for folder in GROUPS}
    design = (
        "rules rollouts world_model controller evaluation sweep graph cost reward environment experiment search agent "
        "pass_agent"
    )
    assert names == set(design.split())


@pytest.mark.parametrize("option", ZOO_GRAPHS)
def test_every_graph_of_the_zoo_has_settings_that_its_builder_takes(option: str):
    """And the smaller model, on which rules are chosen, differs in settings that are written out."""
    graph = settings_of_option(option)
    assert set(graph.settings) <= set(zoo.describe(graph.entry).settings)
    assert set(graph.get("selection", {})) <= set(graph.settings)


def test_every_model_of_the_zoo_of_a_published_architecture_is_a_graph():
    published = {name for name in zoo.names() if zoo.describe(name).family in ("cnn", "transformer", "recurrent")}
    assert published - {"conv"} <= {settings_of_option(option).entry for option in ZOO_GRAPHS}


@pytest.mark.parametrize("option", [option for option in OPTIONS if option.startswith("search=")])
def test_every_search_is_a_method_with_its_defaults(option: str):
    """What conf/search says is what `rlflow optimise --method` does; the seed and the horizon are the experiment's."""
    section: Any = OmegaConf.to_container(settings_of_option(option), resolve=True)
    assert section.keys() == {"method", "options", "time_s", "expansions"}
    assert section["method"] == option.removeprefix("search=")
    factory, shared = METHODS.get(section["method"]), (library.load().select([]), Rewriter(()), AnalyticCost())
    configured, plain = (factory(*shared, **options) for options in (section["options"], {}))
    of_the_experiment, learned = {"rewriter", "cost_model", "seed", "episode_steps"}, {"scored_by", "plays"}
    for entry in {entry.name for entry in fields(configured)} - of_the_experiment - learned:
        assert _comparable(getattr(configured, entry)) == _comparable(getattr(plain, entry))


def _comparable(value: Any) -> Any:
    """A value in which searches, and a portfolio's members, are without the rewriter and the cost model of each."""
    if isinstance(value, tuple):
        return [(_comparable(member.search), member.share) for member in value]
    if not isinstance(value, Search):
        return value
    own = (entry.name for entry in fields(value) if entry.name not in ("library", "rewriter", "cost_model"))
    return type(value), {name: _comparable(getattr(value, name)) for name in own}


def test_every_search_of_the_group_competes():
    assert {f"search={section.method}" for section in compose().evaluation.methods.values()} == {
        o for o in OPTIONS if o.startswith("search=")
    }


@pytest.mark.parametrize(
    "overrides",
    [(), ("world_model=graph_level",), ("world_model=match_level",), ("experiment=smoke",)],
    ids=str,
)
def test_no_clock_decides_what_must_repeat(overrides: tuple[str, ...]):
    """Prices are predicted at the model's own pace, and every budget is a count: of rules, of rollouts, of searches and
    of the searches that these consist of. Not vacuous: left to themselves, three methods would look at a clock.
    """
    plain: Any = OmegaConf.to_container(compose(*overrides), resolve=True)
    assert plain["cost"]["kind"] in ("predicted", "analytic")
    assert plain["cost"].get("pace", 1.0) == 1.0
    assert "time" not in str(plain["rules"])
    assert plain["rollouts"].get("time_limit_s") is None
    shared = library.load().select([]), Rewriter(()), AnalyticCost()
    timed = set()
    for name, section in plain["evaluation"]["methods"].items():
        assert section["time_s"] is None
        ends_by_itself = name in ("greedy", "tensat") or "rewrites" in section["options"]
        assert section["expansions"] or ends_by_itself, f"nothing ends {name}"
        factory = METHODS.get(section["method"])
        assert not list(_clocks(factory(*shared, **section["options"])))
        timed |= {name for _ in _clocks(factory(*shared))}
    assert timed == {"tensat", "equality_saturation", "best"}


def _clocks(value: Any) -> Iterator[float]:
    """The limits in seconds of a search, of its parts and of theirs."""
    if isinstance(value, tuple):
        yield from (clock for part in value for clock in _clocks(part))
    elif isinstance(value, Search | Limits):
        for entry in fields(value):
            found = getattr(value, entry.name)
            yield from [found] if entry.name == "time_s" and found is not None else _clocks(found)


def test_params_yaml_is_what_conf_composes_to(publishable: tuple[Path, ...]):
    """That of the last commit, whatever experiment was run since, or that which is to be committed next."""
    composed = OmegaConf.to_yaml(completed(compose()), resolve=True)
    written = [(root / "params.yaml").read_text() for root in publishable]
    assert composed in written, "run `python -m tracking.composition`"


def test_the_configured_families_are_those_of_the_shipped_library():
    """To two operators: three would take the experiment minutes, for rules that hardly ever match."""
    configured = compose().rules.generation.families
    assert configured.keys() == SHIPPED.keys()
    assert all(2 <= most <= SHIPPED[name] for name, most in configured.items())


@pytest.mark.parametrize(
    ("section", "kind", "overrides"),
    [
        ("world_model", GraphLevelModelConfig, ["world_model=graph_level"]),
        ("controller.dream", GraphLevelDreamConfig, ["world_model=graph_level"]),
        ("controller.ppo", ControllerConfig, ["world_model=graph_level"]),
        ("rollouts", CollectionConfig, ["world_model=graph_level"]),
        ("rollouts", TokenCollectionConfig, ["world_model=match_level"]),
        ("world_model", MatchLevelModelConfig, ["world_model=match_level"]),
        ("controller.dream", MatchLevelDreamConfig, ["world_model=match_level"]),
        ("controller.ppo", MatchLevelControllerConfig, ["world_model=match_level"]),
        ("controller.dream", MatchLevelDreamConfig, ["world_model=match_level", "controller=cma_es"]),
        ("controller.cma_es", CmaEsConfig, ["world_model=match_level", "controller=cma_es"]),
        ("agent.episodes", CandidateConfig, ["+agent=candidates"]),
        ("agent.network", CandidateNetworkConfig, ["+agent=candidates"]),
        ("agent.ppo", CandidateControllerConfig, ["+agent=candidates"]),
    ],
)
def test_a_world_model_brings_every_setting_of_its_dataclasses(section: str, kind: type, overrides: list[str]):
    assert set(OmegaConf.select(compose(*overrides), section)) == {entry.name for entry in fields(kind)}


def test_rollouts_do_not_depend_on_the_number_of_workers(repository: Path):
    """No stage declares it, so that DVC collects nothing again if it changes."""
    assert {"worker", "workers"} <= set(compose())
    declared = {
        section for stage in stage_names(repository) for section in read_declaration(stage, repository).sections
    }
    assert "rollouts" in declared
    assert not declared & {"worker", "workers"}


@pytest.mark.parametrize("formulation", ["graph_level", "match_level"])
@pytest.mark.parametrize("experiment", [(), ("experiment=smoke",)], ids=str)
def test_a_world_model_is_one_choice(formulation: str, experiment: tuple[str, ...]):
    """Its rollouts and its controller come along, at the size of the experiment, unless others are chosen."""
    config = compose(f"world_model={formulation}", *experiment)
    assert config.formulation == formulation
    assert ("nearby" in config.rollouts) == (formulation == "match_level")
    assert ("max_kinds" in config.controller.dream) == (formulation == "match_level")
    assert (config.rollouts.episodes < 40) == bool(experiment)
    assert compose(f"world_model={formulation}", "rollouts=random").rollouts.episodes == 100


@pytest.mark.parametrize(
    ("section", "kind", "elsewhere"),
    [
        ("environment", EnvironmentConfig, set()),
        ("rules.verification", VerificationConfig, {"seed"}),
        ("rules.selection", SelectionConfig, {"seed"}),
        (
            "evaluation.gate",
            GateConfig,
            {
                "seed",
                "dimensions",
                "sizes",
                "exceptional",
                "limits",
                "time_s",
                "racers",
                "belief",
                "proof",
                "settings",
                "tolerance",
            },
        ),
    ],
)
def test_a_section_gives_every_setting_of_its_dataclass(section: str, kind: type, elsewhere: set[str]):
    """So that no number of the experiment is a default in the source. elsewhere: given by the stage."""
    written = set(OmegaConf.select(compose(), section))
    assert written == {entry.name for entry in fields(kind)} - elsewhere


@pytest.mark.parametrize("option", [option for option in OPTIONS if option.startswith("reward=")])
def test_every_reward_is_one_that_the_environment_knows(option: str):
    """An option has the name of its reward, or that of `weighted` with its weights."""
    assert option.removeprefix("reward=").startswith(RewardConfig(**settings_of_option(option)).kind)


def test_figure_5_has_an_option_for_each_of_its_rewards():
    """R1 to R5, as each file says and as the tables name them."""
    options = ["weighted", "runtime", "weighted_memory", "weighted_evenly", "incremental"]
    for number, option in enumerate(options, start=1):
        assert f"R{number} of the paper's Figure 5" in (CONF / "reward" / f"{option}.yaml").read_text()
        reward = RewardConfig(**settings_of_option(f"reward={option}"))
        assert name_of(reward) == f"R{number}"
        assert reward.of_step.alpha + reward.of_step.beta == pytest.approx(1.0)


@pytest.mark.parametrize("option", ["cost=fused", "cost=as_written"])
def test_pricing_is_all_in_conf(option: str):
    written = set(settings_of_option(option)) - {"kind", "setting", "prices"}
    assert written == {entry.name for entry in fields(PricingConfig)}


@pytest.mark.parametrize(("option", "kind"), [("analytic", AnalyticConfig), ("gpu", GpuConfig)])
def test_a_roofline_is_the_same_here_and_on_the_command_line(option: str, kind: type):
    """`rlflow optimise --cost-model gpu` takes the defaults of the dataclass."""
    settings = OmegaConf.to_container(settings_of_option(f"cost={option}"))
    assert settings == {"kind": option} | asdict(kind())


def test_temperature_reaches_the_dream_and_no_other_stage():
    """The issue's multirun varies it; it must not run the world model again."""
    plain = [OmegaConf.to_container(compose(f"temperature={t}"), resolve=True) for t in (0.5, 1.0)]
    changed = {section for section in plain[0] if plain[0][section] != plain[1][section]}
    assert changed == {"temperature", "controller"}


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        ([], ["bert", "t5_last_token"]),
        (["graph=vit"], ["vit"]),
        (["experiment=smoke"], ["bert_tiny", "t5_tiny"]),
        (["graph=[vit,gpt2,bert]"], ["vit", "gpt2", "bert"]),
        (["+graph=vit"], ["bert", "t5_last_token", "vit"]),
    ],
)
def test_the_graphs_are_those_that_are_chosen(overrides: list[str], names: list[str]):
    """One or several, in that order; whoever chooses another one wants that one alone, which takes half as long."""
    assert list(graph_names(compose(*overrides))) == names


@pytest.mark.parametrize("option", [option for option in OPTIONS if option.startswith("graph=")])
def test_an_option_is_the_graph_of_its_name(option: str):
    """By the first line of its file, so that a list of options is a mapping of graphs."""
    name = option.removeprefix("graph=")
    assert (CONF / f"graph/{name}.yaml").read_text().startswith(f"# @package graphs.{name}\n")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    model = tmp_path / "my.onnx"
    model.write_bytes(b"first")
    return model


@pytest.mark.parametrize("graphs", ["file", "[bert,file]"])
def test_a_model_of_ones_own_is_a_graph_like_others(model: Path, graphs: str):
    """Alone or in the list, known by its content."""
    config = compose(f"graph={graphs}", f"model={model}")
    first = completed(config)
    assert graph_names(first)[-1] == "my"
    assert len(first.graphs.my.sha256) == 64
    assert completed(config) == completed(first) == first
    model.write_bytes(b"second")
    assert completed(first).graphs.my.sha256 == completed(config).graphs.my.sha256 != first.graphs.my.sha256


def test_two_graphs_of_one_name_are_refused(model: Path):
    """Their results would lie in one folder."""
    with pytest.raises(InputError, match="two graphs are named bert: give the file of your own another name"):
        completed(compose("graph=[bert,file]", f"model={model.rename(model.with_name('bert.onnx'))}"))


def test_an_experiment_on_no_graph_is_refused():
    with pytest.raises(InputError, match="there is no graph: choose one or several"):
        completed(compose("graph=[]"))


def test_a_model_that_is_not_given_or_not_there_is_refused():
    with pytest.raises(InputError, match=r"give the path of its ONNX file, graph=file model=my\.onnx$"):
        completed(compose("graph=file"))
    with pytest.raises(InputError, match=r"^model=nowhere\.onnx does not exist; give the path of an ONNX file"):
        completed(compose("graph=file", "model=nowhere.onnx"))


WRONG = {
    "temperature=hot": "temperature: Expected `float`, got `str`, and it is 'hot'",
    "temperature=null": "temperature: Expected `float`, got `null`",
    "graphs.bert.settings.layers=many": "bert cannot have layers='many': give a whole number",
    "graphs.bert.selection.layers=many": "bert cannot have layers='many': give a whole number",
    "graphs.bert.entry=bart": "there is no model of the zoo 'bart'",
    "rules.generation.families.join=two": "rules.generation.families: Expected `int`, got `str`",
    "rules.selection.size=1.5": "rules.selection.size: Expected `int`, got `float`, and it is 1.5",
    "cost.pace=slow": "cost.pace: Expected `float`, got `str`",
    "reward.kind=none": "unknown reward 'none': choose one of incremental",
    "environment.max_steps=1.5": "environment.max_steps: Expected `int`, got `float`",
    "rollouts.led=[often]": "rollouts.led: Expected `float`, got `str`",
    "world_model.epochs=[2]": "world_model.epochs: Expected `int`, got `array`",
    "controller.dream.num_envs=few": "controller.dream.num_envs: Expected `int`, got `str`",
    "+controller.ppo.gama=0.9": "controller.ppo: unknown setting gama; the settings are total_steps",
    "evaluation.gate.rounds=x": "evaluation.gate.rounds: Expected `int`, got `str`",
    "evaluation.methods.chains.expansions=x": "evaluation.methods.chains.expansions: Expected `int | null`",
    "sweep.seeds=[a]": "sweep.seeds: Expected `int`, got `str`",
    "pretrained=none": "pretrained: Invalid enum value 'none'",
}
"""Of each section that a stage reads, a setting of a wrong type."""


@pytest.mark.parametrize("override", WRONG)
def test_a_setting_of_a_wrong_type_is_refused_when_it_is_composed(override: str):
    with pytest.raises(InputError) as refused:
        completed(compose(override))
    assert str(refused.value).startswith(WRONG[override])


def test_every_section_of_every_stage_is_typed(repository: Path):
    """Not vacuous, as each of them is in the table above; `formulation` comes with the world model."""
    read = {section for stage in stage_names(repository) for section in read_declaration(stage, repository).sections}
    wrong = {override.lstrip("+").partition("=")[0].partition(".")[0] for override in WRONG}
    assert read - wrong == {"formulation", "seed"}


GRAPH_LEVEL = ("controller=maskable_ppo", "rollouts=random")
"""Options that go with world_model=graph_level."""
READ_BY_STAGES = [option for option in OPTIONS if not option.startswith(("agent=", "pass_agent=", "search="))]


@pytest.mark.parametrize("option", READ_BY_STAGES)
def test_every_option_has_the_types_of_its_sections(option: str, model: Path):
    """As conf/ says it; one of the other world model is refused."""
    if option in GRAPH_LEVEL:
        with pytest.raises(InputError, match=": unknown setting"):
            completed(compose(option))
        completed(compose(option, "world_model=graph_level"))
    else:
        completed(compose(option, f"model={model}"))


def test_what_is_composed_is_checked_without_pytorch(repository: Path):
    """Else a wrong letter would be told after the seconds that it takes to import; both world models are composed."""
    check = "from tracking.composition import completed, compose_configuration as compose; "
    check += "completed(compose()); completed(compose(['world_model=graph_level']))"
    assert "torch" not in modules_after(check, repository)


@pytest.mark.slow
@pytest.mark.parametrize("stage", [name for name in stage_names(CONF.parent) if name not in ("code", "config")])
def test_a_stage_refuses_a_setting_before_it_imports_pytorch(stage: str, repository: Path):
    """Which its script imports, where it works; not vacuous, as it imports what it is checked by."""
    found = modules_after(f"import {stage}", repository / "pipelines")
    assert "tracking.sections" in found
    assert "torch" not in found


def modules_after(statements: str, folder: Path) -> set[str]:
    """The modules that a fresh process has imported after these statements."""
    command = [sys.executable, "-c", f"import sys; {statements}; print(*sys.modules)"]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    return set(
        subprocess.run(command, cwd=folder, env=variables, check=True, capture_output=True, text=True).stdout.split()
    )


def test_overrides_of_an_experiment_survive_the_config_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`dvc exp run` writes params.yaml, then runs the stages."""
    shutil.copytree(CONF, tmp_path / "conf")
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(OmegaConf.to_yaml(compose("temperature=0.25"), resolve=True))
    monkeypatch.setenv("DVC_EXP_NAME", "cold")
    composition.main([])
    assert OmegaConf.load("params.yaml").temperature == 0.25
    monkeypatch.delenv("DVC_EXP_NAME")
    composition.main([])
    assert OmegaConf.load("params.yaml").temperature == 1.0
