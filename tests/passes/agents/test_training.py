"""Agents that order passes, on words: they learn the way that greedy search cannot see, repeat, and are kept."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
import torch
from support.pass_agents import SMALL, trained, trained_on
from support.toy_compiler import SafeToyCompiler, ToyCompiler, announce

from rlflow.errors import InputError
from rlflow.passes import search
from rlflow.passes.agents.algorithms import ALGORITHMS, preferences
from rlflow.passes.agents.playing import PlayConfig, play
from rlflow.passes.agents.training import load, save
from rlflow.passes.transitions import Transitions
from rlflow.passes.worker import Limits, WorkerBackend


@pytest.mark.slow
def test_an_agent_learns_the_way_through_a_longer_word() -> None:
    """On a word that it was not trained on, where greedy search removes nothing and the untrained agent is no help."""
    transitions, agent = trained(total_steps=4096, learning_rate=3e-3)
    start = transitions.start("ccc")
    assert search.greedy(transitions, start, max_passes=6).facts.operations == 3
    found = play(agent, transitions, "ccc", PlayConfig(), seed=0)
    assert found.facts.operations == 0
    assert search.sequence(transitions, start, found.passes).facts == found.facts
    assert agent.curve[-1] > agent.curve[0]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_trains_and_repeats(algorithm: str) -> None:
    def weights(seed: int) -> torch.Tensor:
        return torch.cat([part.flatten() for part in trained(algorithm, seed)[1].model.policy.state_dict().values()])

    first = weights(1)
    assert torch.equal(first, weights(1))
    assert not torch.equal(first, weights(2))


@pytest.mark.slow
def test_training_goes_on_while_passes_fail_and_the_process_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passes refuse, abort or never end, and the process is killed from outside whatever it is doing."""
    announce(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    over = Event()
    with WorkerBackend("toy", Limits(longest_pass_s=1.0)) as toy:
        transitions = Transitions(toy)
        for word in ("cc", "cab"):
            transitions.start(word)
        killer = Thread(target=kill_again_and_again, args=(toy, over))
        killer.start()
        try:
            agent = trained_on(transitions)
        finally:
            over.set()
            killer.join()
        assert toy.apply(b"cc", "expand").payload == b"baba", "it is there after all that"
    assert agent.model.num_timesteps == SMALL["total_steps"]
    assert toy.deaths > 2


def kill_again_and_again(toy: WorkerBackend, over: Event, pause_s: float = 0.7) -> None:
    while not over.wait(pause_s):
        if (process := toy.process_id) is not None:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_agent_is_kept_with_its_settings(algorithm: str, tmp_path: Path) -> None:
    transitions, agent = trained(algorithm)
    save(agent, tmp_path)
    again = load(tmp_path, transitions)
    assert (again.config, again.episode, again.curve) == (agent.config, agent.episode, agent.curve)
    effort = PlayConfig(episodes=3, explore=0.1)
    played = [[play(one, transitions, word, effort, seed=5) for word in ("cc", "abab")] for one in (agent, again)]
    assert played[0] == played[1]
    observed = {"counts": np.array([0, 1, 2], np.float32), "tried": np.zeros(3, np.int8), "progress": np.zeros(1)}
    preferred = [preferences(one.model, {k: np.float32(v) for k, v in observed.items()}) for one in (agent, again)]
    assert np.array_equal(*preferred)
    assert len(set(preferred[0])) == 4, "it does not treat all actions alike"


def test_an_agent_of_other_passes_is_refused(tmp_path: Path) -> None:
    _, agent = trained()
    save(agent, tmp_path)
    with pytest.raises(InputError, match=r"cannot be read .* train one for the passes of this backend"):
        load(tmp_path, Transitions(ToyCompiler()))
    with pytest.raises(InputError, match=r"agent: .*nowhere cannot be read"):
        load(tmp_path / "nowhere", Transitions(SafeToyCompiler()))


def test_shaping_is_by_the_learners_gamma() -> None:
    _, agent = trained(potential="bytes", gamma=0.9)
    assert agent.model.get_env().get_attr("gamma") == [0.9] * SMALL["num_envs"]  # type: ignore[union-attr]
