"""Rewards of pass ordering, by hand on words."""

import pytest
from support.toy_compiler import ToyCompiler

from rlflow.passes.backend import PassError
from rlflow.passes.environment.pass_ordering_env import PassOrderingConfig, PassOrderingEnv
from rlflow.passes.transitions import Transitions

CANCEL, SWAP, EXPAND = range(3)


def earned(name: str, source: str = "ccab", actions: tuple[int, ...] = (EXPAND, SWAP, CANCEL)) -> list[float]:
    """ "ccab" of 4 letters, then "bababaab"'s kin: 6, 6 and 0 letters."""
    config = PassOrderingConfig(reward=name, max_steps=len(actions))
    env = PassOrderingEnv(Transitions(ToyCompiler()), [source], config=config)
    env.reset(seed=0)
    return [float(env.step(action)[1]) for action in actions]


def test_the_papers_reward_is_the_negative_count() -> None:
    assert earned("operations") == [-150.0, -150.0, 0.0]


def test_a_delta_is_what_the_step_has_removed() -> None:
    assert earned("delta") == [-50.0, 0.0, 150.0]


def test_a_share_of_the_baseline_is_100_where_the_episode_ends_as_that_does() -> None:
    """`default` takes "ab" away, 2 letters; the fixpoint of `tidy` all 4."""
    assert earned("of_baseline") == [-50.0, 0.0, 150.0]
    assert earned("of_baseline", actions=(CANCEL,)) == [50.0]
    assert earned("of_baseline", source="aa", actions=(CANCEL,)) == [0.0], "nothing can be gained, and nothing is"


def test_bytes_follow_the_cost_analysis() -> None:
    assert earned("bytes") == [-50.0, 0.0, 150.0], "8 bytes a letter"


def test_compiled_operations_are_those_of_the_compiler() -> None:
    assert earned("compiled") == [-50.0, 0.0, 150.0], "half as many as letters"
    assert earned("compiled", source="a", actions=(EXPAND,)) == [0.0]


def test_run_time_is_paid_at_the_end() -> None:
    """5 ms before and 1 ms after."""
    assert earned("run_time") == pytest.approx([0.0, 0.0, 80.0])
    assert earned("run_time", actions=(SWAP,)) == [0.0], "the same program takes the same time, and is not run"


def test_noise_is_no_gain() -> None:
    class Noisy(ToyCompiler):
        def times_ms(self, programs: object, *, rounds: int, runs: int, seed: int) -> dict[int, list[float]]:
            return {0: [1.0, 2.0, 1.0], 1: [0.5, 2.1, 0.5]}  # faster in two rounds of three

    config = PassOrderingConfig(reward="run_time", max_steps=1)
    env = PassOrderingEnv(Transitions(Noisy()), ["ccab"], config=config)
    env.reset(seed=0)
    assert env.step(CANCEL)[1] == 0.0


def test_a_program_that_cannot_be_compiled_earns_nothing_and_says_so() -> None:
    class Broken(ToyCompiler):
        def compiled_operations(self, program: bytes) -> int:
            raise PassError("it does not compile")

    env = PassOrderingEnv(Transitions(Broken()), ["cc"], config=PassOrderingConfig(reward="compiled"))
    env.reset(seed=0)
    _, reward, _, _, info = env.step(EXPAND)
    assert (reward, info["error"]) == (0.0, "it does not compile")
