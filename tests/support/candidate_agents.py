"""Small processes and networks over candidate graphs."""

import torch

from rlflow.agents.candidates.candidate_config import CandidateControllerConfig, CandidateNetworkConfig
from rlflow.agents.candidates.controller import CandidateController, CandidateControllerArguments
from rlflow.cost.analytic import AnalyticCost
from rlflow.environments.candidate_process import CandidateConfig, CandidateProcess
from support.token_worlds import small_graph
from support.walks import LIBRARY, REWRITER

EPISODES = CandidateConfig(max_candidates=10, max_steps=4)
NETWORK = CandidateNetworkConfig(width=8, attention_layers=2, attention_heads=2)
PPO = CandidateControllerConfig(
    total_steps=96, steps_per_update=8, batch_size=32, epochs=1, num_envs=4, states_in_memory=64
)


def small_candidates(name: str = "bert", episodes: CandidateConfig = EPISODES) -> CandidateProcess:
    return CandidateProcess(small_graph(name), REWRITER, AnalyticCost(), episodes)


def untaught(
    network: CandidateNetworkConfig = NETWORK, episodes: CandidateConfig = EPISODES, seed: int = 0
) -> CandidateController:
    """A controller whose every weight is drawn, so that nothing is 0 by design."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        arguments = CandidateControllerArguments.of(LIBRARY.hash, episodes, network)
        policy = arguments.new_policy().eval().requires_grad_(False)
        for weight in policy.parameters():
            weight.add_(0.1 * torch.randn(weight.shape))
        return CandidateController(policy, arguments)
