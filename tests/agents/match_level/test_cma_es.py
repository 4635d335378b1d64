"""Evolution in a toy dream whose best policy is known: it finds it, repeats itself, and can be resumed."""

from pathlib import Path

import numpy as np
import pytest
import torch
from support.kind_dream import KindDream

from rlflow.agents.match_level.cma_es import evolve
from rlflow.agents.match_level.linear_pointer import LinearPointer
from rlflow.agents.match_level.pointer_config import CmaEsConfig
from rlflow.agents.scores import mean_return
from rlflow.agents.selection import Selection, Trial

CONFIG = CmaEsConfig(generations=6, population=6, generations_per_trial=2)


class Interrupted(Exception):
    """Stands for a kill between two generations."""


def evolved(config: CmaEsConfig = CONFIG, *, seed: int = 0, **settings) -> LinearPointer:
    settings = {"fingerprint": "toy", **settings}
    return evolve(KindDream(), LinearPointer(2), config, seed=seed, **settings)


def same(one: LinearPointer, two: LinearPointer) -> bool:
    return all(torch.equal(value, two.state_dict()[name]) for name, value in one.state_dict().items())


def test_it_takes_the_two_kinds_that_pay_and_leaves_the_third():
    """The policy that it begins as takes the first kind that is there, which may be the one that costs."""
    dream = KindDream(num_envs=64, seed=7)

    def score(policy: LinearPointer) -> float:
        return mean_return(dream, lambda seen: policy.distribution(torch.from_numpy(seen)).mode().detach().numpy())

    found = evolved(CmaEsConfig(generations=25, population=12))
    assert score(LinearPointer(2)) < 1.0
    assert score(found) == pytest.approx(KindDream.BEST)
    assert found.kind[0] > 0


def test_the_same_seed_evolves_the_same_weights_and_leaves_numpys_generator_alone():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first, second, other = (evolved(seed=seed) for seed in (0, 0, 1))
    assert same(first, second)
    assert not same(first, other)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_every_generation_is_reported():
    reports: dict[int, dict[str, float]] = {}
    evolved(on_update=reports.__setitem__)
    assert sorted(reports) == [1, 2, 3, 4, 5, 6]
    for metrics in reports.values():
        assert metrics["return_percent"] <= metrics["best_return_percent"] <= KindDream.BEST
        assert metrics["sigma"] > 0


def test_the_best_snapshot_is_kept_also_after_an_interruption(tmp_path: Path):
    """Tried after generations 2, 4 and 6; the first trial scores best."""
    shown: list[dict[str, torch.Tensor]] = []

    def judge(policy: LinearPointer) -> Trial:
        shown.append({name: value.clone() for name, value in policy.state_dict().items()})
        return Trial(score_percent=-len(shown), rewrites=5)

    def interrupt(number: int, _: dict[str, float]) -> None:
        if number == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        evolved(checkpoint=tmp_path / "c", selection=Selection(judge), on_update=interrupt)
    selection = Selection[LinearPointer](judge)
    kept = evolved(checkpoint=tmp_path / "c", selection=selection).state_dict()
    matches = [all(torch.equal(kept[name], weights[name]) for name in kept) for weights in shown]
    assert matches == [True, False, False]
    assert selection.rewrites == 15
