"""The fit trains all it should, on what it should, and is the same run whatever interrupts it."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
import torch
from support.world_models import SMALL

from rlflow.errors import InputError
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.dataset import split_episodes
from rlflow.world_model.model import WorldModel
from rlflow.world_model.optimisation import polynomial_decay
from rlflow.world_model.trainer import fit_world_model


class Interrupted(Exception):
    """Stands for a kill between two epochs."""


def weights(model: WorldModel) -> dict[str, torch.Tensor]:
    return dict(model.state_dict())


def assert_same(one: WorldModel, two: WorldModel) -> None:
    for name, value in weights(one).items():
        assert torch.equal(value, weights(two)[name]), name


def test_every_parameter_of_v_and_m_is_trained(rollouts: Rollouts, world_model: WorldModel) -> None:
    """The prototypes' encoder was outside the tape and never moved. Against a run without a gradient step."""
    untrained = fit_world_model(rollouts, replace(SMALL, encoder_epochs=0, epochs=0), seed=0)
    before, after = dict(untrained.named_parameters()), dict(world_model.named_parameters())
    assert {name for name in after if torch.equal(before[name], after[name])} == set()


def test_v_learns_to_tell_graphs_apart(rollouts: Rollouts) -> None:
    metrics: list[dict[str, float]] = []
    config = replace(SMALL, encoder_epochs=6, encoder_steps=50, epochs=0)
    fit_world_model(rollouts, config, seed=0, on_epoch=lambda _, values: metrics.append(values))
    assert metrics[-1]["encoder/loss"] < 0.5 * metrics[0]["encoder/loss"]


def test_no_dimension_of_z_collapses(rollouts: Rollouts, world_model: WorldModel) -> None:
    z = world_model.encoder.encode(rollouts.graphs)
    torch.testing.assert_close(z.var(dim=0, correction=0), torch.ones(z.shape[1]), atol=1e-3, rtol=0)


def test_losses_fall_also_on_held_out_episodes(rollouts: Rollouts) -> None:
    metrics: list[dict[str, float]] = []
    fit_world_model(rollouts, SMALL, seed=0, on_epoch=lambda _, values: metrics.append(values))
    assert [set(values) for values in metrics[:2]] == [{"encoder/loss"}] * 2
    assert metrics[-1]["memory/loss"] < metrics[2]["memory/loss"]
    assert metrics[-1]["held_out/loss"] < metrics[2]["held_out/loss"]


def test_the_same_seed_gives_the_same_weights(rollouts: Rollouts, world_model: WorldModel) -> None:
    torch.rand(3)  # torch's global state must not matter
    assert_same(fit_world_model(rollouts, SMALL, seed=0), world_model)
    other = fit_world_model(rollouts, SMALL, seed=1)
    assert not torch.equal(other.memory.lstm.weight_ih, world_model.memory.lstm.weight_ih)


def test_held_out_episodes_are_never_trained_on(rollouts: Rollouts, world_model: WorldModel) -> None:
    """Another reward in them changes no weight; another reward in a training episode does."""
    training, held_out = split_episodes(len(rollouts.episodes), SMALL.held_out_fraction, 0)

    def with_reward(index: int) -> Rollouts:
        changed = replace(rollouts.episodes[index], reward=rollouts.episodes[index].reward + 5)
        episodes = (*rollouts.episodes[:index], changed, *rollouts.episodes[index + 1 :])
        return replace(rollouts, episodes=episodes)

    assert_same(fit_world_model(with_reward(held_out[0]), SMALL, seed=0), world_model)
    moved = fit_world_model(with_reward(training[0]), SMALL, seed=0)
    assert not torch.equal(moved.memory.reward_mean, world_model.memory.reward_mean)


@pytest.mark.parametrize("last_epoch", [0, 1, 4])  # in V, between V and M, in M
def test_an_interrupted_fit_goes_on_to_the_same_weights(
    rollouts: Rollouts, world_model: WorldModel, tmp_path: Path, last_epoch: int
) -> None:
    checkpoint, epochs = tmp_path / "fit.checkpoint", []

    def interrupt(epoch: int, _: dict[str, float]) -> None:
        if epoch == last_epoch:
            raise Interrupted

    with pytest.raises(Interrupted):
        fit_world_model(rollouts, SMALL, seed=0, checkpoint=checkpoint, on_epoch=interrupt)
    resumed = fit_world_model(
        rollouts, SMALL, seed=0, checkpoint=checkpoint, on_epoch=lambda epoch, _: epochs.append(epoch)
    )
    assert epochs[0] == last_epoch + 1
    assert_same(resumed, world_model)


def test_a_checkpoint_of_another_run_is_not_continued(rollouts: Rollouts, tmp_path: Path) -> None:
    checkpoint, short = tmp_path / "fit.checkpoint", replace(SMALL, epochs=1)
    fit_world_model(rollouts, short, seed=0, checkpoint=checkpoint)
    for data, config, seed in (
        (rollouts, short, 1),
        (rollouts, replace(short, learning_rate=1e-4), 0),
        (replace(rollouts, episodes=rollouts.episodes[:-1]), short, 0),
    ):
        metrics: dict[int, dict[str, float]] = {}
        fit_world_model(data, config, seed=seed, checkpoint=checkpoint, on_epoch=metrics.__setitem__)
        assert min(metrics) == 0
        fit_world_model(rollouts, short, seed=0, checkpoint=checkpoint)


@pytest.mark.slow
def test_a_killed_process_leaves_a_whole_checkpoint(
    rollouts: Rollouts, world_model: WorldModel, tmp_path: Path
) -> None:
    """kill -9 from outside, at whatever line it hits, then the same weights as without it."""
    rollouts.save(tmp_path)
    script = """
        import sys, torch
        from pathlib import Path
        from support.world_models import SMALL
        from rlflow.representation.rollouts import Rollouts
        from rlflow.world_model.trainer import fit_world_model
        torch.set_num_threads(1)
        folder = Path(sys.argv[1])
        report = lambda epoch, _: print(epoch, flush=True)
        fit_world_model(Rollouts.load(folder), SMALL, seed=0, checkpoint=folder / "c", on_epoch=report)
    """
    paths = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.Popen(
        [sys.executable, "-c", dedent(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            if int(line) == 3:
                process.send_signal(signal.SIGKILL)
                break
    assert process.wait() == -signal.SIGKILL
    epochs: list[int] = []
    resumed = fit_world_model(
        rollouts, SMALL, seed=0, checkpoint=tmp_path / "c", on_epoch=lambda epoch, _: epochs.append(epoch)
    )
    assert epochs[0] >= 4
    assert_same(resumed, world_model)


def test_the_learning_rate_decays_with_power_two() -> None:
    assert [polynomial_decay(progress) for progress in (0.0, 0.5, 1.0)] == [1.0, 0.25, 0.0]


def test_rollouts_without_a_step_are_refused(rollouts: Rollouts) -> None:
    with pytest.raises(InputError, match="collect_rollouts"):
        fit_world_model(replace(rollouts, episodes=()), SMALL, seed=0)
