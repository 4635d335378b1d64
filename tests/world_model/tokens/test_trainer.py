"""The fit trains all it should, is the same run whatever interrupts it, and learns more than means of rules."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
import torch
from support.token_worlds import SMALL

from rlflow.errors import InputError
from rlflow.representation.token_archive import save
from rlflow.representation.token_rollouts import Demonstration, TokenRollouts
from rlflow.world_model.held_out import split_episodes
from rlflow.world_model.tokens.diagnostics import by_rule, rule_means, saving_report, savings
from rlflow.world_model.tokens.model import TokenWorldModel
from rlflow.world_model.tokens.trainer import fit_token_model


class Interrupted(Exception):
    """Stands for a kill between two epochs."""


def assert_same(one: TokenWorldModel, other: TokenWorldModel) -> None:
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


def demonstrated(rollouts: TokenRollouts) -> TokenRollouts:
    """The same episodes, as if an expert had played them who wants every other kind."""
    episodes = []
    for episode in rollouts.episodes:
        taken = tuple((state.token % 2).astype(np.float32) for state in episode.states)
        demonstration = Demonstration(taken, tuple(3.0 * of_kinds for of_kinds in taken))
        episodes.append(replace(episode, demonstration=demonstration))
    return replace(rollouts, episodes=tuple(episodes))


def test_every_parameter_of_v_and_m_is_trained(token_rollouts: TokenRollouts):
    """Against a run without a gradient step."""
    rollouts = demonstrated(token_rollouts)
    untrained = fit_token_model(rollouts, replace(SMALL, encoder_epochs=0, epochs=0), seed=0)
    before = dict(untrained.named_parameters())
    after = dict(fit_token_model(rollouts, SMALL, seed=0).named_parameters())
    assert {name for name in after if torch.equal(before[name], after[name])} == set()
    assert not any(parameter.requires_grad for parameter in after.values())


def test_the_same_seed_gives_the_same_weights(token_rollouts: TokenRollouts, token_model: TokenWorldModel):
    torch.rand(3)  # torch's global state must not matter
    assert_same(fit_token_model(token_rollouts, SMALL, seed=0), token_model)
    other = fit_token_model(token_rollouts, SMALL, seed=1)
    assert not torch.equal(other.memory.metric.weight, token_model.memory.metric.weight)


@pytest.mark.parametrize("last_epoch", [0, 2, 4, 5])  # in V, between V and M, in M, after all
def test_an_interrupted_fit_goes_on_to_the_same_weights(
    token_rollouts: TokenRollouts, token_model: TokenWorldModel, tmp_path: Path, last_epoch: int
):
    checkpoint, epochs = tmp_path / "fit.checkpoint", list[int]()

    def interrupt(epoch: int, _: dict[str, float]) -> None:
        if epoch == last_epoch:
            raise Interrupted

    with pytest.raises(Interrupted):
        fit_token_model(token_rollouts, SMALL, seed=0, checkpoint=checkpoint, on_epoch=interrupt)
    resumed = fit_token_model(
        token_rollouts, SMALL, seed=0, checkpoint=checkpoint, on_epoch=lambda epoch, _: epochs.append(epoch)
    )
    assert epochs == list(range(last_epoch + 1, SMALL.encoder_epochs + SMALL.epochs))
    assert_same(resumed, token_model)


def test_a_checkpoint_of_another_run_is_not_continued(token_rollouts: TokenRollouts, tmp_path: Path):
    """Of other episodes, distances, units or settings, of another seed, or one with demonstrations."""
    checkpoint, short = tmp_path / "fit.checkpoint", replace(SMALL, encoder_epochs=1, epochs=1)
    first, *others = token_rollouts.episodes
    dearer = replace(first, unit_percent=2 * first.unit_percent)
    step = replace(first.steps[0], distance=first.steps[0].distance * 0)
    nearer = replace(first, steps=(step, *first.steps[1:]))
    for data, config, seed in (
        (token_rollouts, short, 1),
        (token_rollouts, replace(short, learning_rate=1e-4), 0),
        (replace(token_rollouts, episodes=tuple(others)), short, 0),
        (replace(token_rollouts, episodes=(dearer, *others)), short, 0),
        (replace(token_rollouts, episodes=(nearer, *others)), short, 0),
        (demonstrated(token_rollouts), short, 0),
    ):
        fit_token_model(token_rollouts, short, seed=0, checkpoint=checkpoint)
        metrics: dict[int, dict[str, float]] = {}
        fit_token_model(data, config, seed=seed, checkpoint=checkpoint, on_epoch=metrics.__setitem__)
        assert min(metrics) == 0


@pytest.mark.slow
def test_a_killed_process_leaves_a_whole_checkpoint(
    token_rollouts: TokenRollouts, token_model: TokenWorldModel, tmp_path: Path
):
    save(token_rollouts, tmp_path)
    script = """
        import sys
        import torch
        from pathlib import Path
        from support.token_worlds import SMALL
        from rlflow.representation.token_archive import load
        from rlflow.world_model.tokens.trainer import fit_token_model
        torch.set_num_threads(1)
        folder = Path(sys.argv[1])
        report = lambda epoch, _: print(epoch, flush=True)
        fit_token_model(load(folder), SMALL, seed=0, checkpoint=folder / "c", on_epoch=report)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", dedent(script), str(tmp_path)], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            if int(line) == 3:
                process.send_signal(signal.SIGKILL)
                break
    assert process.wait() == -signal.SIGKILL
    epochs: list[int] = []
    resumed = fit_token_model(
        token_rollouts, SMALL, seed=0, checkpoint=tmp_path / "c", on_epoch=lambda epoch, _: epochs.append(epoch)
    )
    assert not epochs or epochs[0] >= 4
    assert_same(resumed, token_model)


