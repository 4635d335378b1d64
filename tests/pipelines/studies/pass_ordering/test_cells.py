"""Cells of the study, on the toy compiler in a process of its own."""

import json
from pathlib import Path

import pytest
from msgspec import convert
from studies.pass_ordering.cells import (
    AgentCell,
    BaselineCell,
    ChanceCell,
    Compiler,
    CoreSetCell,
    CoreSetConfig,
    Effort,
    TimedCell,
)
from studies.pass_ordering.rows import Outcome, Row
from support.pass_agents import EPISODE, SETTINGS, SMALL
from support.toy_compiler import announce

from rlflow.passes.agents.pass_agent_config import PassAgentConfig
from rlflow.passes.agents.playing import PlayConfig
from rlflow.passes.environment.rewards import TimingConfig
from rlflow.schemas import plain

EFFORT = Effort(max_passes=6, beam_width=2, random_episodes=3, play=PlayConfig(episodes=3))
HELD_OUT = ("cc", "ab")


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    announce(tmp_path, safe=True)
    monkeypatch.syspath_prepend(tmp_path)
    return Compiler("toy", tmp_path / "transitions.sqlite")


def test_baselines_find_what_is_known(compiler: Compiler) -> None:
    """The default removes "ab" alone, greedy search never lets "cc" grow, and the others empty both words."""
    rows = BaselineCell(compiler, HELD_OUT, EFFORT).run()
    left = {name: [row.outcomes[source].operations for source in HELD_OUT] for name, row in rows.items()}
    assert left == {
        "start": [2, 2],
        "default": [2, 0],
        "fixpoint": [0, 0],
        "chain": [0, 0],
        "tidy": [0, 0],
        "greedy": [2, 0],
        "beam": [0, 0],
    }
    assert all(not outcome.difference for row in rows.values() for outcome in row.outcomes.values())


def test_agents_and_chance_play_on_what_they_were_not_trained_on(compiler: Compiler) -> None:
    config = PassAgentConfig(settings=SETTINGS["maskable_ppo"], **SMALL)
    cell = AgentCell(compiler, "agent", ("cab", "abab"), HELD_OUT, config, EPISODE, EFFORT, seed=1)
    first, again = cell.run()["agent"], cell.run()["agent"]
    assert first.outcomes == again.outcomes, "though all transitions are known by now"
    assert again.counts["training_misses"] == 0 < first.counts["training_misses"]
    chance = ChanceCell(compiler, HELD_OUT, EPISODE, EFFORT, seed=1).run()
    assert chance["random"].outcomes["cc"].tried == 18
    assert 0 < chance["untrained"].outcomes["cc"].tried < 18, "it asks nothing twice"
    assert convert(json.loads(json.dumps(plain(chance))), dict[str, Row]) == chance


def test_a_core_set_is_learned_on_some_families_and_run_once_on_others(compiler: Compiler) -> None:
    """Only a beam finds what empties "cc"; by single passes nothing does, since one of them lets it grow."""
    rows = {
        width: CoreSetCell(compiler, ("cab", "ccab"), HELD_OUT, CoreSetConfig(6, width), EFFORT).run()
        for width in (0, 2)
    }
    left = {width: [row["core_set"].outcomes[source].operations for source in HELD_OUT] for width, row in rows.items()}
    assert left == {0: [2, 0], 2: [0, 0]}
    learned = rows[2]["core_set"].core_set
    assert ("expand", "swap", "cancel") in learned
    assert rows[2]["core_sequence"].outcomes["cc"].tried == sum(map(len, learned)) <= 6
    assert convert(json.loads(json.dumps(plain(rows[2]))), dict[str, Row]) == rows[2]


def test_a_program_that_computes_something_else_is_told_of(compiler: Compiler) -> None:
    cell = ChanceCell(Compiler("wrong-toy", compiler.cache), ("cc",), EPISODE, EFFORT, seed=0)
    outcome = cell.run()["random"].outcomes["cc"]
    assert outcome != Outcome(outcome.operations, outcome.tried, outcome.passes)
    assert "is not" in outcome.difference


def test_programs_are_timed_in_turns(compiler: Compiler) -> None:
    cell = TimedCell(
        compiler, "cc", {"start": (), "best": ("expand", "swap", "cancel")}, TimingConfig(rounds=3, runs=1)
    )
    assert cell.run() == {"start": 3.0, "best": 1.0}, "a millisecond and one for each letter"
