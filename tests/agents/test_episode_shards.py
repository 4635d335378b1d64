"""Episodes that several workers keep in one folder: each is there as a whole or not at all."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.random_token_rollouts import random_rollouts

from rlflow.agents.episode_shards import Collected, EpisodeShards, put_together
from rlflow.representation.token_archive import save
from rlflow.representation.token_rollouts import TokenRollouts

RUN = {"seed": 0}
NOTHING = replace(random_rollouts(0), tokens=(), rule_of=(), episodes=())
FILES = ("token_rollouts.npz", "token_rollouts.json", "effort.json")


def played(seed: int) -> Collected:
    return Collected(random_rollouts(seed, episodes=1), rewrites=10 + seed, seconds=0.5)


def archive(rollouts: TokenRollouts, folder: Path) -> list[bytes]:
    save(rollouts, folder)
    return [(folder / name).read_bytes() for name in FILES[:2]]


def test_what_is_kept_is_found_by_others(tmp_path: Path):
    one, other = (EpisodeShards.of(tmp_path / "kept", RUN, NOTHING) for _ in range(2))
    one.keep(3, played(3))
    found = other.find(3)
    assert found is not None
    assert (found.rewrites, found.seconds) == (13, 0.5)
    assert archive(found.rollouts, tmp_path / "a") == archive(played(3).rollouts, tmp_path / "b")
    assert other.find(2) is None


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("broken", [True, False])
def test_an_episode_that_is_not_whole_is_not_found(tmp_path: Path, name: str, broken: bool):
    shards = EpisodeShards.of(tmp_path, RUN, NOTHING)
    shards.keep(0, played(0))
    shards.keep(1, played(1))
    file = tmp_path / "episode-1" / name
    file.write_bytes(b"half") if broken else file.unlink()
    assert shards.find(1) is None
    assert shards.find(0) is not None


def test_episodes_of_another_run_are_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Of other settings, rules or graphs; those of the same run stay."""
    other_runs = [({"seed": 1}, NOTHING), (RUN, replace(NOTHING, library_hash="other"))]
    for run, nothing in [*other_runs, (RUN, replace(NOTHING, graphs=("another",)))]:
        EpisodeShards.of(tmp_path, RUN, NOTHING).keep(0, played(0))
        assert EpisodeShards.of(tmp_path, RUN, NOTHING).find(0) is not None
        assert EpisodeShards.of(tmp_path, run, nothing).find(0) is None
    assert caplog.text.count("starting afresh") == 5, "three times, and twice when the first run came again"


def test_parts_are_put_together_in_turn():
    parts = [played(seed) for seed in range(3)]
    together = put_together([Collected(NOTHING, 0, 0.0), *parts])
    costs = [[state.cost for state in one.states] for one in together.rollouts.episodes]
    assert costs == [[state.cost for state in part.rollouts.episodes[0].states] for part in parts]
    assert (together.rewrites, together.seconds) == (33, 1.5)
