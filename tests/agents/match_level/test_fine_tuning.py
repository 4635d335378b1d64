"""A policy that goes on learning: it repeats, learns what it is shown, and changes little where it need not."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from support.detours import ASTRAY, INTO, OUT, detour_process, detours, rules_astray, walked
from support.pointers import beginner
from support.taught import lessons_of, untaught

from rlflow.agents.match_level.fine_tuning import PracticeConfig, TuningConfig, fine_tuned, practised
from rlflow.agents.match_level.guided_chains import ChainConfig
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.agents.token_collection import TokenCollectionConfig
from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.match_level.expert_metrics import auc
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig

RULES = rules_astray()
CONFIG = TuningConfig(encoder_epochs=300, encoder_learning_rate=1e-2)


@pytest.fixture(scope="module")
def policy() -> TaughtGuide:
    shares = {RULES.get(OUT).id: 0.25, RULES.get(ASTRAY[0]).id: 0.5, "another": 0.75}
    return TaughtGuide(untaught(detour_process(1, RULES)), ChainConfig(length=3), {"lessons": 7}, shares)


@pytest.fixture(scope="module")
def lesson() -> TokenRollouts:
    return lessons_of(detour_process(1, RULES), [walked(detours(1), (OUT, INTO), RULES)])


def told(policy: TaughtGuide, lesson: TokenRollouts) -> float:
    return auc(lesson.episodes[0], policy.model.read(lesson).taken.numpy())


def test_it_learns_what_it_is_shown(policy: TaughtGuide, lesson: TokenRollouts):
    assert told(policy, lesson) < 0.9, "there is something to learn"
    assert told(fine_tuned(policy, [lesson], CONFIG, seed=0), lesson) == 1.0


def test_the_rest_of_the_policy_stays(policy: TaughtGuide, lesson: TokenRollouts):
    """Its settings of chains, its controller, its sizes, and what it was trained on before."""
    controller = beginner(policy.model)
    tuned = fine_tuned(replace(policy, controller=controller), [lesson], CONFIG, seed=0)
    assert tuned.controller is controller
    assert tuned.chains == policy.chains
    assert tuned.trained_on == {"lessons": 7, "tuned_on": ["taught"]}
    assert tuned.model.arguments.config.encoder_width == policy.model.arguments.config.encoder_width
    assert fine_tuned(tuned, [lesson], CONFIG, seed=0).trained_on["tuned_on"] == ["taught", "taught"]


def test_the_controller_goes_on_in_the_dream_of_graphs(policy: TaughtGuide):
    """From its own weights on, while V stays: a training of no length changes nothing, and one repeats to the bit."""
    known = replace(policy, controller=beginner(policy.model))
    processes = {"detours": detour_process(1, RULES)}
    steps = list[tuple[float, str]]()

    def after(total_steps: int) -> TaughtGuide:
        ppo = MatchLevelControllerConfig(width=8, total_steps=total_steps, steps_per_update=4, batch_size=16)
        dream = MatchLevelDreamConfig(num_envs=4, max_kinds=8, max_steps=4)
        config = PracticeConfig(TokenCollectionConfig(episodes=6, steps=4), epochs=1, dream=dream, ppo=ppo)
        told = partial(practised, known, processes, config, seed=0, library_hash="rules")
        return told(on_step=lambda fraction, text: steps.append((fraction, text)))

    same, once, again = after(0), after(64), after(64)
    weights = [one.controller.policy.state_dict() for one in (known, same, once, again) if one.controller]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert all(torch.equal(weights[2][name], weights[3][name]) for name in weights[0])
    assert any(not torch.equal(weights[0][name], weights[2][name]) for name in weights[0])
    assert once.model is policy.model
    assert [fraction for fraction, _ in steps[-10:]] == sorted(fraction for fraction, _ in steps[-10:])
    assert steps[-1] == (1.0, "update 4 of 4 in the dream")


def test_a_rule_keeps_the_greater_share(policy: TaughtGuide, lesson: TokenRollouts):
    """Of what was taken before, or in the new lesson, in which the expert took every match of the way out."""
    shares = fine_tuned(policy, [lesson], CONFIG, seed=0).shares
    assert shares[RULES.get(OUT).id] == shares[RULES.get(INTO).id] == 1.0
    assert (shares[RULES.get(ASTRAY[0]).id], shares["another"]) == (0.5, 0.75)


@pytest.mark.slow
def test_the_same_lessons_give_the_same_policy(policy: TaughtGuide, lesson: TokenRollouts):
    one, again, other = (
        fine_tuned(policy, [lesson], CONFIG, seed=seed).model.encoder.state_dict() for seed in (0, 0, 1)
    )
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_it_begins_where_the_policy_was(policy: TaughtGuide, lesson: TokenRollouts):
    """Steps of no size change nothing; what is given is not changed by those that have one."""
    before = {name: value.clone() for name, value in policy.model.encoder.state_dict().items()}
    still = fine_tuned(policy, [lesson], TuningConfig(1, 0.0, 1, 0.0), seed=0)
    fine_tuned(policy, [lesson], CONFIG, seed=0)
    for name, value in before.items():
        assert torch.equal(value, policy.model.encoder.state_dict()[name])
        assert torch.equal(value, still.model.encoder.state_dict()[name])


def test_lessons_in_another_vocabulary_are_refused(policy: TaughtGuide, lesson: TokenRollouts):
    operators = (*lesson.vocabulary.operators, "Whirl")
    other = replace(lesson, vocabulary=replace(lesson.vocabulary, operators=operators))
    with pytest.raises(InputError, match="vocabular"):
        fine_tuned(policy, [other], CONFIG, seed=0)
