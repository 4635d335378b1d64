"""Potential-based shaping: its proof obligations, and a control that breaks one of them."""

import itertools

import gymnasium
import pytest
from support.toy_compiler import ToyCompiler

from rlflow.errors import InputError
from rlflow.passes.backend import Facts
from rlflow.passes.environment.pass_ordering_env import PassOrderingConfig, PassOrderingEnv
from rlflow.passes.environment.shaping import PotentialShaping, by_name
from rlflow.passes.transitions import Transitions

CANCEL, SWAP, EXPAND, STOP = 0, 1, 2, 6
GAMMA = 0.9


def plain(max_steps: int = 4) -> PassOrderingEnv:
    return PassOrderingEnv(Transitions(ToyCompiler()), ["cc"], config=PassOrderingConfig(max_steps=max_steps))


def played(env: gymnasium.Env, actions: tuple[int, ...]) -> float:
    """The discounted return of an episode."""
    env.reset(seed=0)
    total, factor = 0.0, 1.0
    for action in actions:
        _, reward, terminated, _, _ = env.step(action)
        total += factor * float(reward)
        factor *= GAMMA
        if terminated:
            break
    return total


def plans() -> list[tuple[int, ...]]:
    """All sequences of three passes with stop after them: every plan that stops within four steps."""
    return [(*passes, STOP) for n in range(4) for passes in itertools.product((CANCEL, SWAP, EXPAND), repeat=n)]


@pytest.mark.parametrize("name", ["cost", "bytes"])
def test_a_return_changes_by_the_start_alone_when_the_episode_terminates(name: str) -> None:
    """The sum telescopes to -Phi(start), the same number for every plan, so no plan is preferred for it."""
    shaped = PotentialShaping(plain(), by_name(name), gamma=GAMMA)
    differences = {round(played(shaped, plan) - played(plain(), plan), 6) for plan in plans()}
    shaped.reset(seed=0)
    start = shaped.get_wrapper_attr("start_facts")
    assert differences == {round(-by_name(name)(start, start), 6)} == {0.0}
    assert by_name(name)(start, ToyCompiler().load("cbaba").facts) < 0.0, "not vacuous: a longer word is worth less"


def test_a_potential_that_starts_below_zero_pays_every_plan_the_same() -> None:
    def cost_itself(start: Facts, facts: Facts) -> float:
        return -100.0 * facts.cost.flops / start.cost.flops

    shaped = PotentialShaping(plain(), cost_itself, gamma=GAMMA)
    assert {round(played(shaped, plan) - played(plain(), plan), 6) for plan in plans()} == {100.0}


def test_the_best_plan_stays_the_best() -> None:
    shaped = PotentialShaping(plain(), by_name("cost"), gamma=GAMMA)
    best = max(plans(), key=lambda plan: played(plain(), plan))
    assert best == (EXPAND, SWAP, CANCEL, STOP), "known: the only way to empty the word"
    assert max(plans(), key=lambda plan: played(shaped, plan)) == best


def test_another_gamma_than_the_learners_would_change_it() -> None:
    """A control: with a strong potential and gamma 0 in place of .9, stopping at once becomes the best plan."""

    def strong(start: Facts, facts: Facts) -> float:
        return 1000.0 * facts.operations - 5000.0

    right = PotentialShaping(plain(), strong, gamma=GAMMA)
    wrong = PotentialShaping(plain(), strong, gamma=0.0)
    assert max(plans(), key=lambda plan: played(right, plan)) == (EXPAND, SWAP, CANCEL, STOP)
    assert max(plans(), key=lambda plan: played(wrong, plan)) != (EXPAND, SWAP, CANCEL, STOP)


def test_the_potential_is_zero_after_stop_and_not_after_the_horizon() -> None:
    """From "cc" to "baba" the bytes double, so that the potential is -100."""
    shaped = PotentialShaping(plain(max_steps=1), by_name("bytes"), gamma=GAMMA)
    shaped.reset(seed=0)
    _, reward, _, truncated, info = shaped.step(EXPAND)
    assert truncated
    assert reward == pytest.approx(info["unshaped_reward"] + GAMMA * -100.0)
    longer = PotentialShaping(plain(max_steps=2), by_name("bytes"), gamma=GAMMA)
    longer.reset(seed=0)
    longer.step(EXPAND)
    _, reward, terminated, _, info = longer.step(STOP)
    assert terminated
    assert info["unshaped_reward"] == 0.0
    assert reward == pytest.approx(0.0 - -100.0)


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(InputError, match="there is no potential 'luck': choose one of cost, bytes"):
        by_name("luck")
    with pytest.raises(InputError, match=r"gamma must lie between 0 and 1, not 1.5"):
        PotentialShaping(plain(), by_name("cost"), gamma=1.5)
