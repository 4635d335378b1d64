"""The method finds the policy that ships, or that of a folder, and without one says what would bring it."""

from functools import partial
from pathlib import Path

import pytest
import torch
from support.token_worlds import SMALL as SMALL_TOKENS
from support.token_worlds import small_graph
from support.world_models import SMALL

from rlflow.agents.graph_level.controller import Controller, ControllerArguments
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.graph_level_search import GraphLevelSearch
from rlflow.agents.match_level.controller import MatchLevelController, MatchLevelControllerArguments
from rlflow.agents.match_level.guided_chains import ChainConfig, GuidedChains
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig
from rlflow.agents.match_level.taught_guide import TaughtGuide, shipped
from rlflow.agents.trained_policy import trained_policy
from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.representation.features import todays_vocabulary
from rlflow.representation.tokeniser import todays_token_vocabulary
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.search.greedy import Greedy
from rlflow.world_model.graph_level import latent_state
from rlflow.world_model.graph_level.model import GraphLevelModel, WorldModelArguments
from rlflow.world_model.match_level.model import MatchLevelModel, MatchLevelModelArguments


@pytest.mark.parametrize("present", [[], ["world_models"], ["policies"]])
def test_a_folder_without_a_policy_is_refused_with_what_to_do(tmp_path: Path, present: list[str]) -> None:
    for name in present:
        (tmp_path / name).mkdir()
    library = load()
    with pytest.raises(InputError, match=r"no trained policy in .*train one with `dvc repro`, .*--method backtracking"):
        trained_policy(library, Rewriter(library.rules), AnalyticCost(), folder=tmp_path)


def test_without_a_folder_it_is_the_policy_that_ships():
    library = load()
    method = trained_policy(library, Rewriter(library.rules), AnalyticCost(), rewrites=50, seed=2)
    assert isinstance(method, GuidedChains)
    assert (method.name, method.config.rewrites, method.seed) == ("rlflow", 50, 2)
    assert isinstance(method.scored_by, partial)
    assert method.scored_by.args[0].vocabulary == shipped().model.arguments.vocabulary
    assert isinstance(method.rewriter, SharingRewriter)
    graph = small_graph("t5_decoder")
    greedy = Greedy(library, Rewriter(library.rules), AnalyticCost()).optimise(graph, Budget())
    found = method.optimise(graph, Budget())
    assert found.best_ms <= greedy.best_ms < greedy.start_ms
    assert found.effort.rewrites > greedy.effort.rewrites, "what greedy search does is counted, too"


def test_the_policy_of_a_folder_is_found_by_its_files(tmp_path: Path):
    library, own = load(), ChainConfig(length=3, rewrites=5)
    TaughtGuide(shipped().model, own).save(tmp_path)
    method = trained_policy(library, Rewriter(library.rules), AnalyticCost(), folder=tmp_path)
    assert isinstance(method, GuidedChains)
    assert method.config == own


@pytest.mark.parametrize("options", [{"horizon": 3}, {"depth": 3}])
def test_options_of_another_method_are_refused(options: dict[str, int]):
    library = load()
    with pytest.raises(InputError, match=next(iter(options))):
        trained_policy(library, Rewriter(library.rules), AnalyticCost(), **options)


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """Untrained policies as `dvc repro` would leave those of three graphs; each acts with a rule of its own."""
    for place, graph in enumerate(("vit", "bert", "t5")):
        rules = load().select([load().rules[place].id])
        arguments = WorldModelArguments((rules.rules[0].id,), rules.hash, 5, todays_vocabulary(), SMALL)
        torch.manual_seed(0)
        model = GraphLevelModel(arguments)
        layout = latent_state.layout_of(model)
        controller = ControllerArguments(arguments.rule_ids, rules.hash, 5, layout, ControllerConfig(width=8))
        model.save(tmp_path / "world_models" / graph)
        Controller(controller.new_policy(), controller).save(tmp_path / "policies" / graph)
    return tmp_path


@pytest.mark.parametrize(("trained_on", "place"), [(None, 1), ("bert", 1), ("t5", 2), ("vit", 0)])
def test_the_policy_is_that_of_the_named_graph_or_of_the_first_by_name(
    trained: Path, trained_on: str | None, place: int
) -> None:
    library = load()
    policy = trained_policy(
        library, Rewriter(library.rules), AnalyticCost(), folder=trained, trained_on=trained_on, horizon=3
    )
    expected = (library.rules[place].id,)
    assert isinstance(policy, GraphLevelSearch)
    assert policy.controller.arguments.rule_ids == policy.world_model.arguments.rule_ids == expected
    assert [rule.id for rule in policy.library.rules] == [rule.id for rule in policy.rewriter.rules] == list(expected)
    assert isinstance(policy.before, Greedy)


@pytest.mark.parametrize("config", [MatchLevelControllerConfig(width=8), CmaEsConfig()], ids=["trained", "evolved"])
def test_a_policy_over_match_tokens_acts_by_all_rules(
    tmp_path: Path, config: MatchLevelControllerConfig | CmaEsConfig
) -> None:
    """As `dvc repro` leaves one, by PPO or by evolution: it searches as the policy that ships does."""
    library, arguments = load(), MatchLevelModelArguments(todays_token_vocabulary(), "", SMALL_TOKENS)
    model = MatchLevelModel(arguments)
    controller = MatchLevelController.untrained(MatchLevelControllerArguments.of(model, config, 3), seed=0)
    TaughtGuide(model, ChainConfig(), controller=controller).save(tmp_path / "policies" / "bert")
    parts = library, Rewriter(library.rules), AnalyticCost()
    policy = trained_policy(*parts, folder=tmp_path, trained_on="bert", rewrites=20)
    assert isinstance(policy, GuidedChains)
    assert isinstance(policy.plays, partial)
    assert policy.plays.keywords["pointer"].max_steps == 3
    assert policy.library is library
    assert policy.optimise(small_graph(), Budget()).effort.rewrites > 0


def test_a_graph_on_which_none_was_trained_is_refused_with_those_that_are_there(trained: Path) -> None:
    library = load()
    with pytest.raises(InputError, match=r"no policy in .* was trained on gpt2: choose from bert, t5, vit"):
        trained_policy(library, Rewriter(library.rules), AnalyticCost(), folder=trained, trained_on="gpt2")
