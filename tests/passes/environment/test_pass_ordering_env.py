"""The pass-ordering environment on words whose shortest form is known: spaces, masks, ends, failures, fork and undo."""

import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from support.toy_compiler import ToyCompiler, announce

from rlflow.environments import PASS_ORDERING
from rlflow.errors import InputError
from rlflow.ir.node import INPUT
from rlflow.passes.environment.pass_ordering_env import PassOrderingConfig, PassOrderingEnv
from rlflow.passes.record import replayed
from rlflow.passes.transitions import Transitions
from rlflow.passes.worker import Limits, WorkerBackend
from rlflow.representation.vocabulary import OPAQUE

CANCEL, SWAP, EXPAND, REFUSE, ABORT, HANG, STOP = range(7)
TO_THE_OPTIMUM = (EXPAND, SWAP, CANCEL)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerBackend]:
    announce(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with WorkerBackend("toy", Limits(longest_pass_s=5.0)) as backend:
        yield backend


def make(sources: tuple[str, ...] = ("cc",), **settings: object) -> PassOrderingEnv:
    return PassOrderingEnv(Transitions(ToyCompiler()), sources, config=PassOrderingConfig(**settings))  # type: ignore[arg-type]


def test_the_checker_of_gymnasium_is_satisfied(toy: WorkerBackend) -> None:
    """Through the registry and a process, with every warning but the one on unbounded counts."""
    made = gymnasium.make(PASS_ORDERING, backend="toy", render_mode="ansi", max_steps=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(made.unwrapped)
    assert [text for text in (str(w.message) for w in caught) if "infinity" not in text] == []
    made.close()


def test_an_episode_tells_of_operations_and_rewards_add_up() -> None:
    env = make()
    observation, info = env.reset(seed=0)
    assert observation["counts"].tolist() == [0, 0, 2], "a, b, and whatever the catalogue does not name"
    rewards = []
    for action in TO_THE_OPTIMUM:
        observation, reward, terminated, _, info = env.step(action)
        rewards.append(reward)
        assert not terminated
        assert info["changed"]
    assert rewards == [-100.0, 0.0, 200.0], "the word grows to four letters first, and is empty in the end"
    assert (info["operations"], info["best_operations"]) == (0, 0)
    assert observation["cost"].tolist() == [0.0, 0.0, 0.0]
    _, reward, terminated, _, _ = env.step(STOP)
    assert (reward, terminated) == (0.0, True)


def test_the_best_program_is_remembered_when_the_word_grows_again() -> None:
    env = make()
    env.reset(seed=0)
    _, _, _, _, info = env.step(EXPAND)
    assert (info["operations"], info["best_operations"]) == (4, 2)


def test_passes_that_do_nothing_here_are_masked_until_the_program_changes() -> None:
    env = make()
    env.reset(seed=0)
    assert env.action_masks().all()
    observation, _, _, _, _ = env.step(CANCEL)
    assert not env.action_masks()[CANCEL]
    assert observation["tried"][CANCEL] == 1
    env.step(EXPAND)
    assert env.action_masks().all()


def test_a_mask_does_not_depend_on_other_episodes() -> None:
    """The transitions know that `cancel` does nothing to "cc"; a new episode must not, or it would not repeat."""
    env = make()
    env.reset(seed=0)
    env.step(CANCEL)
    observation, _ = env.reset(seed=0)
    assert env.action_masks().all()
    assert not observation["tried"].any()


def test_the_horizon_truncates() -> None:
    env = make(max_steps=2)
    env.reset(seed=0)
    assert env.step(CANCEL)[2:4] == (False, False)
    assert env.step(CANCEL)[2:4] == (False, True)


@pytest.mark.slow
@pytest.mark.parametrize(("action", "said"), [(REFUSE, "it never works"), (ABORT, "SIGABRT"), (HANG, "did not finish")])
def test_a_pass_that_fails_is_a_step_that_does_nothing(toy: WorkerBackend, action: int, said: str) -> None:
    env = PassOrderingEnv(Transitions(toy), ["cc"])
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(action)
    assert said in info["error"]
    assert (reward, terminated, truncated, info["changed"]) == (0.0, False, False, False)
    for following in TO_THE_OPTIMUM:
        _, _, _, _, info = env.step(following)
    assert info["operations"] == 0, "the episode goes on"
    assert "error" not in info


def test_a_process_that_is_killed_in_the_middle_of_an_episode(toy: WorkerBackend) -> None:
    env = PassOrderingEnv(Transitions(toy), ["cc"])
    env.reset(seed=0)
    assert toy.process_id is not None
    os.kill(toy.process_id, signal.SIGKILL)
    assert "SIGKILL" in env.step(EXPAND)[4]["error"]
    assert env.step(SWAP)[4] == {"source": "cc", "key": env.facts.key, "operations": 2, "best_operations": 2} | {
        "changed": False
    }


def test_fork_and_undo_leave_the_other_state_alone() -> None:
    env = make()
    env.reset(seed=0)
    env.step(EXPAND)
    other = env.fork()
    env.step(SWAP)
    env.step(CANCEL)
    assert (env.facts.operations, other.facts.operations) == (0, 4)
    _, info = env.undo()
    assert info["operations"] == 4
    assert other.step(SWAP)[4]["key"] == env.facts.key
    other.undo()
    other.undo()
    with pytest.raises(InputError, match="there is no pass to undo"):
        other.undo()


def test_the_same_seed_gives_the_same_episode_and_another_seed_another() -> None:
    def played(seed: int) -> list[object]:
        env = make(("cc", "cab", "abab"))
        seen: list[object] = []
        for episode in range(6):
            observation, info = env.reset(seed=seed if episode == 0 else None)
            seen.append((info["source"], observation["counts"].tolist()))
        return seen

    assert played(1) == played(1)
    assert played(1) != played(2)


def test_a_record_leads_to_the_best_program() -> None:
    env = make()
    env.reset(seed=0)
    for action in (CANCEL, *TO_THE_OPTIMUM, EXPAND):
        env.step(action)
    record = env.record()
    assert [step.name for step in record.steps] == ["expand", "swap", "cancel"]
    assert replayed(env.transitions, record, env.start_facts) == env.best


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(InputError, match="there is no observation 'smell': choose among counts, cost"):
        make(observation=("smell",))
    with pytest.raises(InputError, match="there is no pass-ordering reward 'praise': choose one of operations"):
        make(reward="praise")
    env = make()
    with pytest.raises(InputError, match="call reset"):
        env.step(EXPAND)
    env.reset(seed=0)
    with pytest.raises(InputError, match="there is no action 7: passes are 0 to 5, and 6 stops"):
        env.step(7)


def test_the_program_is_rendered_as_text() -> None:
    env = PassOrderingEnv(Transitions(ToyCompiler()), ["cc"], render_mode="ansi")
    env.reset(seed=0)
    env.step(EXPAND)
    assert env.render() == "cc: 4 operations, 2 at the start\n  passes: expand\n  2 a, 2 b"
    assert np.isfinite(env.step(SWAP)[1])


@pytest.mark.slow
def test_a_program_is_observed_as_a_graph_if_asked_for() -> None:
    """On XLA's own instructions, whose names are the words of the vocabulary."""
    pytest.importorskip("jax")
    made = gymnasium.make(PASS_ORDERING, backend="xla", sources=["gru/step"], observation=["counts", "graph"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(made.unwrapped, skip_render_check=True)
    assert [text for text in (str(w.message) for w in caught) if "infinity" not in text] == []
    env: PassOrderingEnv = made.unwrapped  # type: ignore[assignment]
    observation, _ = env.reset(seed=0)
    arrays, seen = env.graph_arrays(), observation["graph"]
    words = [env.vocabulary.operators[index] for index in seen.nodes[:, 0].astype(int)]
    assert (seen.nodes[:, 1:] == arrays.features).all()
    assert (seen.edge_links == arrays.edges).all()
    assert {"dot", "while", INPUT} <= set(words)
    assert OPAQUE not in words, "every instruction is known by its name"
    made.close()


def test_an_episode_may_begin_after_some_passes() -> None:
    """Its start is the program there, and its record leads from the source; passes in vain are left out."""
    env = make()
    env.reset(options={"passes": ("expand", "expand", "swap")})
    assert env.transitions.payload(env.facts.key) == b"abab"
    assert env.start_facts == env.facts
    _, reward, *_ = env.step(CANCEL)
    assert reward == 100.0, "all that was there at the start of the episode"
    record = env.record()
    assert [step.name for step in record.steps] == ["expand", "swap", "cancel"]
    start = env.transitions.start("cc")
    assert (record.key, record.operations) == (start.key, 2)
    assert replayed(env.transitions, record, start) == env.facts
