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
from support.world_models import SMALL, assert_same

from rlflow.errors import InputError
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.pooled.model import WorldModel
from rlflow.world_model.pooled.trainer import fit_world_model


class Interrupted(Exception):
    """Stands for a kill between two epochs."""


def test_every_parameter_of_v_and_m_is_trained(rollouts: Rollouts, world_model: WorldModel) -> None:
    """The prototypes' encoder was outside the tape and never moved. Against a run without a gradient step."""
    untrained = fit_world_model(rollouts, replace(SMALL, encoder_epochs=0, epochs=0), seed=0)
    before, after = dict(untrained.named_parameters()), dict(world_model.named_parameters())
    assert {name for name in after if torch.equal(before[name], after[name])} == set()


def test_the_same_seed_gives_the_same_weights(rollouts: Rollouts, world_model: WorldModel) -> None:
    torch.rand(3)  # torch's global state must not matter
    assert_same(fit_world_model(rollouts, SMALL, seed=0), world_model)
    other = fit_world_model(rollouts, SMALL, seed=1)
    assert not torch.equal(other.memory.lstm.weight_ih, world_model.memory.lstm.weight_ih)


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
        from rlflow.world_model.pooled.trainer import fit_world_model
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


def test_rollouts_without_a_step_are_refused(rollouts: Rollouts) -> None:
    with pytest.raises(InputError, match="collect_rollouts"):
        fit_world_model(replace(rollouts, episodes=()), SMALL, seed=0)
