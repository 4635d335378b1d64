"""A lesson teaches the same each time, from starts that compute the same, and says what the expert did."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.detours import COST, detours, rules_astray
from support.rewrites import assert_same_outputs
from support.token_worlds import small_graph
from support.walks import LIBRARY

from rlflow.agents.match_level.lessons import Expert, Lesson, Start, Taught, started, teach
from rlflow.agents.token_collection import TokenCollectionConfig
from rlflow.errors import InputError
from rlflow.ir import structural_hash, validate
from rlflow.ir.graph import Graph
from rlflow.method import Budget
from rlflow.representation.token_archive import save
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy

CHAINS = Expert("chains", {"depth": 2, "width": 2})
SATURATION = Expert("equality_saturation", {"exploration": {"slack_us": None}, "limits": {"time_s": None, "nodes": 20}})
MERGED = Start(merged_by=("merge-3-linears", "merge-3-matmuls"))


def taught(lesson: Lesson, graph: Graph | None = None) -> Taught:
    return teach(lesson, graph or detours(2), rules_astray(), COST)


def files(lesson: Lesson, folder: Path) -> list[bytes]:
    save(taught(lesson).rollouts, folder)
    return [(folder / name).read_bytes() for name in ("token_rollouts.npz", "token_rollouts.json")]


@pytest.mark.parametrize("expert", [CHAINS, SATURATION], ids=["chains", "equality_saturation"])
def test_the_expert_s_steps_are_what_is_taught(expert: Expert):
    """Out and into the weight, in two places; greedy search finds none of it."""
    greedy = Greedy(rules_astray(), Rewriter(rules_astray().rules), COST).optimise(detours(2), Budget())
    lesson = taught(Lesson("detours", expert=expert))
    assert lesson.found.improvement_percent > greedy.improvement_percent + 5
    (episode,) = lesson.rollouts.episodes
    assert episode.num_steps == len(lesson.found.trajectory.steps) == 4
    assert [step.reward for step in episode.steps] == pytest.approx(
        [step.reward for step in lesson.found.trajectory.steps]
    )
    assert episode.demonstration is not None
    assert episode.demonstration.gain[0].max() > 0
    assert lesson.rollouts.graphs == ("detours",)
    assert lesson.rollouts.library_hash == rules_astray().hash
    assert lesson.rewrites > lesson.found.effort.rewrites


def test_the_same_lesson_gives_the_same_files(tmp_path: Path):
    lesson = Lesson("detours", Start(walked=3, seed=1), CHAINS, play=TokenCollectionConfig(episodes=2, steps=3))
    assert files(lesson, tmp_path / "one") == files(lesson, tmp_path / "again")
    assert files(replace(lesson, start=Start(walked=3, seed=5)), tmp_path / "other") != files(lesson, tmp_path / "one")
    assert files(replace(lesson, seed=1), tmp_path / "played") != files(lesson, tmp_path / "one")


def test_what_is_played_beside_the_expert_comes_after_him():
    lesson = taught(Lesson("detours", expert=CHAINS, play=TokenCollectionConfig(episodes=3, steps=2)))
    shown, *played = lesson.rollouts.episodes
    assert len(played) == 3
    assert shown.demonstration is not None
    assert all(episode.demonstration is None for episode in played)
    assert {episode.graph for episode in lesson.rollouts.episodes} == {0}


def test_an_expert_who_finds_nothing_teaches_to_take_nothing():
    nothing = rules_astray().select([rules_astray().rules[0].id])
    lesson = teach(Lesson("detours", expert=CHAINS), detours(1), nothing, COST)
    (episode,) = lesson.rollouts.episodes
    assert episode.num_steps == 0
    assert episode.demonstration is not None
    assert not np.concatenate(episode.demonstration.taken).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "start",
    [Start(), MERGED, Start(walked=6, seed=1), replace(MERGED, walked=4)],
    ids=["plain", "merged", "walked", "both"],
)
def test_every_start_computes_the_same(start: Start):
    graph = small_graph("bert")
    found = started(graph, start, LIBRARY)
    validate(found)
    assert (structural_hash(found) == structural_hash(graph)) == (start == Start())
    assert_same_outputs(graph, found, np.random.default_rng(0))
    assert structural_hash(started(graph, start, LIBRARY)) == structural_hash(found)


def test_rules_merge_as_long_as_they_can():
    """Nothing is left to be merged, where there was something before."""
    rewriter = Rewriter([LIBRARY.get(name) for name in MERGED.merged_by])
    graph = small_graph("bert")
    assert any(map(len, rewriter.matches(graph)))
    assert not any(map(len, rewriter.matches(started(graph, MERGED, LIBRARY))))


def test_a_start_is_as_good_as_new():
    """It has no memory of how it came about, so that nothing in it counts as changed last."""
    assert started(small_graph("bert"), MERGED, LIBRARY).edit is None


@pytest.mark.parametrize(
    ("lesson", "message"),
    [
        (Lesson("x", expert=Expert("oracle")), "there is no expert 'oracle': choose one of greedy"),
        (Lesson("x", expert=Expert("chains", {"breadth": 1})), "the expert chains cannot be made"),
        (Lesson("x", Start(merged_by=("no-such-rule",))), "no-such-rule"),
    ],
)
def test_lessons_that_cannot_be_held_are_refused(lesson: Lesson, message: str):
    with pytest.raises(InputError, match=message):
        taught(lesson)
