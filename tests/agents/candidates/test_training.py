"""Training over candidates: a detour is learned, a kill changes nothing, and what is kept is the best."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.candidate_agents import NETWORK, PPO, small_candidates
from support.detours import COST, detour_rules, detours, rules_astray
from support.walks import LIBRARY

from rlflow.agents.candidates.candidate_config import CandidateNetworkConfig
from rlflow.agents.candidates.controller import CandidateController
from rlflow.agents.candidates.training import train_on_candidates, trial
from rlflow.environments.candidate_process import CandidateConfig, CandidateProcess
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.rules.library import Library
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.search.greedy import Greedy


def weights(controller: CandidateController) -> list[torch.Tensor]:
    return list(controller.policy.state_dict().values())


def same(one: CandidateController, other: CandidateController) -> bool:
    return all(torch.equal(*pair) for pair in zip(weights(one), weights(other), strict=True))


def detour(library: Library, max_steps: int) -> CandidateProcess:
    config = CandidateConfig(max_candidates=8, max_steps=max_steps)
    return CandidateProcess(detours(), SharingRewriter(library.rules), COST, config)


@pytest.mark.slow
@pytest.mark.parametrize("priced", [True, False])
def test_a_temporary_loss_is_accepted_where_greedy_search_stands_still(priced: bool) -> None:
    """In y = (x * 0.5) w the scale must grow dearer before it disappears. Rules that lead astray are there, too.

    Greedy search saves nothing, and neither does the untrained policy, which stops at once. The best of all is two
    steps away, and trained policies go there, one that sees prices and one that sees the graphs alone.
    """
    library = rules_astray()
    process = detour(library, max_steps=4)
    greedy = Greedy(library, SharingRewriter(library.rules), COST).optimise(detours(), Budget())
    assert greedy.improvement_percent == 0.0
    assert process.start().saving_ms.max() <= 0.0

    network = CandidateNetworkConfig(width=16, attention_layers=2, attention_heads=2, terminate_bias=0.5, priced=priced)
    ppo = replace(
        PPO,
        total_steps=2048,
        steps_per_update=16,
        num_envs=8,
        epochs=6,
        learning_rate=5e-3,
        entropy_weight=0.05,
        states_in_memory=256,
    )
    untrained = train_on_candidates(process, library.hash, replace(ppo, learning_rate=0.0), network, seed=0)
    assert trial(process, untrained).score_percent == 0.0
    scores: list[float] = []
    controller = train_on_candidates(
        process, library.hash, ppo, network, seed=0, on_update=lambda _, said: scores.append(said["real_score_percent"])
    )
    best = best_percent(detour(detour_rules(), max_steps=2))
    assert best > 5.0
    assert trial(process, controller).score_percent == pytest.approx(best)
    assert scores[-1] == pytest.approx(best), "not by chance: the last policy knows it, too"


def best_percent(process: CandidateProcess) -> float:
    """Of all graphs that can be reached in two steps."""
    reached = [process.start()]
    for _ in range(2):
        reached += [process.step(state, place) for state in reached for place in range(len(state.candidates))]
    return process.percent(process.start_ms - min(state.runtime_ms for state in reached))


def test_a_killed_training_ends_alike_and_seeds_differ(tmp_path: Path) -> None:
    class Interrupted(Exception):
        """Stands for a kill."""

    def interrupt(update: int, _: dict[str, float]) -> None:
        if update == 2:
            raise Interrupted

    counted: list[float] = []
    whole = train_on_candidates(
        small_candidates(),
        LIBRARY.hash,
        PPO,
        NETWORK,
        seed=0,
        on_update=lambda _, said: counted.append(said["rewrites"]),
    )
    assert len(counted) == 3
    assert counted == sorted(counted)
    resumed: list[float] = []
    with pytest.raises(Interrupted):
        train_on_candidates(
            small_candidates(), LIBRARY.hash, PPO, NETWORK, seed=0, checkpoint=tmp_path / "c", on_update=interrupt
        )
    again = train_on_candidates(
        small_candidates(),
        LIBRARY.hash,
        PPO,
        NETWORK,
        seed=0,
        checkpoint=tmp_path / "c",
        on_update=lambda _, said: resumed.append(said["rewrites"]),
    )
    assert same(again, whole)
    assert resumed[-1] >= counted[1], "what was carried out before the kill counts"
    assert not same(train_on_candidates(small_candidates(), LIBRARY.hash, PPO, NETWORK, seed=1), whole)


def test_it_never_ends_with_less_than_it_began_with() -> None:
    """At a learning rate that destroys what it knew, the untrained policy is kept, which is greedy search."""
    process, scores = small_candidates(), list[float]()
    wild = replace(PPO, learning_rate=10.0, epochs=4)
    kept = train_on_candidates(
        process,
        LIBRARY.hash,
        wild,
        NETWORK,
        seed=3,
        on_update=lambda _, said: scores.append(said["real_score_percent"]),
    )
    gentle = train_on_candidates(process, LIBRARY.hash, replace(PPO, learning_rate=0.0), NETWORK, seed=3)
    assert trial(process, kept).score_percent >= trial(process, gentle).score_percent > 0.0
    assert max(scores) < trial(process, kept).score_percent, "every later snapshot is worse"


def test_it_refuses_a_memory_that_is_too_small() -> None:
    with pytest.raises(InputError, match="may see 36 states"):
        train_on_candidates(small_candidates(), LIBRARY.hash, replace(PPO, states_in_memory=35), NETWORK, seed=3)
    with pytest.raises(InputError, match="multiple of the heads"):
        CandidateNetworkConfig(width=10, attention_heads=4)
