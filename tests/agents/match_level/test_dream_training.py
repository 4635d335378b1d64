"""Both trainings in a dream that was written down by hand: they repeat themselves, are scored, and can be judged."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.token_dreams import EMBEDDING, Entry, Set, memory, precomputed, stacked, state

from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.dream_training import MatchLevelDream, dream_score, train_in_dream, untrained
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig
from rlflow.agents.selection import Trial
from rlflow.representation.vocabulary import PADDING, Vocabulary
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig, MatchLevelModelConfig
from rlflow.world_model.match_level.model import MatchLevelModel, MatchLevelModelArguments
from rlflow.world_model.match_level.starts import TokenStarts

A, B, C = range(3)
PPO = MatchLevelControllerConfig(
    total_steps=128, steps_per_update=4, batch_size=32, epochs=1, width=8, updates_per_trial=2
)
CMA_ES = CmaEsConfig(generations=4, population=4, generations_per_trial=2)
CONFIGS = pytest.mark.parametrize("config", [PPO, CMA_ES], ids=["ppo", "cma_es"])


@pytest.fixture(scope="module")
def dream() -> MatchLevelDream:
    """Taking A costs one percent and bears B, which pays three; C only costs."""
    arguments = MatchLevelModelArguments(
        Vocabulary((PADDING, "Relu"), ("size",)),
        "library",
        MatchLevelModelConfig(encoder_width=EMBEDDING, metric_width=1, survival_width=1),
    )
    model = MatchLevelModel(arguments)
    model.memory = memory()
    starts = stacked([state([(A, 1), (C, 2)], 4), state([(C, 1), (A, 1)], 4)])
    known = precomputed({A: [Set([Entry(B)])]}, [-0.88, 1.82, -0.88])
    return MatchLevelDream(
        model,
        known,
        TokenStarts(starts, torch.ones(2, dtype=torch.bool)),
        MatchLevelDreamConfig(num_envs=8, max_kinds=4, max_steps=4),
    )


@CONFIGS
def test_the_same_seed_trains_the_same_controller(
    dream: MatchLevelDream, config: MatchLevelControllerConfig | CmaEsConfig, tmp_path: Path
):
    first, second, other = (train_in_dream(dream, config, seed=seed) for seed in (0, 0, 1))
    for name, training in (("first", first), ("second", second), ("other", other)):
        training.controller.save(tmp_path / name)
    weights = [(tmp_path / name / "controller.safetensors").read_bytes() for name in ("first", "second", "other")]
    assert weights[0] == weights[1] != weights[2]
    assert first.score_percent == second.score_percent == dream_score(dream, first.controller, seed=0)
    assert first.rewrites == 0
    loaded = MatchLevelController.load(tmp_path / "first")
    assert (loaded.arguments.embedding, loaded.arguments.library_hash) == (EMBEDDING, "library")
    assert dream_score(dream, loaded, seed=0) == first.score_percent


@CONFIGS
def test_an_interrupted_training_goes_on_to_the_same_score(
    dream: MatchLevelDream, config: MatchLevelControllerConfig | CmaEsConfig, tmp_path: Path
):
    class Interrupted(Exception):
        """Stands for a kill."""

    def interrupt(number: int, _: dict[str, float]) -> None:
        if number == 2:
            raise Interrupted

    rounds: list[int] = []
    whole = train_in_dream(dream, config, seed=0)
    with pytest.raises(Interrupted):
        train_in_dream(dream, config, seed=0, checkpoint=tmp_path / "c", on_round=interrupt)
    resumed = train_in_dream(
        dream, config, seed=0, checkpoint=tmp_path / "c", on_round=lambda number, _: rounds.append(number)
    )
    assert rounds == [3, 4]
    kept, expected = (one.controller.policy.state_dict() for one in (resumed, whole))
    assert all(torch.equal(value, expected[name]) for name, value in kept.items())


@CONFIGS
def test_the_judge_tries_controllers_and_its_choice_is_kept(
    dream: MatchLevelDream, config: MatchLevelControllerConfig | CmaEsConfig
):
    """Two trials; the first scores best."""
    shown: list[dict[str, torch.Tensor]] = []

    def judge(controller: MatchLevelController) -> Trial:
        shown.append({name: value.clone() for name, value in controller.policy.state_dict().items()})
        return Trial(-len(shown), rewrites=3)

    chosen = train_in_dream(dream, config, seed=0, judge=judge)
    kept = chosen.controller.policy.state_dict()
    assert [all(torch.equal(kept[name], weights[name]) for name in kept) for weights in shown] == [True, False]
    assert chosen.rewrites == 6


@pytest.mark.parametrize(
    "config",
    [
        replace(PPO, total_steps=3000, steps_per_update=16, batch_size=64, epochs=3, terminate_bias=-1.0),
        replace(CMA_ES, generations=20, population=10, initial_sigma=1.0),
    ],
    ids=["ppo", "cma_es"],
)
def test_a_loss_is_taken_that_leads_to_a_gain(dream: MatchLevelDream, config: MatchLevelControllerConfig | CmaEsConfig):
    """A, then B, then terminate: sinh(1.82) - sinh(0.88). Greedy would not begin."""
    training = train_in_dream(dream, config, seed=0)
    assert training.score_percent == pytest.approx(3.005 - 0.998, abs=0.01)
    assert training.untrained_percent < 1.0


def test_the_untrained_controller_is_the_same_each_time_and_does_not_disturb_torch(dream: MatchLevelDream):
    arguments = train_in_dream(dream, PPO, seed=0).controller.arguments
    state_before = torch.get_rng_state()
    first, second = (untrained(arguments, seed=0).policy.state_dict() for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state_before)
    assert all(torch.equal(value, second[name]) for name, value in first.items())
