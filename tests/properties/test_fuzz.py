"""Random rewrites of models, of drawn graphs and of every rule's own source: none may change what is computed.

`make fuzz` makes a million in shards (`support.fuzz_shards`); with every other run of the tests goes a small slice,
which is another one for each commit.
"""

from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import fuzz_shards
from support.fuzz_shards import take_turns, walk
from support.fuzzing import Tally, unconditional
from support.repository import REPOSITORY
from support.rotating_sample import sample, turn
from support.strategies import graphs
from support.zoo_names import ZOO

from rlflow.ir import Graph
from rlflow.rules.library import load
from rlflow.rules.rule import rule_from_json

LIBRARY = load()
REWRITER = unconditional(LIBRARY.rules)
SLICE_TURNS, SLICE_WALKS, SLICE_RULES = 5, 5, 120
TODAY = turn(REPOSITORY, date.today())
MODELS = sample(ZOO, TODAY, 8)
TURNS = sample(range(len(LIBRARY.rules)), TODAY, SLICE_RULES)


@pytest.mark.parametrize("name", MODELS)
def test_random_rewrites_of_a_model(name: str) -> None:
    tally = Tally(LIBRARY.rules, REWRITER)
    for seed in range(SLICE_WALKS):
        walk(tally, name, seed)
    assert not tally.differences
    assert tally.informative == tally.models


@settings(max_examples=60)
@given(graph=graphs(opset=21), seed=st.integers(0, 2**32 - 1))
def test_random_rewrites_of_drawn_graphs(graph: Graph, seed: int) -> None:
    tally = Tally(LIBRARY.rules, REWRITER)
    tally.rewrite(graph, np.random.default_rng(seed))
    assert not tally.differences


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_rule_gets_its_turns(part: int) -> None:
    tally, chosen = Tally(LIBRARY.rules, REWRITER), TURNS[part::4]
    for rule in chosen:
        take_turns(tally, rule, SLICE_TURNS, seed=rule)
    assert not tally.differences
    assert [LIBRARY.rules[rule].name for rule in chosen if tally.uses[rule] < SLICE_TURNS] == []


def test_a_false_rule_is_found() -> None:
    """So the tests above can fail."""
    false = rule_from_json("false", "test", [["Relu", ["Neg", "x"]]], [["Neg", ["Relu", "x"]]])
    tally = Tally([false], unconditional([false]))
    take_turns(tally, 0, turns=1, seed=0)
    assert tally.models == len(tally.differences) == 1
    assert tally.differences[0].startswith("false then false: not equivalent: output 'y0' differs")


def test_a_shard_is_known_by_its_number_and_added_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few turns of few models; killed and called again, the sum is that of one run."""
    for name, few in (("TURNS", 0), ("DRAWN_GRAPHS", 3), ("ZOO", ("tiny_chain", "mlp"))):
        monkeypatch.setattr(fuzz_shards, name, few)
    first, again, other = (fuzz_shards.made(number) for number in (1, 1, 2))
    assert first == again
    assert first.uses.total() > 0 < other.models
    assert (first.uses, first.largest_error) != (other.uses, other.largest_error)
    rules = [rule.id for rule in LIBRARY.rules]
    total = fuzz_shards.Sum(LIBRARY.hash)
    total.add(first)
    resumed = fuzz_shards.Sum.of(total.document(rules), LIBRARY.hash)
    assert resumed.document(rules) == total.document(rules)
    resumed.add(other)
    assert resumed.shards == [1, 2]
    assert resumed.uses == first.uses + other.uses
    assert fuzz_shards.Sum.of(resumed.document(rules), "another library").shards == []