def test_rollouts_without_a_step_are_refused(token_rollouts: TokenRollouts):
    """Also where all steps are held out."""
    with pytest.raises(InputError, match="collect_rollouts"):
        fit_token_model(replace(token_rollouts, episodes=()), SMALL, seed=0)
    (training,), (held_out,) = split_episodes(range(2), 0.5, seed=0)
    episodes = [token_rollouts.episodes[0]] * 2
    episodes[training] = replace(episodes[0], states=episodes[0].states[:1], steps=())
    with pytest.raises(InputError, match="no step to fit it on"):
        fit_token_model(
            replace(token_rollouts, episodes=tuple(episodes)), replace(SMALL, held_out_fraction=0.5), seed=0
        )
    assert episodes[held_out].num_steps > 0


def test_the_fit_learns_more_than_means_of_rules(token_rollouts: TokenRollouts):
    """On episodes that were held out. Losses go down on the way."""
    metrics: dict[int, dict[str, float]] = {}
    config = replace(SMALL, encoder_width=24, encoder_layers=3, encoder_epochs=15, encoder_batch=32)
    model = fit_token_model(token_rollouts, config, seed=0, on_epoch=metrics.__setitem__)
    assert metrics[14]["encoder/saving"] < metrics[0]["encoder/saving"] / 4
    assert metrics[17]["memory/births"] < metrics[15]["memory/births"]
    training, held_out = split_episodes(token_rollouts.episodes, config.held_out_fraction, 0)
    means = by_rule(token_rollouts.rule_of, rule_means(token_rollouts, training))
    report = saving_report(held_out, token_rollouts.rule_of, savings(model.read(token_rollouts)), means)
    assert 1 - report["r2"] < (1 - report["r2_rule_mean"]) / 4
    assert report["regret_1"] < report["regret_1_rule_mean"] < report["regret_1_random"]
    assert report["within_rule"] > 0.9


def test_a_model_can_be_fitted_without_held_out_episodes(token_rollouts: TokenRollouts):
    """Its sigmas are left as they are."""
    config = replace(SMALL, encoder_epochs=1, epochs=1, held_out_fraction=0.0)
    assert fit_token_model(token_rollouts, config, seed=0).encoder.sigma_factor == 1
