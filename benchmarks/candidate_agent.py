"""X-RLflow's agent beside searches on one graph, at analytic prices: savings, rewrites and the time that each took.

`python benchmarks/candidate_agent.py vit_two_layers 0 agent.ppo.total_steps=2048`: a graph of conf/graph, a seed, and
what conf/agent is to have otherwise. Some minutes for a graph of two layers.
"""

import logging
import sys
import time
from typing import Any

import torch
from omegaconf import OmegaConf
from tracking.composition import compose_configuration
from tracking.factories import graph_of

from rlflow.agents.candidates.candidate_config import CandidateControllerConfig, CandidateNetworkConfig
from rlflow.agents.candidates.training import train_on_candidates, trial
from rlflow.cost.analytic import AnalyticCost
from rlflow.environments.candidate_process import CandidateConfig, CandidateProcess
from rlflow.method import Budget
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.backtracking import Backtracking
from rlflow.search.greedy import Greedy
from rlflow.settings import read_config

log = logging.getLogger("candidate_agent")


def main(name: str, seed: str = "0", *overrides: str) -> None:
    settings: Any = OmegaConf.to_container(
        compose_configuration([f"graph={name}", "+agent=candidates", *overrides]), resolve=True
    )
    graph, library, cost_model, agent = graph_of(settings["graphs"][name]), load(), AnalyticCost(), settings["agent"]
    parts = (library, Rewriter(library.rules), cost_model)
    log.info(f"{name}: {len(graph.order)} nodes, {sum(parts[1].matches(graph).counts)} matches")
    for search, budget in ((Greedy(*parts), Budget()), (Backtracking(*parts), Budget(expansions=200))):
        found = search.optimise(graph, budget)
        told = f"{found.effort.rewrites} rewrites, {found.wall_time_s:.1f} s"
        log.info(f"{search.name}: {found.improvement_percent:.3f} %, {len(found.trajectory.steps)} steps, {told}")

    started = time.perf_counter()
    process = CandidateProcess(graph, parts[1], cost_model, read_config(CandidateConfig, agent["episodes"]))

    def tell(update: int, said: dict[str, float]) -> None:
        scores = f"return {said.get('return_percent', 0.0):.2f} %, alone {said['real_score_percent']:.3f} %"
        fit = f"entropy {-said['train/entropy_loss']:.2f}, KL {said['train/approx_kl']:.4f}"
        effort = f"{said['rewrites']:.0f} rewrites, {time.perf_counter() - started:.0f} s"
        log.info(f"update {update}: {scores}, {fit}, {effort}")

    ppo = read_config(CandidateControllerConfig, agent["ppo"])
    network = read_config(CandidateNetworkConfig, agent["network"])
    controller = train_on_candidates(process, library.hash, ppo, network, seed=int(seed), on_update=tell)
    log.info(f"the agent, seed {seed}: {trial(process, controller).score_percent:.3f} %")


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    log.setLevel(logging.INFO)
    main(*sys.argv[1:])
