"""The controller over match tokens on real graphs, with weights as initialised: what is tested holds for any policy."""

from dataclasses import replace

import pytest
import torch
from support.token_worlds import SMALL, small_graph, small_token_rollouts
from support.walks import LIBRARY, REWRITER

from rlflow.agents.tokens.config import TokenControllerConfig
from rlflow.agents.tokens.controller import TokenController, TokenControllerArguments
from rlflow.agents.tokens.match_level_search import MatchLevelSearch
from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget
from rlflow.trajectory.replay import replay
from rlflow.world_model.tokens.model import TokenModelArguments, TokenWorldModel


def optimiser(steps: int = 6, **settings) -> MatchLevelSearch:
    rollouts = small_token_rollouts()
    torch.manual_seed(0)
    model = TokenWorldModel(TokenModelArguments(rollouts.vocabulary, rollouts.library_hash, SMALL)).eval()
    arguments = TokenControllerArguments.of(model, TokenControllerConfig(width=8, terminate_bias=-6.0))
    controller = TokenController(arguments.new_policy(), arguments)
    made = MatchLevelSearch(
        LIBRARY, REWRITER, AnalyticCost(), model, controller, steps, sampled_episodes=2, candidates=1
    )
    return replace(made, **settings)


def test_the_trajectory_leads_to_the_best_graph() -> None:
    """With tries, so that something is found: not vacuous, since the result is cheaper."""
    graph = small_graph()
    result = optimiser(candidates=8).optimise(graph, Budget())
    assert result.best_ms < result.start_ms
    *_, last = replay(graph, result.trajectory, REWRITER)
    assert structural_hash(last) == structural_hash(result.best)
    assert result.best_ms == AnalyticCost().runtime_ms(result.best)


def test_the_same_seed_gives_the_same_result_and_another_another() -> None:
    first, second = (optimiser(candidates=4).optimise(small_graph(), Budget()) for _ in range(2))
    assert first.trajectory == second.trajectory
    assert first.effort.rewrites == second.effort.rewrites > 6
    drawn = [optimiser().drawn(small_graph(), 4), replace(optimiser(), seed=1).drawn(small_graph(), 4)]
    assert drawn[0] != drawn[1]
    assert drawn[0] == optimiser().drawn(small_graph(), 4)


def test_an_untrained_controller_is_another() -> None:
    trained = optimiser()
    with torch.no_grad():
        for parameter in trained.controller.policy.parameters():
            parameter.add_(1.0)
    weights = [next(one.controller.policy.parameters()) for one in (trained, trained.untrained())]
    assert not torch.equal(*weights)
    assert trained.untrained().world_model is trained.world_model


def test_a_controller_of_another_world_model_is_refused() -> None:
    made = optimiser()
    other = replace(made.controller.arguments, embedding=SMALL.encoder_width + 1)
    stranger = TokenController(other.new_policy(), other)
    with pytest.raises(InputError, match="train them together"):
        replace(made, controller=stranger).optimise(small_graph(), Budget())
