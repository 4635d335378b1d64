"""Train X-RLflow's policy on a real graph, end to end, by MaskablePPO.

    process = CandidateProcess(graph, rewriter, cost_model, CandidateConfig())
    controller = train_on_candidates(process, library.hash, config, CandidateNetworkConfig(), seed=0)

After every few updates an episode of the most probable actions is played on the graph; the snapshot that does best is
returned, the untrained one among them, so that a training never ends with less than it began with.
"""

from __future__ import annotations

from pathlib import Path

from rlflow.agents.candidates.candidate_config import CandidateControllerConfig, CandidateNetworkConfig
from rlflow.agents.candidates.candidate_policy import CandidatePolicy
from rlflow.agents.candidates.candidate_search import player_of
from rlflow.agents.candidates.controller import (
    CandidateController,
    CandidateControllerArguments,
)
from rlflow.agents.candidates.memory import CandidateMemory, PriceScale
from rlflow.agents.candidates.real_env import CandidateEpisodes
from rlflow.agents.maskable_ppo import OnUpdate, scaled_to, train_policy
from rlflow.agents.selection import Selection, Trial
from rlflow.environments.candidate_process import CandidateProcess
from rlflow.environments.rewards import Reward
from rlflow.errors import InputError


def train_on_candidates(
    process: CandidateProcess,
    library_hash: str,
    config: CandidateControllerConfig,
    network: CandidateNetworkConfig,
    *,
    seed: int,
    reward: Reward | None = None,
    checkpoint: Path | None = None,
    on_update: OnUpdate | None = None,
) -> CandidateController:
    """Train on the episodes of a process; the options are those of `train_policy`.

    reward: any of `environments.rewards`, such as the measured one; what a rewrite saves by price, unless one is given.
    Snapshots are compared by price, whatever the reward.

    The metrics of each update hold `rewrites`, those that were carried out so far, and `real_score_percent`,
    the improvement by an episode of the most probable actions. `InputError` if the memory is smaller than an update.
    """
    needed = config.num_envs * (config.steps_per_update + 1)
    if config.states_in_memory < needed:
        raise InputError(
            f"candidates: states_in_memory is {config.states_in_memory}, but an update may see {needed} states: raise "
            "it, or lower num_envs or steps_per_update"
        )
    arguments = CandidateControllerArguments.of(library_hash, process.config, network)
    settings = arguments.policy_settings(config.states_in_memory)
    memory: CandidateMemory = settings["memory"]
    scale = PriceScale.of(process)
    shown = scale if network.priced else None
    env = CandidateEpisodes(process, memory, shown, config.num_envs, config.greedy_starts, reward)

    def told(update: int, metrics: dict[str, float]) -> None:
        if on_update is not None:
            on_update(update, metrics | {"rewrites": float(process.evaluator.effort.rewrites)})

    def judged(policy: CandidatePolicy) -> Trial:
        return trial(process, CandidateController(policy, arguments))

    policy = train_policy(
        env,
        CandidatePolicy,
        settings,
        scaled_to(
            config, process.percent(max(scale.unit_ms, process.start_ms - process.greedy_states()[-1].runtime_ms))
        ),
        seed=seed,
        fingerprint=env.fingerprint(arguments),
        on_update=told,
        checkpoint=checkpoint,
        selection=Selection(judged, tries_untrained=True),
    )
    return CandidateController(policy, arguments)


def trial(process: CandidateProcess, controller: CandidateController) -> Trial:
    """The improvement by one episode of the most probable actions, and the rewrites that were carried out for it."""
    before = process.evaluator.effort.rewrites
    best = player_of(process, controller).play(None, candidates=1)
    saved_ms = process.start_ms - best.runtime_ms
    return Trial(process.percent(saved_ms), process.evaluator.effort.rewrites - before)
