"""Practice plays the same for a seed, is kept and read again, and is wanted before C is trained."""

from pathlib import Path

import numpy as np
import pytest
from studies.policy.controller import practised
from studies.policy.practice import Practice
from support.taught import untaught
from support.token_worlds import small_process
from support.walks import LIBRARY

from rlflow.agents.match_level.lesson_files import Subject
from rlflow.agents.token_collection import TokenCollectionConfig
from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenRollouts

PLAY = TokenCollectionConfig(episodes=2, steps=3, from_start=1.0)
COST = {"kind": "analytic"}
SUBJECTS = {
    name: Subject({"kind": "zoo", "entry": name, "settings": {}}, COST) for name in ("tiny_merge", "tiny_chain")
}


def practice(seed: int = 0) -> Practice:
    return Practice(untaught(small_process()), LIBRARY, PLAY, seed)


def told(rollouts: TokenRollouts) -> list[object]:
    """All that rollouts say, as plain values; a number that nobody has measured is NaN, which is told by its name."""
    steps = [vars(record) for one in rollouts.episodes for record in (*one.states, *one.steps)]
    plain = [[repr(np.asarray(value).tolist()) for value in record.values()] for record in steps]
    return [[token.key for token in rollouts.tokens], plain]


def test_a_seed_gives_the_same_practice():
    subject = SUBJECTS["tiny_merge"]
    one, again, other = (practice(seed).collect("tiny_merge", subject).rollouts for seed in (0, 0, 1))
    assert one.graphs == ("tiny_merge",)
    assert len(one.episodes) == PLAY.episodes
    assert told(one) == told(again)
    assert told(one) != told(other)


def test_what_is_kept_is_not_played_again_and_is_put_together(tmp_path: Path):
    figures = {name: practice().keep(name, subject, tmp_path) for name, subject in SUBJECTS.items()}
    assert figures["tiny_merge"]["improvement_percent"] > 0
    assert practice().keep("tiny_merge", SUBJECTS["tiny_merge"], tmp_path) == figures["tiny_merge"], "with its seconds"
    rollouts = practised(tmp_path)
    assert rollouts.graphs == ("tiny_chain", "tiny_merge")
    assert rollouts.num_steps == sum(figure["steps"] for figure in figures.values())


def test_without_practice_no_controller_is_trained(tmp_path: Path):
    with pytest.raises(InputError, match=r"there is no practice in .*: play some with `make study NAME=policy`"):
        practised(tmp_path)
